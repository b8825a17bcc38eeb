"""The benchmarks of the default solver: tables, files, and baselines that are what they say."""

import json

import pytest
import torch

import matroot
from matroot._terminal import exit_status
from matroot.bench import baselines, memory, problems, solver

from ..matrices import error, exact_root, wishart

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", solver.BENCHMARKS)
def test_a_benchmark_prints_a_table_and_writes_its_raw_results(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(solver, "spectra", lambda quick: [("wishart", None), ("log", 1e5), ("low-rank", 1e2)])
    assert solver.main([name, "--quick", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    content = json.loads(path.read_text())
    assert content["command"] == f"python -m matroot.bench.solver {name} --quick"
    assert content["surroundings"]["torch"] == torch.__version__
    assert content["results"]
    assert len(capsys.readouterr().out.splitlines()) > len(content["results"]) // 8


def test_an_interrupt_leaves_no_file(tmp_path, monkeypatch, capsys):
    def interrupted(quick):
        yield {}
        raise KeyboardInterrupt

    monkeypatch.setitem(solver.BENCHMARKS, "memory", (interrupted, print))
    assert solver.main(["memory", "--out", str(tmp_path)]) == 130
    assert not list(tmp_path.iterdir())
    assert "interrupted" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named_before_anything_is_measured(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setitem(solver.BENCHMARKS, "memory", (None, None))
    assert exit_status(lambda: solver.main(["memory", "--quick", "--out", str(tmp_path / "file")])) == 2
    assert f"cannot write {tmp_path / 'file' / 'solver-memory-cpu.json'}" in capsys.readouterr().err


def test_the_paper_as_a_baseline_is_the_preset():
    A, G = wishart(3, 8), problems.symmetric(3, 8)
    plain = problems.value_and_gradient(baselines.PaperRoot.apply, A, G)
    preset = problems.value_and_gradient(lambda X: matroot.sqrtm(X, **matroot.preset("mpa-lya")), A, G)
    for ours, theirs in zip(preset, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", problems.SPECTRA[1:])
def test_spectra_are_what_they_say(kind):
    values = torch.linalg.eigvalsh(problems.with_spectrum(kind, 2, 8, 1e4))
    least = values[:, values.shape[1] // 2] if kind == "low-rank" else values[:, 0]
    expected = 1e-2 ** (3 / 7) if kind == "low-rank" else 1e-4
    torch.testing.assert_close(values[:, -1], torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(least, torch.full((2,), expected, dtype=torch.float64), rtol=1e-6, atol=0)


def test_unknown_spectrum_lists_the_known():
    with pytest.raises(ValueError, match="known are log, clustered"):
        problems.with_spectrum("flat", 1, 2, 10.0)


def test_extra_memory_counts_temporaries_only():
    A, G = wishart(4, 16), problems.symmetric(4, 16)
    plain = memory.extra_memory(lambda X: 2 * X, A, G)
    assert plain < A.nbytes  # value and gradient do not count
    wasteful = memory.extra_memory(lambda X: 2 * (X + torch.stack([X.detach()] * 5).sum(0) * 0), A, G)
    assert wasteful >= plain + 5 * A.nbytes


def test_the_committed_accuracy_is_todays():
    """One case of the committed table, measured again."""
    path = solver.Path(__file__).parents[2] / "benchmarks/results/solver-accuracy-cpu.json"
    wanted = {"dtype": "float32", "spectrum": "wishart", "solver": "minimax+krylov"}
    (row,) = [r for r in json.loads(path.read_text())["results"] if wanted.items() <= r.items()]
    assert row["forward"]["products"] <= 13
    assert row["backward"]["products"] <= 9
    assert max(row["root_error"], row["root_gradient_error"], row["inverse_error"]) <= 2e-6
    A = problems.covariances(8, 64).float()
    assert error(matroot.sqrtm(A, "minimax"), exact_root(A)) < 3 * row["root_error"]
