"""``matroot bench``: what it measures, what it keeps, and what it says when something goes wrong."""

import errno
import json
import math
import os
import re
from functools import partial
from pathlib import Path

import pytest
import torch
from rich.console import Console

import matroot
from matroot._cli import main
from matroot.bench import (
    backward,
    baselines,
    contestants,
    forward,
    problems,
    racing,
    runner,
    scalar,
    suites,
    theory,
    turns,
)
from matroot.bench.cases import Case, Group, Outcome, Settings
from matroot.bench.format import read as checked
from matroot.methods import Eigen, Minimax

QUICK = Settings(quick=True)
FILE = "bench-cpu-float32.json"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Fake:
    """Suites of which every measurement is remembered; one group has two cases."""

    def __init__(self, **outcomes):
        self.measured = []
        self.outcomes = outcomes

    def groups(self, settings):
        for name in ("one", "two", "three"):
            names = (name, f"{name} more") if name == "two" else (name,)
            group = tuple(Case("fake", n, {"k": 1}) for n in names)
            yield Group(group, partial(self.measure, name, len(names)))

    def measure(self, name, count):
        self.measured.append(name)
        found = self.outcomes.get(name, Outcome(errors={"root": 1e-6}))
        if isinstance(found, BaseException):
            raise found
        return [found] * count

    def run(self, folder, settings=QUICK, **options):
        return runner.run(settings, folder, suites={"fake": self.groups}, **options)


def read(folder):
    return json.loads((folder / FILE).read_text())


def names(folder):
    return [case["contestant"] for case in read(folder)["cases"]]


def test_a_run_writes_what_the_format_asks_for(tmp_path):
    assert Fake().run(tmp_path / "new" / "folder") == 0
    content = checked(tmp_path / "new" / "folder" / FILE)[1]
    assert content["settings"] == {"device": "cpu", "dtype": "float32", "quick": True}
    assert content["command"] == "matroot bench --suite fake --device cpu --dtype float32 --quick"
    assert content["surroundings"]["matroot"] == matroot.__version__
    assert [case["case"] for case in content["cases"]] == ["one k=1", "two k=1", "two more k=1", "three k=1"]
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [FILE]


def test_a_second_run_measures_nothing_and_fresh_everything(tmp_path):
    fake = Fake()
    fake.run(tmp_path)
    date = read(tmp_path)["surroundings"]["date"]
    assert fake.run(tmp_path) == 0
    assert fake.measured == ["one", "two", "three"]
    assert read(tmp_path)["surroundings"]["date"] == date
    assert fake.run(tmp_path, fresh=True) == 0
    assert fake.measured == ["one", "two", "three"] * 2


def test_a_group_of_which_a_case_is_missing_is_measured_again(tmp_path):
    fake = Fake()
    fake.run(tmp_path)
    content = read(tmp_path)
    del content["cases"][2]
    (tmp_path / FILE).write_text(json.dumps(content))
    fake.run(tmp_path)
    assert fake.measured[3:] == ["two"]
    assert sorted(names(tmp_path)) == ["one", "three", "two", "two more"]


def test_ctrl_c_loses_the_running_group_only(tmp_path, capsys):
    assert Fake(three=KeyboardInterrupt()).run(tmp_path) == 130
    assert names(tmp_path) == ["one", "two", "two more"]
    said = capsys.readouterr().err
    assert "3 cases are in" in said
    assert "goes on" in said
    fake = Fake()
    assert fake.run(tmp_path) == 0
    assert fake.measured == ["three"]


def test_a_wrong_answer_fails_at_the_end_and_is_measured_again_when_resumed(tmp_path, capsys):
    fake = Fake(one=Outcome(errors={"root": 0.5, "free": 9.0}, bounds={"root": 1e-3}))
    for _ in range(2):
        assert fake.run(tmp_path) == 1
        said = capsys.readouterr().err
        assert "fake: one k=1: wrong answer: root error 5.00e-01 above 1.00e-03" in said
        assert "1 of 4 cases" in said
    assert fake.measured == ["one", "two", "three", "one"]
    assert Fake().run(tmp_path) == 0


@pytest.mark.parametrize(("n", "times"), [(10, 30), (200, 400)])
def test_decompositions_may_be_off_by_more_the_larger_the_matrix(n, times):
    values = torch.ones(1, n, dtype=torch.float64)
    assert theory.value_bound(Eigen(), values, 1e-7) == pytest.approx(times * 1e-7)
    assert theory.gradient_bound(Eigen(), values, 1e-7) == pytest.approx(times * 1e-7)
    for bound in (theory.value_bound(Minimax(), values, 1e-7), theory.gradient_bound(None, values, 1e-7)):
        assert bound == pytest.approx(30e-7)


def test_nan_is_a_wrong_answer_and_written_as_null(tmp_path):
    assert Fake(one=Outcome(errors={"root": math.nan}, bounds={"root": 1.0})).run(tmp_path) == 1
    assert read(tmp_path)["cases"][0]["errors"] == {"root": None}


def test_a_failing_group_does_not_stop_the_others(tmp_path, capsys):
    assert Fake(two=RuntimeError("no such luck")).run(tmp_path) == 1
    assert names(tmp_path) == ["one", "two", "two more", "three"]
    assert "failed: RuntimeError: no such luck" in capsys.readouterr().err
    fake = Fake()
    assert fake.run(tmp_path) == 0
    assert fake.measured == ["two"]


def damaged(change):
    def apply(content):
        change(content)
        return json.dumps(content)

    return apply


DAMAGES = {
    "cut off": (lambda content: json.dumps(content)[:-9], "cut off"),
    "not an object": (lambda content: "[]", "field format"),
    "format": (damaged(lambda c: c.update(format="matroot-bench 2")), "field format"),
    "no cases": (damaged(lambda c: c.pop("cases")), "field cases"),
    "no note": (damaged(lambda c: c["cases"][1].pop("note")), r"field cases\[1\].note"),
    "no case": (damaged(lambda c: c["cases"].insert(0, 3)), r"field cases\[0\] "),
    "text": (damaged(lambda c: c["cases"][0].update(errors={"root": "1"})), r"cases\[0\].errors.root"),
    "infinite": (damaged(lambda c: c["cases"][0].update(values={"z": [1, math.inf]})), "Infinity"),
    "time": (damaged(lambda c: c["cases"][0].update(milliseconds={"median": 1})), r"cases\[0\].milliseconds"),
    "twice": (damaged(lambda c: c["cases"].append(c["cases"][0])), "repeats"),
    "settings": (damaged(lambda c: c["settings"].update(quick=False)), "settings.quick = False"),
    "version": (damaged(lambda c: c["surroundings"].update(torch="1.0")), "surroundings.torch = '1.0'"),
    "not text": (lambda content: "\udcff", "not JSON"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_that_is_not_ours_is_named_and_left_alone(name, tmp_path, capsys):
    change, said = DAMAGES[name]
    fake = Fake()
    fake.run(tmp_path)
    (tmp_path / FILE).write_text(change(read(tmp_path)), errors="surrogateescape")
    before = (tmp_path / FILE).read_bytes()
    assert fake.run(tmp_path) == 2
    message = capsys.readouterr().err
    assert str(tmp_path / FILE) in message
    assert re.search(said, message)
    assert "--fresh" in message
    assert (tmp_path / FILE).read_bytes() == before
    assert fake.run(tmp_path, fresh=True) == 0
    assert checked(tmp_path / FILE)


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    fake = Fake()
    assert fake.run(tmp_path / "file") == 2
    assert str(tmp_path / "file" / FILE) in capsys.readouterr().err
    assert not fake.measured


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert Fake().run(tmp_path) == 2
    assert f"cannot write {tmp_path / FILE}: Permission denied" in capsys.readouterr().err
    tmp_path.chmod(0o700)


def test_a_full_disk_leaves_earlier_results(tmp_path, monkeypatch, capsys):
    Fake(two=KeyboardInterrupt()).run(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    capsys.readouterr()
    write = Path.write_bytes

    def full(path, data):
        write(path, data[:20])
        if data:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert Fake().run(tmp_path) == 2
    assert f"cannot write {tmp_path / FILE}: No space left on device" in capsys.readouterr().err
    assert (tmp_path / FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_an_interrupt_while_saving_leaves_a_whole_file(tmp_path, monkeypatch):
    Fake(two=KeyboardInterrupt()).run(tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def interrupted(path, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    assert Fake().run(tmp_path) == 130
    assert (tmp_path / FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_no_cuda(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert Fake().run(tmp_path, Settings(device="cuda")) == 2
    assert "no CUDA device" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_terminal_gets_a_bar_and_a_pipe_plain_lines(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with (tmp_path / "pipe").open("w") as pipe, (tmp_path / "terminal").open("w") as terminal:
        Fake().run(tmp_path / "1", console=Console(file=pipe, width=40))
        Fake().run(tmp_path / "2", console=Console(file=terminal, force_terminal=True))
    plain = (tmp_path / "pipe").read_text()
    assert "\x1b" not in plain
    assert "fake: 2 contestants k=1 0.0 s" in plain.splitlines()
    assert "\x1b" in (tmp_path / "terminal").read_text()


def test_no_colour(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with (tmp_path / "terminal").open("w") as terminal:
        Fake().run(tmp_path, console=Console(file=terminal, force_terminal=True))
    assert not re.search("\x1b\\[[0-9;]*3[0-9]", (tmp_path / "terminal").read_text())


@pytest.fixture
def tiny(monkeypatch):
    """One call each, of few small matrices."""
    monkeypatch.setattr(racing, "take_turns", _one_call)
    make = racing.matrices
    for module in (racing, forward, backward, scalar):
        monkeypatch.setattr(module, "matrices", lambda batch, n: make(min(batch, 3), min(n, 12)))


def _one_call(works, rounds, device, patience):
    laps, failures = {}, {}
    for name, work in works.items():
        try:
            work()
            laps[name] = [1e-3, 2e-3]
        except RuntimeError as error:
            failures[name] = str(error)
    return laps, failures


WITHOUT_TIMES = ("scalar", "residuals", "accuracy")
ERRORS = {
    "forward": {"mae", "nrmse"},
    "backward": {"gradient"},
    "batch": {"root", "gradient"},
    "dimension": {"root", "gradient"},
    "schemes": {"gradient"},
    "accuracy": {"root", "inverse", "root_gradient", "inverse_gradient"},
    "speed": {"root", "gradient"},
    "applications": {"root", "gradient"},
    "pade": {"root", "gradient"},
}
PARAMETERS = {
    "batch": {"batch"},
    "dimension": {"n"},
    "applications": {"shape", "output"},
    "accuracy": {"spectrum", "condition"},
    "speed": {"batch", "n"},
    "pade": {"degree", "inverse"},
}
VALUES = {
    "forward": {"matrices"},
    "scalar": {"z", "value", "error"},
    "residuals": {"steps", "residual"},
    "schemes": {"megabytes"},
    "accuracy": {"forward_products", "backward_products"},
}


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", suites.SUITES)
def test_quick_cases_are_as_the_format_has_them(name, dtype, tmp_path, capsys):
    settings = Settings(dtype=dtype, quick=True)
    assert runner.run(settings, tmp_path, [name]) == 0, capsys.readouterr().err
    _, content = checked(tmp_path / f"bench-cpu-{dtype}.json")
    assert content["cases"]
    for case in content["cases"]:
        assert case["suite"] == name
        assert (case["milliseconds"] is None) == (name in WITHOUT_TIMES)
        assert set(case["parameters"]) == PARAMETERS.get(name, set(case["parameters"]))
        if case["contestant"] == "scipy":
            assert case["errors"]["root"] < 1e-2
            assert case["errors"].get("gradient") is None
            assert case["note"] == contestants.VALUE_ALONE
            continue
        assert ERRORS.get(name, set()) <= set(case["errors"])
        assert set(case["values"]) == VALUES.get(name, set())
        assert case["note"] is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("name", suites.SUITES)
def test_quick_cases_on_cuda(name, tmp_path, capsys):
    assert runner.run(Settings("cuda", quick=True), tmp_path, [name]) == 0, capsys.readouterr().err
    _, content = checked(tmp_path / "bench-cuda-float32.json")
    assert {case["note"] for case in content["cases"]} <= {None, "left out: SciPy computes on the CPU"}


@pytest.mark.parametrize("name", suites.SUITES)
def test_names_of_a_full_run_are_unique(name):
    found = [case.name for group in suites.SUITES[name](Settings()) for case in group.cases]
    assert len(set(found)) == len(found)


@pytest.mark.usefixtures("tiny")
def test_a_broken_method_is_caught(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(matroot.Pade, "evaluate", lambda self, A, wanted: (1.5 * A,))
    assert runner.run(QUICK, tmp_path, ["forward"]) == 1
    assert "pade degree=9 inverse=False: wrong answer: nrmse error" in capsys.readouterr().err


def test_contestants_take_turns_in_alternating_order():
    order = []
    turns.take_turns({name: partial(order.append, name) for name in "abc"}, 2, "cpu", 1.0)
    firsts = [name for name, before in zip(order, [None, *order], strict=False) if name != before]
    assert firsts == list("abcbabc")


@pytest.fixture
def clock(monkeypatch):
    """Time passes only in calls, which are given as seconds."""
    now = [0.0]

    class Work:
        def __init__(self, *takes):
            self.takes, self.calls = list(takes), 0

        def __call__(self):
            now[0] += self.takes[min(self.calls, len(self.takes) - 1)]
            self.calls += 1

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return Work


def test_slow_contestants_have_few_turns_and_quick_ones_all(clock):
    works = {"slowest": clock(20.0), "slow": clock(1.5), "quick": clock(0.01)}
    laps, failures = turns.take_turns(works, 8, "cpu", 1.0)
    times = {"slowest": [20.0] * 2, "slow": [1.5] * 3, "quick": [0.01] * 24}
    assert laps == {name: pytest.approx(seconds) for name, seconds in times.items()}
    assert (works["slowest"].calls, works["slow"].calls) == (3, 4)
    assert not failures


def test_compiling_is_not_timed(clock):
    laps, _ = turns.take_turns({"compiled": clock(30.0, 0.2)}, 4, "cpu", 10.0)
    assert laps == {"compiled": pytest.approx([0.2] * 4)}


def test_who_takes_long_on_a_cpu_is_left_out_and_says_why():
    everyone = {c.name: c for c in contestants.everyone("root")}
    assert "as long as svd" in everyone["svd-pade"].obstacle("cpu", 256, 256)
    assert everyone["svd-pade"].obstacle("cuda", 256, 256) is None
    for name in ("auto", "eigh", "svd", "mpa-lya", "ns"):
        assert everyone[name].obstacle("cpu", 10000, 64) is None
    assert everyone["scipy"].obstacle("cpu", 64, 64) is None
    assert everyone["scipy"].obstacle("cpu", 64, 128)
    assert "CPU" in everyone["scipy"].obstacle("cuda", 1, 8)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", ["speed", "accuracy"])
def test_without_scipy(name, tmp_path, monkeypatch):
    monkeypatch.setattr(contestants, "find_spec", lambda package: None)
    assert runner.run(QUICK, tmp_path, [name]) == 0
    notes = {case["note"] for case in read(tmp_path)["cases"] if case["contestant"] == "scipy"}
    assert notes == {"left out: SciPy is not installed"}


def test_one_contestant_that_fails_leaves_the_others():
    def broken():
        raise RuntimeError("out of memory")

    found = racing.contest({"a": (broken, lambda: ({}, {})), "b": (list, lambda: ({"root": 1.0}, {}))}, QUICK)
    assert found["a"].note == "failed: RuntimeError: out of memory"
    assert found["a"].milliseconds is None
    assert found["b"].note is None
    assert set(found["b"].milliseconds) == {"median", "low", "high", "least"}


@pytest.mark.parametrize(
    "method", [matroot.Taylor(), matroot.Pade(), matroot.NewtonSchulz(), matroot.NewtonSchulz(norm="trace")]
)
@pytest.mark.parametrize("inverse", [False, True])
def test_bounds_of_truncated_methods_are_tight(method, inverse):
    A = problems.covariances(4, 16)
    true = baselines.EighRoot.apply(inverse, A)
    found = (matroot.invsqrtm if inverse else matroot.sqrtm)(A, method)
    bound = theory.value_bound(method, torch.linalg.eigvalsh(A), 2.2e-16, inverse)
    assert 0.9 * bound < racing.worst(found, true) <= bound


@pytest.mark.parametrize("iterations", [4, 8])
def test_the_scalar_steps_of_lyapunov_are_the_rule(iterations):
    A, G = problems.covariances(2, 8), problems.symmetric(2, 8)
    values, U = torch.linalg.eigh(A)
    expected = U @ (theory.lyapunov_factor(values, iterations) * (U.mT @ G @ U)) @ U.mT
    rule = partial(matroot.sqrtm, method="eigen", gradient=matroot.Lyapunov(iterations=iterations))
    torch.testing.assert_close(problems.value_and_gradient(rule, A, G)[1], expected)


def test_other_methods_have_no_approximant_and_no_bound():
    values = torch.ones(1, 2, dtype=torch.float64)
    with pytest.raises(TypeError, match="PowerIteration"):
        theory.approximant(matroot.PowerIteration(), values)
    assert theory.value_bound(matroot.PowerIteration(), values, 1e-7) is None
    assert theory.value_bound(matroot.NewtonSchulz(iterations=30), values, 1e-7) is None


def test_both_roots_from_one_decomposition_are_the_two_roots():
    A, G = problems.covariances(3, 6), problems.symmetric(3, 6)
    outputs, gradient = racing.step(contestants.eigh("both"), A.clone().requires_grad_(), G)
    exact = racing.Exact(A, G, "both")
    for found, true in zip((*outputs, gradient), (*exact.outputs, exact.gradient), strict=True):
        torch.testing.assert_close(found, true)


def test_the_command(tmp_path, capsys):
    call = ["bench", "--quick", "--suite", "scalar", "--suite", "residuals", "--out", str(tmp_path)]
    assert main.main(call) == 0
    assert {case["suite"] for case in read(tmp_path)["cases"]} == {"scalar", "residuals"}
    assert main.main(call) == 0
    assert "14 of 14 groups are there" in capsys.readouterr().out


def test_an_unknown_suite_lists_the_valid_ones(capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["bench", "--suite", "nonsense"])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert all(name in said for name in suites.SUITES)


def test_help_describes_every_option(capsys):
    with pytest.raises(SystemExit):
        main.main(["bench", "--help"])
    said = capsys.readouterr().out
    for option in ("--suite", "--quick", "--device", "--dtype", "--out", "--fresh"):
        assert re.search(rf"{option}[^\n]*\s+\w", said)
