"""Result files of the programs beside ``matroot bench``: what they become, and how wrong ones are explained."""

import copy
import re

import pytest

from matroot.bench.layer_cost import COMPILED
from matroot.bench.report import ResultError, content_of, page
from matroot.bench.report.findings import suite_findings
from matroot.bench.report.sections import SECTIONS

from .example_results import gpu, load, program, times_of

SHAPE = {"batch": 4, "n": 64}
BOTH = {"single": times_of(2.0), "back_to_back": times_of(1.5)}
COMPARED = [
    {
        "case": f"4 x {n}, log",
        "batch": 4,
        "n": n,
        "notes": {"cupy eigh": "not installed"},
        "milliseconds": {"matroot forward": BOTH, "jax eigh": {"single": times_of(n), "back_to_back": times_of(n)}},
        "graph_milliseconds": {"matroot forward": times_of(0.5)},
        "errors": {"matroot": {"root": 1e-6}, "torch eigh": {"root": n * 1e-6}},
    }
    for n in (16, 32)
]
FASTER = "takes between 8 (4 matrices 16 x 16) and 16 (4 matrices 32 x 32) times as long as the root of matroot"
EXAMPLES = {
    **{suite: program(f"gpu --suites {suite}", COMPARED) for suite in ("hard", "large", "float64", "singular")},
    "overhead": program(
        "gpu --suites overhead",
        [
            {"case": "1 x 64", "batch": 1, "n": 64, "notes": {}}
            | {
                "milliseconds": {
                    "matroot": BOTH,
                    "empty Function": {"single": times_of(1), "back_to_back": times_of(0.5)},
                }
            }
        ],
    ),
    "first-use": program(
        "gpu --suites first-use",
        [{"case": "1 x 64", "seconds": {"empty": {"first": 4.0}, "filled": {"first": 0.5}}, "notes": {}}],
    ),
    "steps": program(
        "gpu --suites steps",
        [{"case": "4 x 64", "n": 64, "milliseconds": {"63": 1.0, "64": 1.1, "65": 2.2}, "notes": {}}],
    ),
    "gpu": gpu(
        *((4, n, {"auto": 0.5, "jax eigh": n / 8, "paper": 4.0}, {"auto": 2e-7, "paper": 0.02}) for n in (16, 32))
    ),
    "default": program(
        "solver speed",
        [
            {"batch": 4, "n": n, "milliseconds": {"auto": times_of(1.0), "eigh": times_of(n)}, "root_error": 1e-7}
            for n in (8, 16)
        ],
    ),
    "precision": program(
        "solver accuracy",
        [
            {"dtype": dtype, "spectrum": "log", "condition": 1e4, "solver": solver}
            | {f"{kind}_error": error for kind in ("root", "inverse", "root_gradient", "inverse_gradient")}
            | {way: {"products": 9} for way in ("forward", "backward")}
            for dtype in ("float32", "float64")
            for solver, error in (("minimax+smith", 1e-6), ("eigh", 3e-6))
        ],
    ),
    "crossover": program(
        "solver crossover",
        [
            {"dtype": "complex64", "condition": 1e4, "batch": 16, "n": n}
            | {"milliseconds": {"minimax+smith": times_of(1.0), "eigh": times_of(16 / n)}}
            for n in (8, 32)
        ],
    ),
    "memory": program(
        "solver memory",
        [
            {**SHAPE, "solver": solver, "bytes": size * 2**20, "batches": size}
            for solver, size in (("minimax+smith", 2), ("eigh", 6))
        ],
    ),
    "layers": program(
        "layer_cost",
        [
            {
                "case": "ResNet",
                "milliseconds": {name: {"single": times_of(t)} for name, t in (("plain", 2.0), ("whitened", 3.0))},
                "graph_milliseconds": {"plain": times_of(1.0), "whitened": times_of(1.2)},
            }
        ],
    ),
}
FOUND = {
    **dict.fromkeys(("hard", "large", "float64"), f"the fastest decomposition alone (torch, JAX or CuPy) {FASTER}"),
    "singular": f"the root by torch.linalg.eigh {FASTER}",
    "overhead": "Calls in a row of 1 x 64 take 1500 µs each, those of an empty Function 500 µs.",
    "first-use": "The first call of a process takes up to 4 s (1 x 64), 0.5 s with kernels on disk.",
    "steps": "The largest growth of a time from one n to the next is 2-fold (4 x 64, from n = 64 to 65).",
    "gpu": "(JAX), which has no root or gradient in it, takes between 4 (4 matrices 16 x 16)",
    "default": "eigh with the exact gradient takes between 8 (4 matrices 8 x 8) and 16 (4 matrices 16 x 16) times",
    "precision": "float32 is 1.0·10⁻⁶, with spectrum log of condition 10000; there torch.linalg.eigh 3.0·10⁻⁶.",
    "crossover": "matroot (smith) in complex64 at condition 10000 is slower for 16 matrices 32 x 32.",
    "memory": "For 4 matrices 64 x 64 the default needs 2 MB beyond its results; torch.linalg.eigh 6 MB.",
    "layers": "whitened takes 3 ms, 1.5 times as long as plain (2 ms); inside a CUDA graph 1.2 ms and 1 ms.",
}


@pytest.mark.parametrize("suite", EXAMPLES)
def test_every_program_has_its_section_its_figure_and_its_finding(tmp_path, suite):
    found = load(tmp_path, EXAMPLES[suite])
    (part,) = content_of([found]).sections
    assert part.suite == suite
    assert part.figures
    assert FOUND[suite] in part.findings[0][0].text


def test_errors_that_could_not_be_measured_have_their_reason(tmp_path):
    """As the program writes them."""
    found = gpu((4, 16, {"auto": 0.5, "paper": 4.0}, {"auto": 2e-7}))
    found["results"][0]["errors"]["paper"] = {"root": None, "gradient": None, "note": "RuntimeError: no memory"}
    _, paper, _ = load(tmp_path, found).cases
    assert (paper.contestant, paper.time, paper.errors, paper.note) == ("paper", 4.0, {}, "RuntimeError: no memory")


@pytest.mark.parametrize("suite", ["precision", "singular"])
def test_the_largest_error_is_the_one_that_is_no_number(tmp_path, suite):
    found = copy.deepcopy(EXAMPLES[suite])
    for result in found["results"]:
        if suite == "singular":
            result["errors"]["torch eigh"]["root"] = None
        else:
            result["root_error"] = None
    said = [finding.text for finding in suite_findings(suite, load(tmp_path, found))]
    expected = {"singular": "torch eigh nan", "precision": "The largest error of a root in float32 is nan, with"}
    assert any(expected[suite] in text for text in said)


def test_errors_of_different_dtypes_are_not_mixed(tmp_path):
    found = copy.deepcopy(EXAMPLES["float64"])
    for result, dtype in zip(found["results"], ("float64", "complex64"), strict=True):
        result["dtype"] = dtype
    _, one, other = (finding.text for finding in suite_findings("float64", load(tmp_path, found)))
    assert one == "Largest error of a root in float64: matroot 1.0·10⁻⁶ and torch eigh 1.6·10⁻⁵."
    assert other == "Largest error of a root in complex64: matroot 1.0·10⁻⁶ and torch eigh 3.2·10⁻⁵."


def test_a_layer_beside_a_network_is_not_faster_than_it(tmp_path):
    found = copy.deepcopy(EXAMPLES["layers"])
    found["results"][0]["milliseconds"]["whitened"]["single"] = times_of(0.5)
    (finding,) = suite_findings("layers", load(tmp_path, found))
    assert "whitened takes 0.5 ms, 0.25 times as long as plain (2 ms)" in finding.text


def test_layers_of_a_compiled_network_are_other_marks(tmp_path):
    """In the rows of the same layers, where they would look like those of the network that is not compiled."""
    found = copy.deepcopy(EXAMPLES["layers"])
    compiled = {name: {"single": times_of(0.5)} for name in ("plain", "whitened")}
    found["results"].append({"case": f"ResNet, {COMPILED}", "milliseconds": compiled})
    (figure,) = SECTIONS["layers"].figures
    series = figure.series(load(tmp_path, found).suite("layers"))
    assert {one.name: list(one.points) for one in series} == {
        "with Python": [(2.0, 0.0), (3.0, 1.0)],
        "inside a CUDA graph": [(1.0, 0.0), (1.2, 1.0)],
        "torch.compile, reduce-overhead": [(0.5, 0.0), (0.5, 1.0)],
    }


def test_what_a_forward_pass_of_eigh_is():
    """Of singular matrices the root by it, everywhere else the decomposition."""
    alone = {suite for suite, about in SECTIONS.items() if "is the decomposition alone" in about.about}
    assert alone == {"hard", "large", "float64"}


def test_a_page_of_all_programs(tmp_path):
    files = [load(tmp_path, found, f"{name}.json") for name, found in EXAMPLES.items()]
    html = page(content_of(files))
    assert re.findall(r'<section id="suite-([\w-]+)"', html) == [suite for suite in SECTIONS if suite in EXAMPLES]
    assert html.count("base64,") == len(EXAMPLES)


def test_times_inside_a_graph_stand_beside_those_of_calls(tmp_path):
    found = load(tmp_path, EXAMPLES["gpu"])
    *_, graph = suite_findings("gpu", found)
    assert graph.text.endswith("4 matrices 16 x 16 takes 0.05 ms instead of 0.5 ms, 10 times as fast.")
    notes = [case.note for case in found.cases if case.contestant == "cupy eigh"]
    assert notes == ["not installed"] * 2


PRECISE = EXAMPLES["precision"]["results"][0]
SURROUNDINGS = EXAMPLES["gpu"]["surroundings"]


def without(found, key):
    return {name: value for name, value in found.items() if name != key}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (EXAMPLES["gpu"] | {"command": "python -m other"}, "field command must begin with one of: python -m matroot"),
        (EXAMPLES["gpu"] | {"results": {}}, "field results must be a list"),
        (EXAMPLES["gpu"] | {"surroundings": {"date": ""}}, "field surroundings must name date, processor, torch"),
        (EXAMPLES["gpu"] | {"results": [3]}, "field results[0] is not as python -m matroot.bench.gpu writes it"),
        (program("solver memory", [SHAPE | {"solver": "a", "batches": 1}]), "field results[0] has no 'bytes'"),
        (program("solver memory", [SHAPE | {"solver": "a", "bytes": -1}]), "-1 is no measurement"),
        (program("solver memory", [{"batch": 0}]), "0 is no size"),
        (program("solver memory", [SHAPE | {"solver": "a", "bytes": 10**400}]), "is no measurement"),
        (program("solver accuracy", [PRECISE | {"spectrum": ["log"]}]), "results[0].parameters.spectrum must be a"),
        (program("solver accuracy", [PRECISE | {"condition": 1e300}]), "results[0].parameters.condition must be a"),
        (program("gpu --suites hard", [COMPARED[0] | {"notes": {"a": 3}}]), "results[0].note must be a string or null"),
        (EXAMPLES["gpu"] | {"versions": 3}, "field versions must be an object"),
        (EXAMPLES["gpu"] | {"surroundings": SURROUNDINGS | {"cores": [[1]]}}, "field surroundings.cores must be a"),
        (without(EXAMPLES["gpu"], "results"), 'field format must be "matroot-bench 1"'),
    ],
)
def test_wrong_files_are_explained(tmp_path, found, message):
    with pytest.raises(ResultError, match=re.escape(message)):
        load(tmp_path, found)


def test_a_quick_run_says_so(tmp_path):
    found = EXAMPLES["memory"] | {"command": "python -m matroot.bench.solver memory --quick"}
    assert "the numbers are rough" in page(content_of([load(tmp_path, found)]))
