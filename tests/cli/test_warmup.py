"""Compiling kernels ahead, as far as it can be seen without a GPU."""

import io

import pytest
import torch
from rich.console import Console

from matroot._cli import main, warmup

CALL = ["warmup", "--n", "8", "32", "8"]


@pytest.fixture
def compiled(monkeypatch):
    """As on a machine with one GPU where every size has a kernel; the list of calls of ``compile_all``."""
    calls = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(warmup, "_why_no_kernel", lambda device, n: None)
    monkeypatch.setattr(warmup, "compile_all", lambda *arguments: calls.append(arguments) or 0)
    return calls


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without CUDA")
def test_without_a_device_it_says_so(capsys):
    assert main.main(CALL) == 1
    assert "no CUDA device" in capsys.readouterr().err


def test_nothing_is_asked_for_twice(compiled):
    assert main.main([*CALL, "--dtype", "float32", "bfloat16", "float32"]) == 0
    tasks, device, jobs, _ = compiled[0]
    assert device == torch.device("cuda")
    assert 1 <= jobs <= len(tasks) == len(set(tasks))
    assert {(task.n, task.dtype) for task in tasks if task.output is None} == {
        (n, dtype) for n in (8, 32) for dtype in ("float32", "bfloat16")
    }
    for output in warmup.COTANGENTS:
        own = [task for task in tasks if task.output == output]
        assert {(task.n, task.batch) for task in own} == {(8, 1), (32, 1)}
        assert {task.dtype for task in own} == {"float32"}


@pytest.mark.parametrize(
    ("n", "resident", "batches"), [(64, 264, (1,)), (128, 264, (1, 26, 27)), (256, 264, (1, 26, 27)), (1024, 40, (1,))]
)
def test_batches_on_both_sides_of_a_cooperative_launch(n, resident, batches, monkeypatch):
    """Ten tiles of 128 or 256 rows are on and below the diagonal; all of their programs must be resident at once."""
    pytest.importorskip("triton")
    from matroot.backends.triton.tiled import fast_launch

    monkeypatch.setattr(fast_launch, "max_resident_programs", lambda device: resident)
    tasks = [*warmup.tasks_for([n], ["float32"], torch.device("cuda"))]
    assert {task.batch for task in tasks} == {*batches}
    assert len(tasks) == 4 * len(batches)


def test_sizes_without_kernels_are_named(compiled, monkeypatch, capsys):
    monkeypatch.setattr(warmup, "_why_no_kernel", lambda device, n: f"{n} is too large" if n > 8 else None)
    assert main.main(CALL) == 0
    assert {task.n for task in compiled[0][0]} == {8}
    assert "32 is too large" in capsys.readouterr().out
    assert main.main(["warmup", "--n", "32"]) == 1
    assert "32 is too large" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cpu", "cuda:1", "nonsense"])
def test_other_devices_are_refused(name, compiled, capsys):
    assert main.main([*CALL, "--device", name]) == 2
    assert name in capsys.readouterr().err
    assert not compiled


@pytest.mark.parametrize("arguments", [("--n", "0"), ("--n", "x"), ("--jobs", "-1"), ("--dtype", "int8")])
def test_wrong_calls(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["warmup", *arguments])
    assert stopped.value.code == 2
    assert "usage: matroot warmup" in capsys.readouterr().err


def test_processes_run_all_tasks_whichever_fails(capsys):
    """On the CPU, where the same operators call compiled code and Triton compiles nothing."""
    pytest.importorskip("triton")
    tasks = [
        warmup.Task(2, 4, "nonsense"),
        warmup.Task(2, 4, "float32"),
        warmup.Task(1, 4, "float32", "inverse root"),
    ]
    stream = io.StringIO()
    assert warmup.compile_all(tasks, torch.device("cpu"), 1, Console(file=stream)) == 1
    assert stream.getvalue().startswith("0 kernels compiled")
    (message,) = capsys.readouterr().err.splitlines()  # of one task: the others ran
    assert message.startswith("roots, 2 x 4, nonsense: AttributeError")
