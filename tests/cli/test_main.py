"""The command line: what it imports, how it fails, and what its commands print."""

import io
import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import matroot
from matroot._cli import bench, info, main
from matroot._terminal import importing
from matroot.bench import suites
from matroot.bench.gpu import __main__ as gpu_program

WITHOUT_TORCH = """
import sys, types
for name in ("torch", "rich", "numpy"):
    sys.modules[name] = None
matroot = types.ModuleType("matroot")
matroot.__path__, matroot.__version__ = [sys.argv.pop(1)], "1.2.3"
sys.modules["matroot"] = matroot
from matroot._cli.main import main
sys.exit(main())
"""
"""The command line in a package that has nothing but its version and its files, where torch cannot be imported."""


def without_torch(*arguments):
    package = str(Path(matroot.__file__).parent)
    call = [sys.executable, "-c", WITHOUT_TORCH, package, *arguments]
    return subprocess.run(call, capture_output=True, text=True)


def test_version_is_printed_without_torch():
    done = without_torch("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "matroot 1.2.3\n", "")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("bench", "--help"), ("warmup", "--help"), ("report", "--help"), ("stylize", "--help")]
)
def test_help_is_printed_without_torch(arguments):
    done = without_torch(*arguments)
    assert done.returncode == 0, done.stderr
    assert "usage: matroot" in done.stdout


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("info", "--nonsense"), ("report",), ("evaluate", "run", "--workers", "-1")]
)
def test_wrong_calls(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(arguments)
    assert stopped.value.code == 2
    assert "usage: matroot" in capsys.readouterr().err


def test_the_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["matroot", "--version"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("matroot", run_name="__main__")
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"matroot {matroot.__version__}\n"


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    for command in ("info", "warmup", "demo", "bench", "report", "stylize", "train", "compare"):
        assert re.search(rf"^ +{command} +\w", out, re.MULTILINE)


def test_help_describes_every_option(capsys):
    with pytest.raises(SystemExit):
        main.main(["bench", "--help"])
    out = capsys.readouterr().out
    for option in ("--suite", "--quick", "--device", "--dtype", "--out", "--fresh"):
        assert re.search(rf"{option}[^\n]*\s+\w", out)


def test_an_unknown_suite_lists_the_valid_ones(capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["bench", "--suite", "nonsense"])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert all(name in message for name in (*suites.NAMES, *suites.GPU_NAMES))


@pytest.mark.parametrize(
    ("named", "others"), [(["hard", "float64", "hard"], None), (["speed", "hard"], ["speed"]), ([], [])]
)
def test_bench_measures_suites_of_a_gpu(named, others, monkeypatch, tmp_path):
    """In files of their own, after the others; of a GPU none unless it is named."""
    calls = []
    monkeypatch.setattr(bench, "run_suites", lambda settings, folder, names, fresh: calls.append(names) or 1)
    monkeypatch.setattr(gpu_program, "main", lambda arguments: calls.append(arguments) or 0)
    given = ["bench", "--device", "cuda", "--quick", "--out", str(tmp_path), *(["--suite", *named] if named else [])]
    assert main.main(given) == (0 if others is None else 1)
    on_gpu = [name for name in dict.fromkeys(named) if name in suites.GPU_NAMES]
    expected = [["--suites", *on_gpu, "--out", str(tmp_path), "--quick"]] if on_gpu else []
    assert calls == ([] if others is None else [others]) + expected


def test_suites_of_a_gpu_need_one(capsys, monkeypatch):
    assert main.main(["bench", "--suite", "hard", "scalar"]) == 2
    assert capsys.readouterr().err == "hard: with --device cuda only\n"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for named in (["hard"], ["hard", "scalar"]):
        assert main.main(["bench", "--suite", *named, "--device", "cuda"]) == 2
        assert capsys.readouterr().err.endswith("there is no CUDA device here\n")


def test_bench_measures_the_chosen_suites_and_resumes(tmp_path, capsys):
    call = ["bench", "--quick", "--suite", "scalar", "--suite", "residuals", "--out", str(tmp_path)]
    assert main.main(call) == 0
    assert "14 cases in" in capsys.readouterr().out
    assert main.main(call) == 0
    assert "14 of 14 cases are there" in capsys.readouterr().out


def test_info_says_what_auto_does(capsys):
    assert main.main(["info"]) == 0
    text = capsys.readouterr().out
    assert torch.__version__ in text
    for batch, n in info.SHAPES:
        plan = matroot.choose(torch.empty(1).expand(batch, n, n))
        line = next(line for line in text.splitlines() if line.split()[:3] == [str(batch), "x", str(n)])
        assert line.split()[3:6] == [plan.method.name, plan.gradient.name, plan.backend]
        assert line.endswith(plan.reason)


def test_info_needs_no_extra(monkeypatch, capsys):
    for package in ("rich", "matplotlib", "scipy"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "matroot._cli.info")
    assert main.main(["info"]) == 0
    assert torch.__version__ in capsys.readouterr().out


COMMANDS = {
    "info": ["info"],
    "bench": ["bench", "--quick", "--fresh", "--suite", "scalar", "--out", "é"],
    "version": ["--version"],
}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("write_through", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_output_that_cannot_be_written_is_an_error_without_a_traceback(
    name, write_through, tmp_path, monkeypatch, capsys
):
    """Whether it fails in the call (PYTHONUNBUFFERED) or when the buffer is flushed at the end."""
    monkeypatch.chdir(tmp_path)
    with io.TextIOWrapper(open("/dev/full", "wb", 0 if write_through else -1), write_through=write_through) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main.main(COMMANDS[name]) == 1
        # Python flushes the stream once more at exit.
        full.flush()
    assert capsys.readouterr().err == "cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_stops_early_is_no_message(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main.main(COMMANDS[name]) == 1
    assert not capsys.readouterr().err


def test_other_errors_of_the_system_are_not_taken_for_output(monkeypatch):
    def missing(chosen):
        raise FileNotFoundError("a library")

    monkeypatch.setattr(info, "run", missing)
    with pytest.raises(FileNotFoundError, match="a library"):
        main.main(["info"])


def test_a_terminal_with_ascii_alone(tmp_path, monkeypatch):
    """Other characters are escaped."""
    monkeypatch.chdir(tmp_path)
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main.main(COMMANDS["bench"]) == 0
    assert r"9 cases in \xe9" in raw.getvalue().decode("ascii")


def test_without_rich(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "matroot._cli.demo", raising=False)
    assert main.main(["demo"]) == 2
    assert capsys.readouterr().err == 'matroot demo needs rich: pip install "matroot[bench]"\n'


def test_the_nearest_command_is_named(capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["trian"])
    assert stopped.value.code == 2
    assert "matroot: error: unknown command 'trian'; did you mean 'train'?" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo terminals")
@pytest.mark.parametrize(("arguments", "status"), [(("--help",), 0), (("--nonsense",), 2)])
def test_no_color(arguments, status, monkeypatch):
    """Of what tyro prints; colours are there without the variable."""
    monkeypatch.delenv("PYTHON_TYRO_ANSI_CODES", raising=False)
    for no_color in ("", "1"):
        terminal, end = os.openpty()
        environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
        command = [sys.executable, "-m", "matroot", "train", "dbn", *arguments]
        with subprocess.Popen(command, stdout=end, stderr=end, env=environment) as process:
            os.close(end)
            printed = b""
            try:
                while part := os.read(terminal, 4096):
                    printed += part
            except OSError:
                pass  # how Linux says that the other end is closed
        os.close(terminal)
        assert process.returncode == status, printed.decode()
        assert (b"\x1b[" in printed) == (not no_color)


def test_ctrl_c_waits_for_imports(monkeypatch):
    """A module that is cut short may raise anything, when it is imported and whenever it is used."""
    finished = []

    def imported(*_):
        os.kill(os.getpid(), signal.SIGINT)
        with importing():
            os.kill(os.getpid(), signal.SIGINT)
        finished.append(True)
        return SimpleNamespace(run=lambda _: pytest.fail("it runs"))

    monkeypatch.setattr(main, "import_module", imported)
    assert main.main(["info"]) == 130
    assert finished == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c(monkeypatch):
    def interrupted(chosen):
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "run", interrupted)
    assert main.main(["info"]) == 130
