"""The first screen: which machines, shapes and files, and what it says."""

import pytest

from matroot._page.drawing import PAPER, drawing
from matroot.bench.report import content_of
from matroot.bench.report.findings.headline import headline_findings
from matroot.bench.report.headline import headline_drawings
from matroot.bench.report.machines import machines

from .example_results import case, document, gpu, load

TIMES = {"auto": 0.5, "jax eigh": 1.0, "paper": 4.0, "ns": 5.0, "torch eigh": 50.0}
ERRORS = {"auto": 2e-7, "torch eigh": 1e-5, "paper": 0.02}


@pytest.fixture
def h200(tmp_path):
    slower = {name: 3 * time for name, time in TIMES.items()} | {"auto": 6.0}
    return load(tmp_path, gpu((64, 48, TIMES, ERRORS), (256, 256, slower, {"auto": 4e-7})), "gpu.json")


def test_the_batched_eigensolver_comes_first_and_slower_shapes_are_said(h200):
    (machine,) = machines([h200])
    batched, paper, loop, exact = headline_findings(machine)
    assert batched.sentence == (
        "0.5 to 2 times as fast as the batched eigendecomposition (JAX), which has no root or gradient in"
        " it; slower at 1 of 2 shapes."
    )
    assert paper.sentence == "2 to 8 times as fast as the paper's method."
    assert loop.sentence.endswith("through torch 2.11's eigh, which takes matrices above 32 x 32 one by one.")
    assert exact.sentence == (
        "4.0·10⁻⁷ is the largest error of a root, 8.0·10⁻⁷ of a gradient; torch eigh 1.0·10⁻⁵ and 2.0·10⁻⁵ and the"
        " paper's method 0.02 and 0.04."
    )
    assert [one.contestant for one in batched.cases] == ["auto", "jax eigh"] * 2


def test_versions_and_date_are_those_of_the_file_that_is_shown(h200, tmp_path):
    bench = load(tmp_path, document("cuda", suites=("speed",)), "bench.json")
    (machine,) = machines([bench, h200])
    assert machine.versions == "torch 2.11.0, triton 3.6.0, jax 0.11.2, float32; matroot 0.1.0, 2026-01-03"


def test_the_latest_file_of_a_device_counts(tmp_path):
    older = load(tmp_path, gpu((64, 48, TIMES, ERRORS)), "older.json")
    faster = TIMES | {"auto": 0.25}
    newer = load(tmp_path, gpu((64, 48, faster, ERRORS), date="2026-01-04T00:00:00+00:00"), "newer.json")
    (machine,) = machines([older, newer])
    assert machine.shapes[0].cases["auto"].time == 0.25
    assert machine.file.path.name == "newer.json"


def test_a_quick_run_does_not_speak_for_a_machine(h200, tmp_path):
    quick = gpu((64, 48, TIMES, ERRORS), date="2026-01-04T00:00:00+00:00")
    quick["command"] += " --quick"
    (machine,) = machines([load(tmp_path, quick, "quick.json"), h200])
    assert machine.file is h200


def test_a_machine_each_and_gpus_first(h200, tmp_path):
    cpu = load(tmp_path, document(suites=("speed", "applications")), "cpu.json")
    found = machines([cpu, h200])
    assert [machine.name for machine in found] == ["NVIDIA Example 1", "Example Processor 9000"]
    assert [(shape.batch, shape.n) for shape in found[1].shapes] == [(1, 64), (64, 48), (16, 128), (256, 256)]


def test_times_of_a_shape_come_from_one_suite(tmp_path):
    """Those of different suites were not taken in turns."""
    cases = [case("speed", name, {"batch": 64, "n": 48}, time) for name, time in (("auto", 1.0), ("eigh", 2.0))]
    shape = {"shape": "64 x 48 x 48", "output": "root"}
    cases += [case("applications", name, shape, time) for name, time in (("auto", 7.0), ("ns", 8.0))]
    (machine,) = machines([load(tmp_path, document(suites=()) | {"cases": cases})])
    (shape,) = machine.shapes
    assert {name: one.time for name, one in shape.cases.items()} == {"auto": 1.0, "eigh": 2.0}


def test_errors_are_the_largest_of_both_names_of_the_papers_method(tmp_path):
    """Which of them a suite has differs; neither hides the other."""
    cases = []
    for n, name, error in ((48, "paper", 0.3), (64, "mpa-lya", 0.2)):
        for contestant, own in (("auto", 1e-7), (name, error)):
            cases.append(case("speed", contestant, {"batch": 2, "n": n}, 1.0, {"root": own}))
    (machine,) = machines([load(tmp_path, document(suites=()) | {"cases": cases})])
    *_, exact = headline_findings(machine)
    assert exact.sentence == "1.0·10⁻⁷ is the largest error of a root; the paper's method 0.3."


def test_an_error_that_is_no_number_is_the_largest(tmp_path):
    shapes = [
        (1, 64, {"auto": 0.5, "jax eigh": 1.0}, {"auto": 1e-7}),
        (64, 48, {"auto": 0.5, "jax eigh": 1.0}, {"auto": 1e-7}),
    ]
    found = gpu(*shapes)
    found["results"][1]["errors"]["auto"]["root"] = None
    (machine,) = machines([load(tmp_path, found)])
    *_, exact = headline_findings(machine)
    assert exact.sentence == "nan is the largest error of a root, 2.0·10⁻⁷ of a gradient."


def test_figures_say_what_is_no_number(tmp_path):
    """Of SciPy, which has no gradient, the root alone is shown."""
    cases = [
        case("speed", name, {"batch": 2, "n": n}, 1.0, {"root": error, "gradient": None})
        for n in (48, 64)
        for name, error in (("auto", None), ("scipy", 1e-7))
    ]
    (machine,) = machines([load(tmp_path, document(suites=()) | {"cases": cases})])
    ((_, error),) = headline_drawings([machine])
    with drawing(PAPER, "bench"):
        (axes,) = error.draw(PAPER).axes
    assert [text.get_text() for text in axes.texts].count("nan") == 2


def test_other_outputs_than_the_root_are_no_headline(tmp_path):
    shape = {"shape": "1 x 64 x 64", "output": "inverse"}
    cases = [case("applications", name, shape, 1.0) for name in ("auto", "eigh")]
    assert machines([load(tmp_path, document(suites=()) | {"cases": cases})]) == []


def test_batched_eigensolvers_of_torch_do_not_take_matrices_one_by_one(tmp_path):
    found = gpu((64, 48, TIMES, ERRORS))
    found["surroundings"]["torch"] = "2.12.1"
    (machine,) = machines([load(tmp_path, found)])
    assert "through torch 2.12's eigh." in headline_findings(machine)[2].text


def test_figures_have_time_and_error_of_every_machine(h200):
    ((time, error),) = content_of([h200]).headlines
    assert (time.title, error.title) == ("How long: NVIDIA Example 1", "How exact: NVIDIA Example 1")
    assert time.description.startswith("0.5 to 2 times as fast as the batched eigendecomposition")
