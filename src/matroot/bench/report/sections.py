"""What each suite is called, what the paper says about it, and its figures."""

from .charts import Axis
from .figures import Figure
from .program_sections import PROGRAM_SECTIONS
from .results import SINGULAR
from .section import ERROR, MS, NO_AXIS, Section
from .series import approximants, by_contestant, curves, in_rows, is_inverse, is_root, shape_row

BENCH_SECTIONS = {
    "speed": Section(
        "Speed of the default",
        "Root and gradient, for many shapes; further left is faster.",
        "The method of the paper, MPA-Lya, is faster than SVD at every batch size and in every dimension.",
        figures=(Figure("Time against shape", MS, NO_AXIS, in_rows(shape_row), shape_row),),
    ),
    "accuracy": Section(
        "Accuracy",
        "Largest error of each solver on matrices of known spectrum, against an eigendecomposition in float64."
        " matroot (smith) is what the default runs in compiled code and on a GPU, matroot (krylov) what it runs in"
        " ordinary operations; SciPy has no gradient. Singular matrices have no condition number and are not drawn, nor"
        " is a solver where one of its results is no number.",
        "SVD is accurate by default. MPA-Lya is always closer than Newton-Schulz; on very ill-conditioned matrices its"
        " linear system may round so that Newton-Schulz is slightly ahead.",
        figures=tuple(
            Figure(
                f"Error of the {what} against the condition number",
                Axis("condition number"),
                ERROR,
                by_contestant(
                    lambda c, kind=kind: (c.parameters.get("condition"), c.error(kind)),
                    lambda c: c.parameters.get("spectrum") != SINGULAR,
                    largest=True,
                ),
            )
            for kind, what in (("root", "root"), ("root_gradient", "gradient"))
        ),
    ),
    "scalar": Section(
        "The scalar picture",
        "How far the approximants are from √(1-z) for |z| < 1.",
        "The Padé approximants are closer than Newton-Schulz and the Taylor polynomial for every z; near z = 1, where"
        " the error of these is larger, they are still reasonable.",
        figures=(
            Figure(
                "√(1-z) and approximants",
                Axis("z", log=False),
                Axis("value", log=False),
                approximants,
            ),
            Figure("Error on |z| < 1", Axis("z", log=False), ERROR, curves()),
        ),
        same_everywhere=True,
    ),
    "forward": Section(
        "Forward: error against time",
        "Covariances of size 64 x 64, without gradients: 10000 of them on a GPU, as in the paper, 1000 on a CPU. Down"
        " and to the left is better.",
        "Taylor (MTP) takes the least time, Padé (MPA) slightly more but is closer; the curve of Padé lies below that"
        " of Newton-Schulz everywhere, and Padé is more exact than Newton-Schulz even at degree 8.",
        figures=(
            Figure(
                "Root: mean absolute error against time",
                MS,
                ERROR,
                by_contestant(lambda c: (c.time, c.error("mae")), is_root, ordered=False),
            ),
            Figure(
                "Inverse root: error of whitening against time",
                MS,
                ERROR,
                by_contestant(lambda c: (c.time, c.error("whitening", "mae")), is_inverse, ordered=False),
            ),
        ),
    ),
    "backward": Section(
        "Backward: time against iterations",
        "The backward pass alone.",
        "The Lyapunov solver with 8 iterations is faster than Newton-Schulz with 5; the inverse root costs only"
        " marginally more.",
        figures=(
            Figure(
                "Root: time against iterations",
                Axis("iterations", log=False),
                MS,
                by_contestant(lambda c: (c.parameters.get("iterations"), c.time), is_root),
            ),
            Figure(
                "Inverse root: time against iterations",
                Axis("iterations", log=False),
                MS,
                by_contestant(lambda c: (c.parameters.get("iterations"), c.time), is_inverse),
            ),
            Figure(
                "Root: error of the gradient against time",
                MS,
                ERROR,
                by_contestant(lambda c: (c.time, c.error("gradient")), is_root, ordered=False),
            ),
        ),
    ),
    "batch": Section(
        "Time against batch size",
        "Forward and backward of the root of 64 x 64 matrices; of SciPy, which has no gradient, the root alone.",
        "MPA-Lya and MTP-Lya are faster than Newton-Schulz and SVD at every batch size. At 64, on a Tesla K40: MPA-Lya"
        " 2.58 times as fast as Newton-Schulz and 27.25 times as fast as SVD; MTP-Lya 5.82 and 61.32 times.",
        figures=(
            Figure(
                "Time against batch size",
                Axis("batch size"),
                MS,
                by_contestant(lambda c: (c.parameters.get("batch"), c.time)),
            ),
        ),
    ),
    "dimension": Section(
        "Time and error against dimension",
        "Forward and backward of the root of four n x n matrices; of SciPy, which has no gradient, the root alone.",
        "MPA-Lya and MTP-Lya are faster than the others in every dimension; below n = 32 Newton-Schulz is not faster"
        " than SVD; MPA-Lya is always closer than Newton-Schulz.",
        figures=(
            Figure("Time against n", Axis("n"), MS, by_contestant(lambda c: (c.parameters.get("n"), c.time))),
            Figure(
                "Error of the root against n",
                Axis("n"),
                ERROR,
                by_contestant(lambda c: (c.parameters.get("n"), c.error("root"))),
            ),
        ),
    ),
    "schemes": Section(
        "Backward schemes",
        "The backward pass of 64 matrices of size 64 x 64 in three ways: its time, and the memory of forward and"
        " backward pass together.",
        "The Lyapunov solver is ahead of both automatic differentiation (RMAD) and the implicit function (IF) in time"
        " and memory.",
        (
            ("scheme", "milliseconds", "megabytes"),
            ("Lyapunov", "2.19", "1.99"),
            ("RMAD (unrolled)", "5.69", "3.08"),
            ("IF (implicit)", "4.71", "2.03"),
        ),
        (
            Figure(
                "Memory against time",
                MS,
                Axis("megabytes", log=False),
                by_contestant(lambda c: (c.time, c.values.get("megabytes")), joined=False),
            ),
        ),
    ),
    "residuals": Section(
        "Residuals against iterations",
        "How the relative residual of the root falls with each step, and how far B of the Lyapunov solver is from I.",
        "The backward iteration converges quadratically; after more than 7 iterations its error is negligible, and 9"
        " are no better than 8.",
        (
            ("iterations", "milliseconds", "‖B - I‖"),
            ("5", "1.14", "0.3541"),
            ("6", "1.33", "0.0410"),
            ("7", "1.52", "7·10⁻⁴"),
            ("8", "1.62", "3·10⁻⁷"),
            ("9", "1.83", "2·10⁻⁷"),
        ),
        (
            Figure(
                "Residual of the root against steps",
                Axis("steps", log=False),
                Axis("residual"),
                curves(lambda case: case.contestant != "lyapunov"),
            ),
            Figure(
                "Lyapunov: ‖B - I‖ against iterations",
                Axis("iterations", log=False),
                Axis("‖B - I‖"),
                curves(lambda case: case.contestant == "lyapunov"),
            ),
        ),
    ),
    "pade": Section(
        "Degree of the Padé approximant",
        "Error and time of [3,3] to [6,6].",
        "The error falls steadily from [3,3] to [5,5]; [6,6] improves only marginally.",
        (("degree", "milliseconds"), ("[3,3]", "0.80"), ("[4,4]", "0.86"), ("[5,5]", "0.93"), ("[6,6]", "0.98")),
        tuple(
            Figure(
                f"{what}: error against degree",
                Axis("degree", log=False),
                ERROR,
                by_contestant(lambda c: (c.parameters.get("degree"), c.error(*c.errors)), keep),
            )
            for keep, what in ((is_root, "Root"), (is_inverse, "Inverse root"))
        ),
    ),
    "applications": Section(
        "Shapes of the applications",
        "Forward and backward at the shapes of the paper's networks.",
        "MPA-Lya against Newton-Schulz and SVD, on a Tesla K40: second-order transformer (64 x 48 x 48) 3.19 and 25.63"
        " times as fast; covariance pooling (256 x 256 x 256) about 1.5 and 21; video (16 x 128 x 128) 1.74 and 10.82.",
        (
            ("milliseconds", "SVD-Padé", "NS", "MPA-Lya", "MTP-Lya"),
            ("1 x 64 x 64 (inverse)", "3.39", "2.96", "2.61", "2.56"),
            ("64 x 48 x 48 (root)", "83.25", "10.38", "3.25", "2.39"),
            ("10 x 64 x 64 (root)", "31.54", "5.79", "3.89", ""),
            ("16 x 128 x 128 (root)", "75.25", "12.11", "6.95", ""),
            ("256 x 256 x 256 (root)", "2335.56", "164.43", "110.61", ""),
            ("4 x 256 x 256 (both, 10 times)", "445.23", "94.37", "69.23", "40.97"),
        ),
        figures=(Figure("Time against shape", MS, NO_AXIS, in_rows(shape_row), shape_row),),
    ),
}
SECTIONS = {"gpu": PROGRAM_SECTIONS["gpu"]} | BENCH_SECTIONS | PROGRAM_SECTIONS
"""In the order of the page."""


def section(suite: str) -> Section:
    """A suite of a later version has its table."""
    return SECTIONS.get(suite) or Section(suite, "Not known to this version: the numbers only.")
