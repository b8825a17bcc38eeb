"""The command line."""

import subprocess
import sys

import pytest
import torch
from rich.console import Console

import matroot
from matroot._cli import info, main


def run(*arguments, environment=None):
    call = [sys.executable, "-m", "matroot", *arguments]
    return subprocess.run(call, capture_output=True, text=True, env=environment)


def test_version():
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"matroot {matroot.__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("info", "--nonsense"), ("report",)])
def test_wrong_calls(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: matroot" in done.stderr


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert "info" in out
    assert "report" in out


def test_info_says_what_auto_does():
    console = Console(record=True, width=160)
    info.show(console)
    text = console.export_text()
    assert torch.__version__ in text
    for batch, n in info.SHAPES:
        plan = matroot.choose(torch.empty(1).expand(batch, n, n))
        line = next(line for line in text.splitlines() if line.split()[:3] == [str(batch), "x", str(n)])
        assert line.split()[3:6] == [plan.method.name, plan.gradient.name, plan.backend]
        assert plan.reason in line


def test_without_rich(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.box", None)
    monkeypatch.delitem(sys.modules, "matroot._cli.info", raising=False)
    assert main.main(["info"]) == 2
    assert "pip install" in capsys.readouterr().err


def test_ctrl_c(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "show", interrupted)
    assert main.main(["info"]) == 130
