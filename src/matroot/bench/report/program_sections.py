"""Sections of the programs beside ``matroot bench``."""

from .case import Case
from .charts import Axis
from .figures import Figure
from .results import SINGULAR
from .section import ERROR, MS, NO_AXIS, Section
from .series import by_contestant, in_rows, shape_row, time_of_contestant

CROSSING = ("minimax+smith", "minimax+krylov", "eigh")
IN_GRAPH = "in a CUDA graph"


def _in_graph_too(case: Case) -> list[tuple[str, float | None]]:
    return [*time_of_contestant(case), (IN_GRAPH, case.values.get(IN_GRAPH))]


def _both_ways(case: Case) -> list[tuple[str, float | None]]:
    return [("with Python", case.time), (IN_GRAPH, case.values.get(IN_GRAPH))]


def _layer(case: Case) -> str:
    return case.contestant


PROGRAM_SECTIONS = {
    "gpu": Section(
        "Every shape on the GPU",
        "Root and gradient, single calls with Python around them. JAX and CuPy: the batched eigendecomposition alone,"
        " which no root through it can beat; torch.linalg.eigh of torch 2.11 takes matrices above 32 x 32 one by one.",
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
    "precision": Section(
        "Accuracy in both precisions",
        "Largest error over spectra of condition number κ, 64 x 64 matrices, singular ones left out. In float64"
        " the errors of eigh are distances to itself: the reference is the same decomposition.",
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
        "The default's own benchmark",
        "The same shapes as under Speed, measured by another program; further left is faster.",
        figures=(Figure("Time against shape", MS, NO_AXIS, in_rows(shape_row), shape_row),),
    ),
    "crossover": Section(
        "Products or a decomposition",
        "Root and gradient by products in compiled code, by products of torch, and by an eigendecomposition: the"
        " measurements from which the default is chosen.",
        figures=tuple(
            Figure(
                f"{batch} {'matrix' if batch == 1 else 'matrices'}: time against n",
                Axis("n"),
                MS,
                by_contestant(
                    lambda c: (c.parameters.get("n"), c.time),
                    lambda c, batch=batch: c.parameters.get("batch") == batch and c.contestant in CROSSING,
                ),
            )
            for batch in (1, 64)
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
        figures=(Figure("Time of a step", MS, NO_AXIS, in_rows(_layer, _both_ways), _layer),),
    ),
}
