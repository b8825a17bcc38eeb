"""Line and scatter plots as SVG; colours come from the page's style sheet, classes ``c0`` to ``c7``."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ..formatting import mantissa_and_exponent, significant

WIDTH, HEIGHT = 420.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 46.0
COLOURS, DASHES = 8, ("", "6 3", "2 3")
OUTLINES = (
    None,
    "m-3.3-3.3h6.6v6.6h-6.6z",
    "m0-4.4 4.2 7.4h-8.4z",
    "m0-4.6 4.6 4.6-4.6 4.6-4.6-4.6z",
    "m0 4.4 4.2-7.4h-8.4z",
)
"""Of markers: circle, square, triangle, diamond, triangle that points down."""
MINUS = "\u2212"
LETTER_WIDTH, LEGEND_ROW, LEGEND_LEFT = 7.2, 18.0, 8.0
"""Of the legend; letters are about so wide."""

Point = tuple[float, float]
Range = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """The label of an axis, logarithmic unless said otherwise."""

    label: str
    log: bool = True

    def shows(self, number: float) -> bool:
        """Whether the axis can show a number: logarithmic ones need positive numbers whose ticks do not underflow."""
        return not self.log or number > 1e-200


@dataclass(frozen=True)
class Series:
    """A named line; ``style`` picks colour, marker and dashes, so that a contestant looks the same in every plot."""

    name: str
    points: Sequence[Point]
    style: int
    marked: bool = True
    joined: bool = True


def axis_range(numbers: Iterable[float], axis: Axis) -> Range | None:
    """Ends of an axis that shows some numbers, decimal logarithms if it is logarithmic; None if it shows none."""
    shown = [x for x in numbers if axis.shows(x)]
    if not shown:
        return None
    low, high = _scaled(min(shown), axis), _scaled(max(shown), axis)
    margin = 0.04 * (high - low) or (0.5 if axis.log else 0.5 * abs(high) or 1.0)
    return low - margin, high + margin


def plot(
    ident: str, title: str, description: str, x: Axis, y: Axis, series: Sequence[Series], ranges: tuple[Range, Range]
) -> str:
    """An SVG element; ``ranges`` of x and y come from ``axis_range``, so that plots side by side can share them."""
    elements = [*_x_axis(x, ranges[0]), *_y_axis(y, ranges[1])]
    for one in series:
        elements += _series(one, x, y, ranges)
    legend, height = _legend(series)
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {WIDTH:g} {height:g}" aria-labelledby="{ident}-t {ident}-d">'
        f'<title id="{ident}-t">{escape(title)}</title><desc id="{ident}-d">{escape(description)}</desc>'
        f"{''.join(elements)}{legend}</svg>"
    )


def _scaled(value: float, axis: Axis) -> float:
    return math.log10(value) if axis.log else value


def _fraction(value: float, axis: Axis, ends: Range) -> float:
    """0 at the low end of an axis, 1 at the high end."""
    return (_scaled(value, axis) - ends[0]) / (ends[1] - ends[0])


def _x_position(value: float, axis: Axis, ends: Range) -> float:
    return LEFT + _fraction(value, axis, ends) * (WIDTH - LEFT - RIGHT)


def _y_position(value: float, axis: Axis, ends: Range) -> float:
    return HEIGHT - BOTTOM - _fraction(value, axis, ends) * (HEIGHT - TOP - BOTTOM)


def ticks(axis: Axis, ends: Range) -> list[float]:
    """Round numbers along an axis: powers of ten, or 1, 2 and 5 times them where there are few."""
    low, high = ends
    if not axis.log:
        step = 10.0 ** math.floor(math.log10((high - low) / 4))
        step = next(step * k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= 6)
        first = math.ceil(low / step - 1e-9)
        return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    powers = range(math.floor(low), math.ceil(high) + 1)
    decades = [10.0**k for k in powers if low <= k <= high]
    if len(decades) >= 3:
        return decades[:: math.ceil(len(decades) / 7)]
    fine = [m * 10.0**k for k in powers for m in (1, 2, 5)]
    return [t for t in fine if low <= math.log10(t) <= high] or [10.0 ** ((low + high) / 2)]


def tick_text(value: float) -> str:
    """The label of a tick as SVG, powers of ten raised."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return significant(value, 3)
    mantissa, exponent = mantissa_and_exponent(value)
    power = f'<tspan dy="-5" class="power">{str(exponent).replace("-", MINUS)}</tspan>'
    return f"10{power}" if float(mantissa) == 1 else f"{float(mantissa):g}·10{power}"


def _x_axis(axis: Axis, ends: Range) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    elements = []
    for value in ticks(axis, ends):
        x = _x_position(value, axis, ends)
        elements.append(f'<path class="grid" d="M{x:.1f} {TOP:g}V{bottom:g}"/>')
        elements.append(f'<text x="{x:.1f}" y="{bottom + 17:g}" text-anchor="middle">{tick_text(value)}</text>')
    centre = (LEFT + right) / 2
    elements.append(f'<path class="axis" d="M{LEFT:g} {bottom:g}H{right:g}"/>')
    elements.append(f'<text x="{centre:g}" y="{bottom + 37:g}" text-anchor="middle">{escape(axis.label)}</text>')
    return elements


def _y_axis(axis: Axis, ends: Range) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    elements = []
    for value in ticks(axis, ends):
        y = _y_position(value, axis, ends)
        elements.append(f'<path class="grid" d="M{LEFT:g} {y:.1f}H{right:g}"/>')
        elements.append(f'<text x="{LEFT - 6:g}" y="{y:.1f}" dy="4" text-anchor="end">{tick_text(value)}</text>')
    turned = f"translate(14 {(TOP + bottom) / 2:g}) rotate(-90)"
    elements.append(f'<path class="axis" d="M{LEFT:g} {TOP:g}V{bottom:g}"/>')
    elements.append(f'<text transform="{turned}" text-anchor="middle">{escape(axis.label)}</text>')
    return elements


def _series(series: Series, x: Axis, y: Axis, ranges: tuple[Range, Range]) -> list[str]:
    points = [(a, b) for a, b in series.points if x.shows(a) and y.shows(b)]
    positions = [(_x_position(a, x, ranges[0]), _y_position(b, y, ranges[1])) for a, b in points]
    elements = []
    if series.joined and len(points) > 1:
        elements.append(_path(series.style, "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in positions)))
    if series.marked or len(points) == 1:
        for (a, b), position in zip(points, positions, strict=True):
            tip = f"<title>{escape(f'{series.name}: {a:.4g}, {b:.3g}')}</title>"
            elements.append(_marker(series.style, *position, tip))
    return elements


def _path(style: int, d: str) -> str:
    dash = DASHES[style // COLOURS % len(DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path class="line c{style % COLOURS}"{dashes} d="{d}"/>'


def _marker(style: int, x: float, y: float, tip: str = "") -> str:
    """Shapes differ as colours do, for those who do not see the colours."""
    attribute = f'class="mark c{style % COLOURS}"'
    outline = OUTLINES[style % len(OUTLINES)]
    if outline is None:
        return f'<circle {attribute} cx="{x:.1f}" cy="{y:.1f}" r="3.6">{tip}</circle>'
    return f'<path {attribute} d="M{x:.1f} {y:.1f}{outline}">{tip}</path>'


def _legend(series: Sequence[Series]) -> tuple[str, float]:
    """Names under the plot, as many in a row as fit, and the height of plot and legend."""
    elements, x, row = [], LEGEND_LEFT, 0
    for one in series:
        width = 38 + LETTER_WIDTH * len(one.name)
        if x > LEGEND_LEFT and x + width > WIDTH:
            x, row = LEGEND_LEFT, row + 1
        y = HEIGHT + 10 + LEGEND_ROW * row
        if one.joined:
            elements.append(_path(one.style, f"M{x:.1f} {y:g}h22"))
        if one.marked:
            elements.append(_marker(one.style, x + 11, y))
        elements.append(f'<text x="{x + 27:.1f}" y="{y + 4:g}">{escape(one.name)}</text>')
        x += width
    return "".join(elements), HEIGHT + 20 + LEGEND_ROW * row
