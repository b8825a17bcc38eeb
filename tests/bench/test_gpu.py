"""The benchmark on a GPU, as far as it can be seen without one."""

import json
import sys
import time
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest
import torch

import matroot
from matroot._terminal import CommandError
from matroot.bench.gpu import __main__ as program
from matroot.bench.gpu import baselines, measure, roofline, table
from matroot.bench.problems import forward_backward
from matroot.bench.results import save_program

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run():
    return measure.GpuRun("cpu", quick=True)


ROOFLINE = {
    "bmm_teraflops": {"64": 26.0, "512": 49.0},
    "bfloat16_teraflops": 600.0,
    "copy_terabytes_per_second": 4.0,
    "launch_in_a_graph_microseconds": 1.0,
    "autograd_microseconds": 20.0,
}


def fabricated(batch, n, root=0.03, auto=0.05, error=1e-6, **others):
    result = {
        "batch": batch,
        "n": n,
        "milliseconds": {
            name: {"single": {"median": 2 * t}, "back_to_back": {"median": t}}
            for name, t in {"auto": auto, **others}.items()
        },
        "graph_milliseconds": {"root": {"median": root}},
        "errors": {"auto": {"root": error, "gradient": 2 * error}},
        "notes": {"jax eigh": "not installed"},
        "products": measure.ASSUMED,
        "bound": "Bound by latency.",
        "teraflops_in_a_graph": 12.0,
        "terabytes_per_second_in_a_graph": 1.0,
        "share_of_ceiling": {"bmm": 0.46, "bfloat16": 0.12, "copy": 0.25},
    }
    return table.with_goals(result)


def test_shapes_are_read():
    assert program.parse_shapes("16x128,4x256") == ((16, 128), (4, 256))


@pytest.mark.parametrize("text", ["", "16", "16x", "0x4", "4x4x4", "axb"])
def test_other_shapes_are_refused(text, capsys):
    with pytest.raises(SystemExit):
        program.main(["--shapes", text])
    assert "such as 16x128" in capsys.readouterr().err


def test_the_command_has_the_options_that_are_not_the_default():
    assert program.command_of("hard", False) == "python -m matroot.bench.gpu --suites hard"
    full = program.command_of("shapes", True, ((16, 128), (4, 256)), 150.0)
    assert full == "python -m matroot.bench.gpu --suites shapes --quick --shapes 16x128,4x256 --budget 150"


def test_every_shape_has_a_goal():
    assert {*table.GOALS, *table.SHARE_OF_LIBRARIES} == set(measure.SHAPES)
    assert set(measure.TO_COMPILE) <= set(measure.SHAPES)
    assert set(measure.QUICK) <= set(measure.TO_COMPILE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without CUDA")
def test_without_a_gpu_it_says_so(tmp_path):
    with pytest.raises(CommandError, match="no CUDA device"):
        program.main(["--quick", "--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_goals_are_compared():
    assert fabricated(1, 64)["met"] == {"single": False, "back_to_back": True, "in_a_graph": True, "error": True}
    assert fabricated(1, 64, error=2e-5)["met"]["error"] is False
    assert fabricated(3, 5)["met"]["in_a_graph"] is None
    against = fabricated(64, 512, **{"jax eigh": 100.0, "cupy eigh": 90.0})
    assert against["goal_microseconds"] == {"with_python": 4500.0, "in_a_graph": 4500.0}
    assert fabricated(64, 512)["met"]["back_to_back"] is None


def test_tables_show_what_there_is(capsys):
    results = [fabricated(1, 64, paper=3.0), fabricated(10000, 64, root=9.0)]
    results[0]["ratio_to_root"] = {"inverse root": 1.25}
    results[0]["compile_seconds"] = 31.0
    table.show(results, ROOFLINE)
    out = capsys.readouterr().out
    assert out.count("yes") == 3
    for text in (
        "3000  ",
        "1.25",
        "31.0 s",
        "46%",
        "jax eigh: not installed",
        "11 + 7 products, assumed",
        "26.0 (n = 64)",
    ):
        assert text in out
    table.show([], ROOFLINE | {"launch_in_a_graph_microseconds": None})


@pytest.mark.parametrize(
    ("alone", "least", "text"),
    [
        (2.0, {"launches": 60, "arithmetic": 5, "bytes": 5}, "Bound by launches"),
        (2.0, {"launches": 5, "arithmetic": 70, "bytes": 60}, "Bound by arithmetic"),
        (90.0, {"launches": 5, "arithmetic": 10, "bytes": 60}, "Bound by bytes"),
        (90.0, {"launches": 5, "arithmetic": 10, "bytes": 10}, "Bound by latency"),
        (None, {"launches": 5, "arithmetic": 10, "bytes": 10}, "At no peak rate"),
    ],
)
def test_limiting_factors(alone, least, text):
    assert roofline.limiting_factor(100.0, alone, least).startswith(text)


def test_lower_bounds_follow_from_the_roofline():
    least = roofline.lower_bounds(10000, 64, 24, ROOFLINE)
    assert least["launches"] == 2
    assert least["arithmetic"] == pytest.approx(24 * 2 * 64**3 * 10000 / 200e12 * 1e6)
    assert least["bytes"] == pytest.approx(7 * 4 * 64**2 * 10000 / 4e12 * 1e6)


def test_results_are_saved_as_they_come_and_shown(run, tmp_path, monkeypatch, capsys):
    """All of it but the device: what needs one has a note."""
    monkeypatch.setattr(measure, "TO_COMPILE", ((3, 8),))
    monkeypatch.setattr(measure, "compiled", lambda A, G, limit: (lambda: None, 1.5))
    path, sizes, results = tmp_path / "gpu.json", [], []

    def save(found):
        save_program(path, "command", found, ceilings=run.roofline)
        sizes.append(len(json.loads(path.read_text())["results"]))

    measure.measure_all(run, ((3, 8), (2, 4)), results, save)
    assert sizes[:2] == [1, 2]
    content = json.loads(path.read_text())
    assert content["ceilings"]["bmm_teraflops"]["64"] > 0
    first = content["results"][0]
    assert first["matrices_checked"] == 3
    assert set(first["milliseconds"]["auto"]) == {"single", "back_to_back"}
    assert first["errors"]["auto"]["gradient"] < 1e-5
    assert first["errors"]["paper"]["root"] > 1e-5
    assert first["compile_seconds"] == 1.5
    if not torch.cuda.is_available():
        assert "root in a graph" in first["notes"]
        assert first["bound"] == "Not measured in a graph."
    table.show(results, run.roofline)
    assert "3 x 8" in capsys.readouterr().out


def test_rates_come_with_a_sentence(run, monkeypatch):
    times = {"root": {"median": 0.9}, "root of one matrix": {"median": 0.05}}
    monkeypatch.setattr(run, "roofline", ROOFLINE)
    found = run.rates({"batch": 10000, "n": 64, "products": measure.ASSUMED, "graph_milliseconds": times})
    assert found["teraflops_in_a_graph"] == pytest.approx(18 * 2 * 64**3 * 10000 / 0.9e-3 * 1e-12)
    assert found["share_of_ceiling"]["bmm"] == pytest.approx(found["teraflops_in_a_graph"] / 26, abs=1e-3)
    assert found["share_of_ceiling"]["copy"] == pytest.approx(7 * 4 * 64**2 * 10000 / 0.9e-3 / 4e12, abs=1e-3)
    assert found["bound"].startswith("Bound by arithmetic")
    assert "50.0 us" in found["bound"]


def test_without_time_only_the_default_runs(run, monkeypatch):
    monkeypatch.setattr(run, "end", time.perf_counter() - 1)
    result = run.measure_shape(2, 4)
    assert set(result["milliseconds"]) == {"auto"}
    assert "no time" in result["notes"]["paper"]
    run.measure_variants(result)
    run.measure_compiled(result)
    assert "no time" in result["notes"]["both roots"]
    assert "no time" in result["notes"][baselines.COMPILED]


def test_repeated_matrices_are_checked_wherever_they_are(run, monkeypatch):
    monkeypatch.setattr(measure, "DISTINCT", 4)
    A, G = run.problem(10, 4)
    assert torch.equal(A[:2], A[8:])
    found = run.errors(A, G, ["auto"])
    assert found["matrices_checked"] == 10
    assert found["errors"]["auto"]["root"] < 1e-5


def test_products_that_kernels_do_not_count_are_assumed(monkeypatch):
    A = torch.eye(4).repeat(2, 1, 1)
    counted = measure.count(A, A)
    assert counted["source"] == "counted"
    assert min(counted["forward"], counted["backward"]) > 0

    @contextmanager
    def inside_a_kernel(matrices):
        yield matroot.Counts(products=1.0, uncounted=1)

    monkeypatch.setattr(matroot, "count_operations", inside_a_kernel)
    assert measure.count(A, A) == measure.ASSUMED


def test_both_roots_take_both_gradients():
    A = 4 * torch.eye(2, dtype=torch.float64).expand(3, 2, 2)
    _, gradient = forward_backward(lambda X: (2 * X, 3 * X), A.detach().requires_grad_(), torch.ones_like(A))
    assert torch.equal(gradient, torch.full_like(A, 5))


@pytest.mark.parametrize(
    ("version", "n", "left_out"),
    [("2.11.0+cu130", 33, True), ("2.11.0+cu130", 32, False), ("2.12.0", 33, False), ("2.13.0a0+git1f", 33, False)],
)
def test_large_batches_leave_torch_eigh_out_where_it_takes_matrices_one_by_one(monkeypatch, version, n, left_out):
    monkeypatch.setattr(baselines, "MANY", 1)
    monkeypatch.setattr(torch, "__version__", version)
    A = torch.eye(n).repeat(2, 1, 1)
    work, notes = baselines.works(A, A)
    assert ("torch eigh" in work) == (not left_out)
    assert ("one by one" in notes.get("torch eigh", "")) == left_out


def test_libraries_share_the_memory(monkeypatch):
    """With fake modules: what is called, and that memory is not copied."""
    cupy = ModuleType("cupy")
    cupy.from_dlpack = torch.from_dlpack
    cupy.linalg = torch.linalg
    jax, dlpack = ModuleType("jax"), ModuleType("jax.dlpack")
    seen = []
    jax.numpy = SimpleNamespace(linalg=torch.linalg)
    jax.jit = lambda function: function
    jax.block_until_ready = lambda found: seen.append(found) or found
    dlpack.from_dlpack = torch.from_dlpack
    monkeypatch.setattr(baselines.os, "environ", environment := {})
    for name, module in (("cupy", cupy), ("jax", jax), ("jax.dlpack", dlpack)):
        monkeypatch.setitem(sys.modules, name, module)
    A = torch.eye(4).repeat(2, 1, 1)
    work, notes = baselines.works(A, A)
    assert not notes
    assert baselines.versions()["cupy"] is None  # the fake module has none
    assert work["cupy eigh"].args[0].data_ptr() == A.data_ptr()
    assert torch.equal(work["jax eigh"]()[0], torch.ones(2, 4))
    assert len(seen) == 1
    assert environment == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def test_missing_and_failing_libraries_have_notes(monkeypatch):
    def refuse(A):
        raise BufferError

    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setattr(baselines, "_cupy_eigh", refuse)
    A = torch.eye(4)[None]
    assert baselines.works(A, A)[1] == {
        "cupy eigh": "cannot take the matrices: BufferError",
        "jax eigh": "not installed",
    }


def test_the_compiled_baseline_is_exact(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    A = torch.diag(torch.tensor([1.0, 4.0]))[None]
    work, spent = baselines.compiled(A, torch.eye(2)[None], 20.0)
    assert spent > 0
    torch.testing.assert_close(work()[1], torch.diag(torch.tensor([0.5, 0.25]))[None], rtol=1e-5, atol=1e-6)


def test_time_limit():
    with pytest.raises(TimeoutError, match="more than"), baselines.time_limit(0.05):
        time.sleep(5)
    with baselines.time_limit(0.05):
        pass
    time.sleep(0.06)  # nothing comes afterwards
