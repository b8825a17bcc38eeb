"""The script that runs what a release needs from a GPU."""

import os
import runpy
import shlex
import time
from pathlib import Path

import pytest

from matroot._cli.main import _parser
from matroot.bench.suites import GPU_NAMES

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "tools/gpu_release.py"))
PROGRAMS, Program = SCRIPT["PROGRAMS"], SCRIPT["Program"]
needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self"), reason="looks for processes as Linux shows them")


@pytest.fixture
def programs(monkeypatch):
    """Sets programs in the place of the script's, Python code each."""

    def set_to(alone=(), **codes):
        made = {
            name: Program(tuple(f"-c {shlex.quote(part)}" for part in code.split(";;")), name in alone)
            for name, code in codes.items()
        }
        monkeypatch.setitem(SCRIPT["main"].__globals__, "PROGRAMS", made)

    return set_to


def outcomes(tmp_path, limit=60.0):
    found = SCRIPT["run_all"]([*SCRIPT["main"].__globals__["PROGRAMS"]], time.monotonic() + limit, tmp_path)
    return {outcome.name: (outcome.status, outcome.last) for outcome in found}


def test_programs_are_calls_of_what_there_is():
    """Scripts of this folder, or commands whose arguments are right; every suite of a GPU is measured."""
    suites = []
    for call in (call for program in PROGRAMS.values() for call in program.calls):
        first, *arguments = shlex.split(call)
        if first == "-m" and arguments[0] == "matroot":
            suites += getattr(_parser().parse_args(arguments[1:]), "suite", [])
        elif first == "-m":
            path = ROOT / "src" / arguments[0].replace(".", "/")
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        else:
            assert (ROOT / first).exists()
    assert sorted(suites) == sorted(GPU_NAMES)


def test_kernels_of_the_search_are_those_of_its_page():
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8").replace("\\\n", "")
    (line,) = [" ".join(line.split()) for line in page.splitlines() if line.startswith("matroot warmup")]
    assert PROGRAMS["search"].calls[0] == f"-m {line}"


def test_they_share_the_gpu_and_then_run_alone(programs, tmp_path):
    wait = "import pathlib, sys, time\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.01)\n"
    met = [str(tmp_path / name) for name in ("a", "b")]
    programs(
        alone=("last",),
        last=f"import pathlib; print(sorted(p.name for p in pathlib.Path({str(tmp_path)!r}).glob('?')))",
        a=f"open({met[0]!r}, 'w')\n" + wait.format(met[1]) + "print('first');;print('a')",
        b=f"open({met[1]!r}, 'w')\n" + wait.format(met[0]) + "sys.exit(3);;print('not reached')",
    )
    assert outcomes(tmp_path) == {"a": (0, "a"), "b": (3, ""), "last": (0, "['a', 'b']")}


@needs_proc
def test_the_limit_interrupts_the_whole_group(programs, tmp_path):
    """A program that saves what it has, and the processes of one that does not."""
    alive = tmp_path / "pid"
    sleep = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}])"
    child = f"import os, time; open({str(alive)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    programs(
        saves="import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('saved')\nraise SystemExit(5)",
        parent=sleep.format(child),
    )
    found = outcomes(tmp_path, limit=3.0)
    assert found["saves"] == (None, "saved")
    assert found["parent"][0] is None
    assert not Path(f"/proc/{alive.read_text()}").exists()


def test_programs_are_interrupted_at_once(programs, tmp_path, monkeypatch):
    """Those that do not end when they are asked to take the time of one."""
    monkeypatch.setitem(SCRIPT["main"].__globals__, "GRACE", 3.0)
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    programs(a=deaf, b=deaf, c=deaf)
    began = time.monotonic()
    assert outcomes(tmp_path, limit=2.0) == dict.fromkeys("abc", (None, ""))
    assert time.monotonic() - began < 9


def test_results_that_were_written_are_copied(programs, tmp_path, monkeypatch, capsys):
    results = tmp_path / "results"
    results.mkdir()
    (results / "old.json").write_text("1")
    os.utime(results / "old.json", (1.0, 1.0))
    monkeypatch.setitem(SCRIPT["main"].__globals__, "RESULTS", results)
    programs(writes=f"open({str(results / 'new.json')!r}, 'w').write('2')", fails="raise SystemExit(1)")
    call = ["--logs", str(tmp_path / "logs"), "--results", str(tmp_path / "copied")]
    assert SCRIPT["main"]([*call, "writes"]) == 0
    assert [path.name for path in (tmp_path / "copied").iterdir()] == ["new.json"]
    assert SCRIPT["main"](call) == 1
    assert "fails        exit status 1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        SCRIPT["main"](["nonsense"])
    assert "there are writes, fails" in capsys.readouterr().err


@needs_proc
def test_an_interrupt_ends_them(programs, tmp_path):
    pid = tmp_path / "pid"
    sleeps = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    programs(sleeps=sleeps, ends=f"import os, time\nwhile not os.path.exists({str(pid)!r}): time.sleep(0.01)")
    found = SCRIPT["run_all"](["sleeps", "ends"], float("inf"), tmp_path)
    assert next(found).name == "ends"
    with pytest.raises(KeyboardInterrupt):
        found.throw(KeyboardInterrupt)
    assert not Path(f"/proc/{pid.read_text()}").exists()
