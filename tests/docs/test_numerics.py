"""The numerics page: its table is that of the schedules, its figures show what the text says of them."""

import re
from pathlib import Path

import pytest
import torch

import matroot
from matroot.methods.minimax import schedules_for

from ..installation import needs_compiled_code

pytest.importorskip("matplotlib")

PAGE = Path(__file__).parents[2] / "docs/numerics.md"


def drawn(axes) -> dict[str, list[float]]:
    """The values of every labelled line."""
    return {line.get_label(): list(map(float, line.get_ydata())) for line in axes.lines}


def test_the_table_is_that_of_the_schedules():
    rows = re.findall(r"^\| ([\d,]+) \| ([\d, ]+) \| (\d+) \| (\S+) \|$", PAGE.read_text(), re.MULTILINE)
    schedules = schedules_for(torch.float32)
    assert len(rows) == len(schedules)
    for (condition, degrees, products, error), schedule in zip(rows, schedules, strict=True):
        assert float(condition.replace(",", "")) == schedule.condition
        assert [int(degree) for degree in degrees.split(",")] == [len(q) - 1 for q in schedule.steps]
        # A first step of degree 2 takes the square and Y, every other one five products.
        assert (len(schedule.steps[0]), int(products)) == (3, 2 + 5 * (len(schedule.steps) - 1))
        assert error == f"{schedule.error:.1e}"


def test_the_cost_of_a_padé_approximant():
    (last,) = re.findall(r"up to degree (\d+) \$N - 1\$ products and one solve, above \$N\$ solves", PAGE.read_text())
    A = torch.eye(4, dtype=torch.float64).expand(2, 4, 4)
    for degree in range(1, 9):
        with matroot.count_operations(matrices=len(A)) as counts:
            matroot.sqrtm(A, matroot.Pade(degree))
        expected = (degree - 1, 1) if degree <= int(last) else (0, degree)
        assert (counts.products, counts.solves) == expected


def test_compositions_end_at_the_error_of_their_schedule(figures):
    steps, errors = figures("numerics").composition().axes
    inside = [s for line in steps.lines if line.get_label() == "after step 4" for s in line.get_ydata()[200:]]
    assert max(abs(1 - s) for s in inside) < 1e-7
    by_label = drawn(errors)
    for condition in (2e2, 1.2e4, 2.5e6):
        expected = next(s.error for s in schedules_for(torch.float32) if s.condition == condition)
        # The figure's eigenvalues need not hit the largest error; schedules are for an interval one per cent wider.
        assert 0.5 * expected < by_label[f"κ = {condition:,.0f}"][-1] < 1.001 * expected  # and rounding


def test_errors_follow_the_conditioning(figures):
    """Products in float32 stay within a factor of 20 of the dotted line, or of rounding in 64 terms."""
    for axes in figures("numerics").floors().axes:
        lines = drawn(axes)
        *_, line = lines.values()
        pairs = zip(lines["Minimax, float32 products"], line, strict=True)
        assert all(error < max(20 * floor, 5e-6) for error, floor in pairs)


@needs_compiled_code
def test_the_default_on_a_cpu_does_not_follow_it(figures):
    """Beyond condition 200 it computes in float64."""
    for axes in figures("numerics").floors().axes:
        assert max(drawn(axes)["the default on a CPU"]) < 5e-6


def test_gradients_do_not_depend_on_gaps(figures):
    lines = drawn(*figures("numerics").gaps().axes)
    assert max(lines["matroot"]) < 2e-6
    assert lines["torch.linalg.eigh"][6] > 1e-2


def test_preconditioned_gradients_converge_first(figures):
    (axes,) = figures("numerics").solvers().axes
    costs = {line.get_label(): _cost_of(line, 1e-6) for line in axes.lines}
    assert max(costs["Smith"], costs["Krylov"]) < 25 < 50 < min(costs["Implicit"], costs["Lyapunov, the paper's"])


def _cost_of(line, tolerance: float) -> float:
    return next(x for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True) if y < tolerance)


def test_refinement_reaches_float64(figures):
    """After two rounds at condition 1e4: the root to 100 eps, the others to 100 eps κ^(1/2)."""
    eps = torch.finfo(torch.float64).eps
    for axes, allowed in zip(figures("precision").refinement().axes, (100 * eps, 1e4 * eps, 1e4 * eps), strict=True):
        errors = drawn(axes)["κ = 10,000"]
        assert errors[2] < allowed < 1e-8 < errors[0]


def test_three_float16_products_are_as_exact_as_float32(figures):
    for axes in figures("precision").half_products().axes:
        lines = drawn(axes)
        for three, exact, one in zip(lines["three float16 products"], lines["float32"], lines["TF32"], strict=True):
            assert three < 3 * exact < 0.02 * one


def test_the_correction_of_a_shift_is_off_by_less_than_a_third(figures):
    plain, corrected, _ = drawn(*figures("precision").shifted().axes).values()
    assert plain[0] > 0.9
    assert 0.29 < max(corrected) < 0.301
