"""The random search: its batches are what they say, its answers are exact, what is wrong is found, and it resumes."""

import json
import multiprocessing
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import matroot
from matroot._terminal import CommandError
from matroot.bench.problems import inverse_unit, root_unit
from matroot.bench.random_search import __main__ as program
from matroot.bench.random_search import batches, check, execution, reference, search

from ..matrices import exact_gradient, exact_inverse_root, exact_root

pytestmark = pytest.mark.usefixtures("one_thread")

EPS = torch.finfo(torch.float32).eps
MANY = [batches.batch_of(number) for number in range(2000)]
PLAIN = batches.Batch(4, 6, "log", "float32", 3, (10.0, 1e3, 1e5), {1: "zero", 3: "nan", 4: "indefinite"}, (True, True))


def test_batches_follow_from_their_numbers():
    assert MANY[7] == batches.batch_of(7)
    assert len({batch.conditions for batch in MANY}) == len(MANY)


def test_all_kinds_are_met():
    """Sizes mostly up to 128 and every one of them, all spectra, dtypes, bad matrices, and scales to 1e30."""
    sizes = [batch.n for batch in MANY]
    assert {*range(1, 129)} <= set(sizes)
    assert max(sizes) > 1024
    assert sum(n <= 128 for n in sizes) > 0.9 * len(sizes)
    assert {batch.kind for batch in MANY} == set(batches.KINDS)
    assert {batch.dtype for batch in MANY} == set(batches.DTYPES)
    assert {kind for batch in MANY for kind in batch.bad.values()} == set(batches.BAD)
    assert {batch.gradients for batch in MANY} == {(True, False), (False, True), (True, True)}
    exponents = [batch.exponent for batch in MANY]
    assert (min(exponents), max(exponents)) == (-50, 50)
    assert any(not batch.bad for batch in MANY)


@pytest.mark.parametrize("kind", batches.KINDS)
def test_spectra(kind):
    conditions = torch.tensor([[2.0], [1e4]], dtype=torch.float64)
    values = batches.eigenvalues(kind, conditions, torch.rand(2, 7, dtype=torch.float64), EPS)
    assert (values.amax(-1) == 1).all()
    if kind in batches.SINGULAR:
        assert (values[:, 4:].abs() <= (0 if kind == "singular" else 4 * EPS)).all()
        assert (values[:, :4] > 1e-5).all()
    else:
        torch.testing.assert_close(values.amin(-1), 1 / conditions[:, 0])
    if kind.startswith("one-"):
        assert all(len(v.unique()) == 2 for v in values)


def test_matrices_have_their_eigenvalues():
    made = batches.matrices_of(PLAIN, "cpu")
    assert made.good.tolist() == [0, 2, 5]
    found = torch.linalg.eigvalsh(made.scaled_A[made.good]).flip(-1)
    torch.testing.assert_close(found, made.values.sort(descending=True).values, rtol=0, atol=1e-6)  # float32 entries
    assert torch.equal(made.A[made.good].double(), 64 * made.scaled_A[made.good])
    assert not made.A[1].any()
    assert made.A[3].isnan().sum() == 1
    assert torch.linalg.eigvalsh(made.A[4])[0] < -0.05 * 64


@pytest.mark.parametrize("kind", batches.DEFINITE)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_answers_are_exact(dtype, kind):
    """Those of the rounded matrices, to a hundredth of a unit: those before rounding would be whole units away."""
    conditions = (3.0, batches.MAX_CONDITION[dtype])
    made = batches.matrices_of(replace(PLAIN, n=20, dtype=dtype, kind=kind, conditions=conditions, bad={}), "cpu")
    true = reference.answer_of(made)
    A, eps = made.scaled_A, torch.finfo(made.A.dtype).eps
    gradient = exact_gradient(A, made.scaled_GS) + exact_gradient(A, made.scaled_GR, inverse=True)
    for found, exact, unit in (
        (true.root, exact_root(A), root_unit),
        (true.inverse, exact_inverse_root(A), inverse_unit),
        (true.gradient, gradient, inverse_unit),
    ):
        distance = torch.linalg.matrix_norm(found.value - exact) / found.size
        assert (distance <= 0.01 * unit(20, true.condition, eps)).all()


@pytest.mark.parametrize("number", range(40))
def test_results_have_all_properties(number):
    """Within ten units of rounding; of singular roots, six square roots of eps: a shift of 4 eps and its bound."""
    batch = batches.batch_of(number, max_size=20)
    report = check.check(batch, "cpu")
    assert not report.failures
    for name, (units, errors) in report.errors.items():
        assert len(units) == len(errors) == len(batch.conditions)
        assert max(units) < (6 if name == check.SINGULAR_ROOT else 10)


def spoilt(change):
    """``matroot.roots`` with something wrong in the root."""

    def roots(A):
        S, R = matroot.roots(A)
        return change(S), R

    return roots


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        (lambda S: S.nan_to_num(0.0), "root not NaN where the matrix is nan"),
        (lambda S: S.nan_to_num(0.0), "root not NaN where the matrix is indefinite"),
        (lambda S: S + 1, "root not zero where the matrix is"),
        (lambda S: S.triu(), "root not symmetric"),
        (lambda S: S / (S - S), "root not finite"),
        (lambda S: S * (1 + 1e-3 * (len(S) > 1)), "root depends on the batch"),
    ],
)
def test_what_is_wrong_is_found(change, failure):
    batch = replace(PLAIN, number=0)
    assert not check.check(batch, "cpu").failures
    assert failure in check.check(batch, "cpu", spoilt(change)).failures


def test_errors_are_in_units_of_rounding():
    batch = replace(PLAIN, bad={}, exponent=0)
    report = check.check(batch, "cpu", spoilt(lambda S: 1.01 * S))
    units, errors = report.errors["root"]
    for unit, error, condition in zip(units, errors, report.condition, strict=True):
        assert error == pytest.approx(0.01, rel=1e-2)
        assert unit == pytest.approx(error / (2.0**-24 * (6**0.5 + condition**0.5)), rel=1e-6)


def test_the_worst_are_kept():
    found = search.Search("cpu", 8)
    batch = replace(PLAIN, conditions=(10.0,), bad={})
    for units in range(30):
        report = check.Report({"root": ([float(units)], [1e-7])}, ["root not finite"] * (units == 5), [10.0])
        found.add(replace(batch, number=units), report)
    assert [record["units"] for record in found.worst["root"]] == [*range(29, 9, -1)]
    assert [failure["number"] for failure in found.failures] == [5]
    assert found.done == 30


def test_a_run_is_resumed(tmp_path, capsys):
    """In two parts as in one."""
    content = []
    for name, parts, jobs in (("one", (10,), 1), ("two", (3, 10), 1), ("several processes", (1, 10), 2)):
        path = tmp_path / f"{name}.json"
        for count in parts:
            call = ["--batches", str(count), "--max-n", "8", "--out", str(path), "--device", "cpu"]
            assert program.main([*call, "--jobs", str(jobs)]) == 0
        content.append(json.loads(path.read_text()))
    for key in ("batches", "matrices", "failures", "results", "command"):
        assert content[0][key] == content[1][key] == content[2][key]
    assert "10 batches" in capsys.readouterr().out


def start_processes(path):
    """A run in two processes that has saved some batches, and those processes."""
    call = ["--batches", "100000", "--max-n", "8", "--out", str(path), "--device", "cpu", "--jobs", "2"]
    code = f"from matroot.bench.random_search import __main__ as p; p.SAVE_EVERY = 0.0; p.main({call!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    while not (path.exists() and json.loads(path.read_bytes())["batches"]):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    return process, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def have_ended(children):
    """Whether they all do, before long."""
    alive = children
    end = time.monotonic() + 60
    while alive and time.monotonic() < end:
        alive = [child for child in alive if Path("/proc", child).exists()]
        time.sleep(0.1)
    return not alive


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_in_processes_can_be_stopped(tmp_path, number):
    """What it saved is there, and no process stays."""
    path = tmp_path / "random.json"
    process, children = start_processes(path)
    assert len(children) >= 2
    process.send_signal(number)
    process.communicate(timeout=60)
    assert have_ended(children)
    found = search.load(path, "cpu", 8)
    assert found.done > 0
    assert found.matrices == sum(batches.batch_of(k, 8).size for k in range(found.done))


def test_a_process_that_dies_is_said(tmp_path):
    """Its batches are computed by the next call."""
    with execution.reports_of(range(10**6), "cpu", 8, 2) as reports:
        next(reports)
        for child in multiprocessing.active_children():
            child.kill()
        with pytest.raises(CommandError, match="the same command goes on"):
            list(reports)


def test_other_files_are_not_resumed(tmp_path):
    path = tmp_path / "random.json"
    search.Search("cpu", 8).save(path)
    assert search.load(path, "cpu", 8).done == 0
    with pytest.raises(CommandError, match="another max_n"):
        search.load(path, "cpu", 9)
    content = json.loads(path.read_text())
    content["surroundings"]["source"] = "0"
    path.write_text(json.dumps(content))
    with pytest.raises(CommandError, match="another source"):
        search.load(path, "cpu", 8)
    for text in ("{}", "[]", "{", '{"format": "other"}'):
        path.write_text(text)
        with pytest.raises(CommandError, match="no file of a random search"):
            search.load(path, "cpu", 8)


def test_a_failure_is_the_exit_status(tmp_path, monkeypatch, capsys):
    report = check.Report({}, ["root not finite"], [1.0] * batches.batch_of(3, 8).size)
    for module in (program, execution):
        monkeypatch.setattr(module, "check", lambda batch, device: report)
    call = ["--max-n", "8", "--device", "cpu"]
    assert program.main([*call, "--batches", "1", "--out", str(tmp_path / "random.json")]) == 1
    assert "failed: root not finite: batch 0" in capsys.readouterr().out
    assert program.main([*call, "--only", "3"]) == 1
    assert "failed: root not finite" in capsys.readouterr().out


def test_one_batch_again(capsys):
    assert program.main(["--only", "11", "--max-n", "8", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("batch 11: ")
    assert len(lines) == 2 + len(batches.batch_of(11, 8).conditions)


def test_the_file_is_that_of_the_device_asked_for(tmp_path, monkeypatch, capsys):
    """Of the CPU on a machine with a GPU too, where that of the GPU stays as it is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "device_name", lambda: "a-gpu")
    assert program.main(["--batches", "1", "--max-n", "4", "--device", "cpu"]) == 0
    assert [path.name for path in (tmp_path / "benchmarks/results").iterdir()] == ["random-cpu.json"]
