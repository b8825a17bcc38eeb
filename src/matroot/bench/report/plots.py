"""Line and scatter plots as SVG; colours come from the page's style sheet, classes ``c0`` to ``c7``."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 46.0
COLOURS, SHAPES, DASHES = 8, 5, ("", "6 3", "2 3")
LETTER = 7.2
"""Width of a letter of the legend, about."""
ROW = 18.0


@dataclass(frozen=True)
class Axis:
    label: str
    log: bool = True

    def shows(self, number: float) -> bool:
        """Logarithms are of positive numbers, none so small that ticks underflow."""
        return not self.log or number > 1e-200


@dataclass(frozen=True)
class Series:
    """A named line; ``style`` picks colour, marker and dashes, so that a contestant looks the same in every plot."""

    name: str
    points: Sequence[tuple[float, float]]
    style: int
    marked: bool = True
    joined: bool = True


Range = tuple[float, float]


def span(numbers: Iterable[float], axis: Axis) -> Range | None:
    """Ends of an axis that shows some numbers; None where there are none."""
    shown = [x for x in numbers if axis.shows(x)]
    if not shown:
        return None
    low, high = (math.log10(f(shown)) if axis.log else f(shown) for f in (min, max))
    room = 0.04 * (high - low) or (0.5 if axis.log else 0.5 * abs(high) or 1.0)
    return low - room, high + room


def plot(
    ident: str, title: str, description: str, x: Axis, y: Axis, series: Sequence[Series], spans: tuple[Range, Range]
) -> str:
    """An SVG element; ``spans`` are of ``span``, so that plots side by side can share their axes."""
    body = [*_axis(x, spans[0], True), *_axis(y, spans[1], False)]
    for one in series:
        body += _line(one, x, y, spans)
    legend, height = _legend(series)
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {WIDTH:g} {height:g}" aria-labelledby="{ident}-t {ident}-d">'
        f'<title id="{ident}-t">{escape(title)}</title><desc id="{ident}-d">{escape(description)}</desc>'
        f"{''.join(body)}{legend}</svg>"
    )


def _place(value: float, axis: Axis, ends: Range, horizontal: bool) -> float:
    part = ((math.log10(value) if axis.log else value) - ends[0]) / (ends[1] - ends[0])
    if horizontal:
        return LEFT + part * (WIDTH - LEFT - RIGHT)
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


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
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    mantissa, _, power = f"{value:.1e}".partition("e")
    digits = str(int(power)).replace("-", "\u2212")
    shift = f'<tspan dy="-5" class="power">{digits}</tspan>'
    return f"10{shift}" if float(mantissa) == 1 else f"{float(mantissa):g}·10{shift}"


def _axis(axis: Axis, ends: Range, horizontal: bool) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    drawn = []
    for value in ticks(axis, ends):
        at = _place(value, axis, ends, horizontal)
        text = tick_text(value)
        if horizontal:
            drawn.append(f'<path class="grid" d="M{at:.1f} {TOP:g}V{bottom:g}"/>')
            drawn.append(f'<text x="{at:.1f}" y="{bottom + 17:g}" text-anchor="middle">{text}</text>')
        else:
            drawn.append(f'<path class="grid" d="M{LEFT:g} {at:.1f}H{right:g}"/>')
            drawn.append(f'<text x="{LEFT - 6:g}" y="{at:.1f}" dy="4" text-anchor="end">{text}</text>')
    label = escape(axis.label)
    if horizontal:
        drawn.append(f'<path class="axis" d="M{LEFT:g} {bottom:g}H{right:g}"/>')
        drawn.append(f'<text x="{(LEFT + right) / 2:g}" y="{bottom + 37:g}" text-anchor="middle">{label}</text>')
    else:
        middle = (TOP + bottom) / 2
        drawn.append(f'<path class="axis" d="M{LEFT:g} {TOP:g}V{bottom:g}"/>')
        drawn.append(f'<text transform="translate(14 {middle:g}) rotate(-90)" text-anchor="middle">{label}</text>')
    return drawn


def _line(one: Series, x: Axis, y: Axis, spans: tuple[Range, Range]) -> list[str]:
    seen = [(a, b) for a, b in one.points if x.shows(a) and y.shows(b)]
    placed = [(_place(a, x, spans[0], True), _place(b, y, spans[1], False), (a, b)) for a, b in seen]
    drawn = []
    if one.joined and len(placed) > 1:
        path = "L".join(f"{across:.1f} {up:.1f}" for across, up, _ in placed)
        drawn.append(f'<path class="line c{one.style % COLOURS}"{_dash(one.style)} d="M{path}"/>')
    if one.marked or len(placed) == 1:
        for across, up, (a, b) in placed:
            tip = f"<title>{escape(f'{one.name}: {a:.4g}, {b:.3g}')}</title>"
            drawn.append(_marker(one.style, across, up, tip))
    return drawn


def _dash(style: int) -> str:
    dash = DASHES[style // COLOURS % len(DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _marker(style: int, x: float, y: float, inside: str = "") -> str:
    """Shapes differ as colours do, for those who do not see the colours."""
    name = f'class="mark c{style % COLOURS}"'
    kind = style % SHAPES
    if kind == 0:
        return f'<circle {name} cx="{x:.1f}" cy="{y:.1f}" r="3.6">{inside}</circle>'
    outlines = (
        "m-3.3-3.3h6.6v6.6h-6.6z",
        "m0-4.4 4.2 7.4h-8.4z",
        "m0-4.6 4.6 4.6-4.6 4.6-4.6-4.6z",
        "m0 4.4 4.2-7.4h-8.4z",
    )
    return f'<path {name} d="M{x:.1f} {y:.1f}{outlines[kind - 1]}">{inside}</path>'


def _legend(series: Sequence[Series]) -> tuple[str, float]:
    """Names under the plot, in rows as long as they fit."""
    drawn, across, row = [], 8.0, 0
    for one in series:
        wide = 38 + LETTER * len(one.name)
        if across > 8 and across + wide > WIDTH:
            across, row = 8.0, row + 1
        y = HEIGHT + 10 + ROW * row
        if one.joined:
            drawn.append(f'<path class="line c{one.style % COLOURS}"{_dash(one.style)} d="M{across:.1f} {y:g}h22"/>')
        if one.marked:
            drawn.append(_marker(one.style, across + 11, y))
        drawn.append(f'<text x="{across + 27:.1f}" y="{y + 4:g}">{escape(one.name)}</text>')
        across += wide
    return "".join(drawn), HEIGHT + 20 + ROW * row
