"""The suites of the benchmark on a GPU, on small matrices on the CPU."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

import matroot
from matroot.bench.gpu import __main__ as program
from matroot.bench.gpu import baselines, compared, first_use, frechet, problems, singular, steps, suite_tables
from matroot.bench.gpu.suites import SUITES
from matroot.bench.suites import GPU_NAMES

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", SUITES)
def test_suites_are_saved_as_they_come_and_shown(name, tmp_path, capsys, monkeypatch):
    sizes = []
    save = program.save_program

    def counted(path, command, results, **facts):
        save(path, command, results, **facts)
        sizes.append(len(json.loads(path.read_text())["results"]))

    monkeypatch.setattr(program, "save_program", counted)
    monkeypatch.setattr(first_use, "_first_call", lambda *_: {"process": 9.0, "first": 2.0, "second": 1e-3})
    path = tmp_path / "suite.json"
    results = program.measure_suite(name, path, quick=True, device="cpu")
    assert sizes == [*range(1, len(results) + 1)]
    content = json.loads(path.read_text())
    assert content["command"] == f"python -m matroot.bench.gpu --suites {name} --quick"
    assert set(content["versions"]) == {"triton", "cupy", "jax"}
    out = capsys.readouterr().out
    for result in results:
        assert result["case"] in out


@pytest.mark.parametrize("problem", [*problems.HARD, *problems.LARGE, *problems.WIDE], ids=lambda p: p.title)
def test_problems_have_errors_of_rounding(problem):
    """The default's, within ten units; the unit of the inverse root bounds gradients as well. Errors of eigh show
    that something is compared: it is a decomposition of the same matrices."""
    problem = problem.small()
    A, G = problem.matrices("cpu")
    assert A.dtype == G.dtype == problem.dtype
    result = compared.measure_problem(problem, "cpu", quick=True)
    wanted = {"root", "inverse", "gradient"} if problem.backward else {"root", "inverse"}
    assert set(result["errors"]["matroot"]) == wanted
    for part, error in result["errors"]["matroot"].items():
        assert error <= 10 * result["rounding"][part], part
        if problem.dtype != torch.float64:  # there the reference is the same decomposition
            assert result["errors"]["torch eigh"][part] > 0
    if problem.condition is not None:
        assert result["condition"] == pytest.approx(problem.condition, rel=0.2)
    assert ("matroot" in result["milliseconds"]) == problem.backward


def test_a_wrong_root_would_show(monkeypatch):
    monkeypatch.setattr(matroot, "sqrtm", lambda A, backend: 1.001 * torch.linalg.cholesky(A))
    result = compared.measure_problem(problems.HARD[-1].small(), "cpu", quick=True)
    assert result["errors"]["matroot"]["root"] > 1e-3


def test_errors_that_cannot_be_found_have_a_note(monkeypatch):
    def no_memory(*_):
        raise MemoryError("8192")

    monkeypatch.setattr(compared, "exact", no_memory)
    result = compared.measure_problem(problems.LARGE[-1].small(), "cpu", quick=True)
    assert "8192" in result["notes"]["errors"]
    suite_tables.show_compared([result])


def fabricated(ours, theirs, **more):
    times = {"matroot": ours, "matroot forward": ours / 2, "torch eigh": theirs, "torch eigh forward": theirs / 2}
    return {
        "case": "1 x 8",
        "milliseconds": {name: {"back_to_back": {"median": t}} for name, t in times.items()},
        "goal_milliseconds": 1.0,
        "notes": {"jax eigh": "not installed"},
        **more,
    }


def test_tables_compare_side_by_side(capsys):
    errors = {name: {"root": 3e-7, "inverse": None} for name in ("matroot", "torch eigh")}
    unit = {"root": 1e-7, "inverse": 1e-6}
    result = fabricated(2.0, 8.0, errors=errors, condition=1e4, rounding=unit)
    graph = fabricated(2.0, 8.0, graph_milliseconds={"matroot": {"median": 0.5}})
    suite_tables.show_compared([result, graph])
    lines = capsys.readouterr().out.splitlines()
    row = lines[2].split()[3:]
    assert row == ["2.00", "-", "1.00", "no", "8.00", "4.00", "1.00", "4.00", "-", "-", "4.00"]
    assert lines[3].split()[3:7] == ["2.00", "0.500", "1.00", "yes"]
    assert lines[7].split()[3:] == ["1.0e4", "3.0e-7", "3.00", "3.0e-7", "-", "-", "-", "-", "-", "-"]
    assert lines[8] == "1 x 8: jax eigh: not installed"


def test_first_use_starts_processes(tmp_path, monkeypatch):
    found = first_use._first_call(3, "cpu", "auto", str(tmp_path))
    assert found["process"] > found["first"] + found["second"] > 0
    monkeypatch.setattr(first_use, "LIMIT", 1e-3)
    result = first_use.measure_size(3, "cpu")
    assert "TimeoutExpired" in result["notes"]["empty"]
    assert not result["seconds"]


def test_what_triton_itself_takes_is_measured_beside(monkeypatch):
    monkeypatch.setattr(first_use, "_first_call", lambda n, *_: {"first": float(n)})
    found = {result["case"]: result["seconds"]["filled"]["first"] for result in first_use.measure("cuda", quick=False)}
    assert found == {"1 x 64": 64.0, "1 x 128": 128.0, "1 x 256": 256.0, "a kernel that does nothing": 0.0}


def test_a_kernel_that_does_nothing_runs(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    found = first_use._first_call(first_use.NOTHING, "cpu", "auto", str(tmp_path))
    assert found["first"] > 0


def test_a_process_that_fails_has_a_note(monkeypatch):
    ended = SimpleNamespace(returncode=1, stderr="RuntimeError: no device")
    monkeypatch.setattr(first_use.subprocess, "run", lambda *_, **__: ended)
    assert "exit status 1: RuntimeError: no device" in first_use.measure_size(3, "cuda")["notes"]["filled"]


@pytest.mark.parametrize(("error", "met"), [(1e-5, "yes"), (1e-3, "no"), (None, "no")])
def test_what_is_no_number_meets_no_goal(capsys, error, met):
    result = {"case": "2 x 8", "goal_error": 3e-4, "milliseconds": {}, "notes": {}}
    errors = {"matroot forward": {"root": error}, singular.OURS_ON_CPU: {"root": 1e-6}}
    suite_tables.show_singular([result | {"errors": errors}])
    assert f" {met} " in capsys.readouterr().out


def test_singular_matrices_have_roots():
    (result,) = singular.measure("cpu", quick=True)
    for name in ("matroot forward", "torch eigh forward", singular.OURS_ON_CPU):
        assert 0 < result["errors"][name]["root"] < 5e-3  # the square root of a shift by 4 eps at least


def test_steps_between_neighbours():
    assert steps.largest_ratio({"9": 4.0, "8": 1.0, "10": 4.4}) == 4.0
    assert steps.largest_ratio({"8": 1.0}) is None
    for result in steps.measure("cpu", quick=True):
        assert set(result["milliseconds"]) == {"7", "8", "9", "10"}
        assert result["largest_ratio"] == steps.largest_ratio(result["milliseconds"])


def test_steps_are_comparable_where_one_cannot_be_captured(monkeypatch):
    calls = []

    def capture(work, budget):
        calls.append(work)
        if len(calls) == 2:
            raise RuntimeError("no capture")
        return [1.0]

    monkeypatch.setattr(steps, "time_in_graph", capture)
    fallback = SimpleNamespace(samples={"1": SimpleNamespace(back_to_back=[2.0])}, failures={})
    monkeypatch.setattr(steps, "time_interleaved", lambda *_, **__: fallback)
    notes = {}
    assert steps._times({"1": list, "2": list}, "cuda", True, notes) == {"1": 2e3}
    assert "no capture" in notes["in a graph"]


def test_the_distance_by_decompositions_is_the_same():
    result = frechet.measure("cpu", quick=True)
    assert result["errors"]["matroot forward"]["distance"] < 1e-5  # the result is float32


def test_jax_computes_in_float64_where_asked(monkeypatch):
    jax, dlpack = ModuleType("jax"), ModuleType("jax.dlpack")
    switched = []
    jax.config = SimpleNamespace(update=lambda *arguments: switched.append(arguments))
    jax.numpy, jax.jit = SimpleNamespace(linalg=torch.linalg), lambda function: function
    dlpack.from_dlpack = torch.from_dlpack
    monkeypatch.setattr(baselines.os, "environ", {})
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.dlpack", dlpack)
    baselines.library_works(torch.eye(2)[None])
    assert not switched
    baselines.library_works(torch.eye(2, dtype=torch.float64)[None])
    assert switched == [("jax_enable_x64", True)]


def test_each_suite_has_a_file(tmp_path, monkeypatch, capsys):
    measured = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(program, "device_name", lambda: "gpu")
    monkeypatch.setattr(program, "measure_table", lambda path, chosen: measured.append(path.name))
    monkeypatch.setattr(program, "measure_suite", lambda name, path, quick, backend: measured.append(path.name))
    assert program.main(["--out", str(tmp_path), "--suites", "hard", "steps", "hard"]) == 0
    assert measured == ["gpu-hard-gpu.json", "gpu-steps-gpu.json"]
    assert program.main(["--out", str(tmp_path)]) == 0
    assert measured[2:] == ["gpu-gpu.json", *(f"gpu-{name}-gpu.json" for name in SUITES)]
    assert program.main(["--out", str(tmp_path), "--suites", "hard", "--backend", "triton"]) == 0
    assert measured[-1] == "gpu-hard-triton-gpu.json"
    with pytest.raises(SystemExit):
        program.main(["--suites", "nonsense"])
    message = capsys.readouterr().err
    assert all(name in message for name in SUITES)


def test_their_names_are_known_without_torch():
    assert (program.TABLE, *SUITES) == GPU_NAMES


def test_a_backend_that_is_named_is_measured():
    result = compared.measure_problem(problems.HARD[-1].small(), "cpu", quick=True, backend="torch")
    assert "on backend torch" in result["plan"]
    with pytest.raises(ValueError, match="the matrices are on cpu"):
        compared.measure_problem(problems.HARD[-1].small(), "cpu", quick=True, backend="triton")


@pytest.mark.parametrize("suites", [[], ["--suites", "hard", "float64"]])
def test_a_backend_goes_with_suites_that_have_it(suites, capsys):
    with pytest.raises(SystemExit):
        program.main([*suites, "--backend", "triton"])
    assert "--backend triton: name suites, and not" in capsys.readouterr().err
