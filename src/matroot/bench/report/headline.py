"""The headline figures: everybody's time and error at the common shapes, one pair of charts for each machine."""

import math
from collections.abc import Sequence

from .case import Case
from .charts import Axis, Bar, Group, Range, axis_range, bar_chart
from .drawings import Drawing
from .findings.headline import headline_findings
from .machines import FORWARD_ONLY, NAMES, Machine, Shape
from .series import STYLES

TIME, ERROR = Axis("milliseconds, root and gradient"), Axis("relative error: ● root, ○ gradient")


def headline_drawings(all_machines: Sequence[Machine]) -> list[list[Drawing]]:
    """Time and error of every machine; all times, and all errors, on one axis."""
    shapes = [shape for machine in all_machines for shape in machine.shapes]
    measured = [case for shape in shapes for case in shape.cases.values()]
    time_range = _wide(axis_range((case.time for case in measured if case.time), TIME))
    errors = (case.errors.get(kind) for case in measured for kind in ("root", "gradient"))
    error_range = axis_range((e for e in errors if e), ERROR)
    return [_drawings(machine, k, time_range, error_range) for k, machine in enumerate(all_machines)]


def _wide(ends: Range | None) -> Range | None:
    """Room for the shortest bar and for the number after the longest."""
    return (ends[0] / 2, ends[1] * 6) if ends else None


def _drawings(machine: Machine, k: int, time_range: Range | None, error_range: Range | None) -> list[Drawing]:
    said = " ".join(finding.sentence for finding in headline_findings(machine))
    found = []
    for name, title, axis, ends in (
        ("time", "How long", TIME, time_range),
        ("error", "How exact", ERROR, error_range),
    ):
        if ends is not None:
            groups = tuple(_group(shape, name, machine.torch) for shape in machine.shapes)
            chart = Drawing(
                f"headline-{k + 1}-{name}",
                f"{title}: {machine.name}",
                title,
                said,
                lambda palette, axis=axis, ends=ends, groups=groups: bar_chart(palette, axis, ends, groups),
            )
            found.append(chart)
    return found


def _group(shape: Shape, what: str, torch: str) -> Group:
    cases = [shape.cases[name] for name in NAMES if name in shape.cases and not shape.cases[name].is_empty]
    bars = (
        Bar(
            NAMES[case.contestant].format(torch=torch),
            (case.time,) if what == "time" else (_error(case, "root"), _error(case, "gradient")),
            STYLES[case.contestant],
            partial=case.contestant in FORWARD_ONLY,
        )
        for case in cases
    )
    return Group(shape.title, tuple(bars))


def _error(case: Case, kind: str) -> float | None:
    """NaN where it is no number; of those without a gradient none was measured."""
    if case.is_nan(kind) and not (kind == "gradient" and case.contestant in FORWARD_ONLY):
        return math.nan
    return case.errors.get(kind)
