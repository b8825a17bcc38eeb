"""Sections of the programs beside ``matroot bench``."""

from collections.abc import Callable

from ..batched_eigh import BATCHED_SINCE, ONE_BY_ONE_ABOVE
from ..layer_cost import COMPILED
from .case import Case
from .charts import Axis
from .figures import Figure
from .results import SINGULAR
from .section import ERROR, MS, NO_AXIS, Section
from .series import by_contestant, in_rows, shape_row, time_of_contestant

IN_GRAPH = "in a CUDA graph"
ALONE = "A forward pass of torch.linalg.eigh is the decomposition alone."
ITSELF = "In float64 the errors of eigh are distances to itself: the reference is the same decomposition."
BATCHED = ".".join(map(str, BATCHED_SINCE))
LARGEST = f"{ONE_BY_ONE_ABOVE} x {ONE_BY_ONE_ABOVE}"


def _in_graph_too(case: Case) -> list[tuple[str, float | None]]:
    return [*time_of_contestant(case), (IN_GRAPH, case.values.get(IN_GRAPH))]


def _ways(case: Case) -> list[tuple[str, float | None]]:
    """A network is measured again when it is compiled, with the same layers."""
    compiled = str(case.parameters.get("network")).endswith(COMPILED)
    way = f"torch.compile, {COMPILED}" if compiled else "with Python"
    return [(way, case.time), ("inside a CUDA graph", case.values.get(IN_GRAPH))]


def _title(case: Case) -> str:
    return str(case.parameters.get("case"))


def _compared(title: str, about: str) -> Section:
    """Times and errors of problems that have titles."""
    errors = in_rows(_title, lambda case: [(case.contestant, case.error("root"))])
    return Section(
        title,
        about,
        figures=(
            Figure("Time of a call", MS, NO_AXIS, in_rows(_title), _title),
            Figure("Error of the root", ERROR, NO_AXIS, errors, _title),
        ),
    )


def _value(key: str) -> Callable[[Case], list[tuple[str, float | None]]]:
    return lambda case: [(case.contestant, case.values.get(key))]


def _layer(case: Case) -> str:
    return case.contestant


PROGRAM_SECTIONS = {
    "gpu": Section(
        "Every shape on the GPU",
        "Root and gradient, single calls with Python around them. JAX and CuPy: the batched eigendecomposition alone,"
        f" which no root through it can beat. Before torch {BATCHED} torch.linalg.eigh takes matrices above {LARGEST}"
        " one by one.",
        figures=(
            Figure("Time of a call", MS, NO_AXIS, in_rows(shape_row, _in_graph_too), shape_row),
            Figure(
                "Error of the gradient",
                ERROR,
                NO_AXIS,
                in_rows(shape_row, lambda case: [(case.contestant, case.error("gradient"))]),
                shape_row,
            ),
        ),
    ),
    "hard": _compared(
        "Ill-conditioned batches on the GPU", f"Eigenvalues that spread over orders of magnitude. {ALONE}"
    ),
    "large": _compared("Large matrices on the GPU", f"One matrix, or a few. {ALONE}"),
    "float64": _compared(
        "float64 and complex on the GPU",
        f"Wide types, and the Fréchet distance of two samples, by roots and by two decompositions. {ALONE} {ITSELF}",
    ),
    "singular": _compared(
        "Singular matrices on the GPU",
        "Half of the eigenvalues are zeros. torch eigh is the root by torch.linalg.eigh: decomposition and product.",
    ),
    "overhead": Section(
        "A call beside its kernels",
        "One small matrix, root and gradient, called eagerly; and an autograd Function that does nothing.",
        figures=(Figure("Time of a call", MS, NO_AXIS, in_rows(_title, _value("in a row")), _title),),
    ),
    "first-use": Section(
        "The first call of a process",
        "Seconds until the first result, with kernels to compile and with kernels on disk.",
        figures=(Figure("First call", Axis("seconds"), NO_AXIS, in_rows(_title, _value("seconds")), _title),),
    ),
    "steps": Section(
        "When n grows by one",
        "Root and gradient at neighbouring sizes, on both sides of those where other kernels take over.",
        figures=(Figure("Time of a step", MS, NO_AXIS, in_rows(_title, _value("milliseconds")), _title),),
    ),
    "precision": Section(
        "Accuracy in both precisions",
        "Largest error over spectra of condition number κ, 64 x 64 matrices, singular ones left out, and solvers where"
        f" one of their results is no number. {ITSELF}",
        figures=tuple(
            Figure(
                f"{dtype}, {what}",
                Axis("condition number"),
                ERROR,
                by_contestant(
                    lambda c, kind=kind: (c.parameters.get("condition"), c.error(kind)),
                    lambda c, dtype=dtype: (
                        c.parameters.get("dtype") == dtype and c.parameters.get("spectrum") != SINGULAR
                    ),
                    largest=True,
                ),
            )
            for dtype in ("float32", "float64")
            for kind, what in (("inverse", "inverse root"), ("inverse_gradient", "gradient of the inverse root"))
        ),
    ),
    "default": Section(
        "Speed of the default, measured again",
        "The same shapes as under Speed of the default, by python -m matroot.bench.solver; further left is faster.",
        figures=(Figure("Time against shape", MS, NO_AXIS, in_rows(shape_row), shape_row),),
    ),
    "crossover": Section(
        "Products or a decomposition",
        "Root and gradient by products in compiled code, of complex matrices as real ones of twice the size, and by an"
        " eigendecomposition: the measurements from which the default is chosen.",
        figures=tuple(
            Figure(
                f"16 matrices, {dtype}, {spectrum}: time against n",
                Axis("n"),
                MS,
                by_contestant(
                    lambda c: (c.parameters.get("n"), c.time),
                    lambda c, own=(16, dtype, condition): (
                        tuple(c.parameters.get(key) for key in ("batch", "dtype", "condition")) == own
                    ),
                ),
            )
            for dtype in ("float32", "float64", "complex64", "complex128")
            for condition, spectrum in ((None, "covariances"), (1e4, "condition 10⁴"))
        ),
    ),
    "memory": Section(
        "Memory",
        "Peak beyond input, output, gradient and saved roots, in tensors of the size of the batch.",
        figures=(
            Figure(
                "Extra memory against shape",
                Axis("times the memory of the batch"),
                NO_AXIS,
                in_rows(shape_row, lambda case: [(case.contestant, case.values.get("batches"))]),
                shape_row,
            ),
        ),
    ),
    "layers": Section(
        "Layers in training",
        "What the layers cost in a training step; bfloat16, channels last.",
        figures=(Figure("Time of a step", MS, NO_AXIS, in_rows(_layer, _ways), _layer),),
    ),
}
