"""Generate the schedules of ``matroot.Minimax``: ``python tools/minimax_schedules.py``.

A step maps a singular value s to s q(s^2). For a spectrum in [l, u] the best q of a degree minimises
max |1 - s q(s^2)|; the next step then faces [1 - E, 1 + E]. Composing best steps is optimal, so a
schedule is fixed by its degrees. For every condition number and tolerance of the table this picks
the degrees that reach the tolerance in the fewest products, and writes the coefficients as data.
"""

import itertools
import json
import math
from functools import cache
from pathlib import Path

import mpmath as mp

TARGET = Path(__file__).parent.parent / "src/matroot/methods/minimax_schedules.json"

# Tolerances: two loose ones, and those of float32 and float64; condition numbers each is offered for.
LADDER = {
    1e-2: (1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7),
    1e-4: (1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7),
    1e-7: (5.0, 50.0, 200.0, 2.5e3, 1.2e4, 1.6e5, 2.5e6, 3e7),
    1e-15: (30.0, 100.0, 1e3, 1e5, 5e6, 3e8, 2e10, 1e12, 6e13, 4e15),
}
# Products of a step of this degree that makes both roots. The first step finds M = A and A^2 made.
FIRST = {2: 2, 4: 3}
PRODUCTS = {1: 3, 2: 4, 4: 5}
# Rounding must not push the spectrum out of the interval: beyond its ends polynomials are steep.
WIDER = 1.01
MODERATE = mp.mpf("0.45")  # error of the steps of backends/triton/on_chip/schedules.py
NARROW = 1e-3  # below this width the Taylor polynomial is as good and the exchange ill-conditioned

mp.mp.dps = 50


@cache
def best_step(low: mp.mpf, high: mp.mpf, degree: int) -> tuple[tuple[mp.mpf, ...], mp.mpf]:
    """Coefficients of q (ascending) and the error E of the best step on [low, high], by Remez exchange."""
    count = degree + 2
    nodes = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    for _ in range(60):
        system = mp.matrix(count, count)
        for row, node in enumerate(nodes):
            for k in range(degree + 1):
                system[row, k] = node ** (2 * k + 1)
            system[row, degree + 1] = (-1) ** row
        *q, level = mp.lu_solve(system, mp.ones(count, 1))
        slope = [(2 * k + 1) * q[k] for k in range(degree, -1, -1)]  # of s q(s^2), in powers of s^2
        squares = mp.polyroots(slope, maxsteps=500, extraprec=400)
        extrema = sorted(mp.sqrt(mp.re(r)) for r in squares if abs(mp.im(r)) < mp.mpf(10) ** -25 and mp.re(r) > 0)
        moved = [low, *(s for s in extrema if low < s < high), high]
        if len(moved) != count:
            raise ArithmeticError(f"the exchange lost a node on [{low}, {high}], degree {degree}")
        change = max(abs(a - b) for a, b in zip(moved, nodes, strict=True))
        nodes = moved
        if change < mp.mpf(10) ** -30:
            return tuple(q), abs(level)
    raise ArithmeticError(f"no convergence on [{low}, {high}], degree {degree}")


def taylor_step(low: mp.mpf, high: mp.mpf, degree: int) -> tuple[tuple[mp.mpf, ...], mp.mpf]:
    """The expansion of 1/s around s = 1 in powers of s^2, and its error at the ends."""
    q = [mp.mpf(0)] * (degree + 1)
    for k in range(degree + 1):
        for j in range(k + 1):
            q[j] += mp.mpf(math.comb(2 * k, k)) / 4**k * math.comb(k, j) * (-1) ** j
    error = max(abs(1 - s * mp.polyval(q[::-1], s * s)) for s in (low, high))
    return tuple(q), error


def compose(condition: float, degrees: tuple[int, ...]) -> tuple[list[list[float]], float, float]:
    """Steps of these degrees for this condition number; the largest |1 - s^2| before and |1 - s| after the last."""
    low, high = 1 / mp.sqrt(condition) / WIDER, mp.mpf(1)
    steps, error, gap = [], mp.mpf(1), mp.mpf(1)
    for degree in degrees:
        gap = max(1 - low**2, high**2 - 1)
        q, error = (taylor_step if high - low < NARROW else best_step)(low, high, degree)
        steps.append([float(c) for c in q])
        margin = mp.mpf(10) ** -9
        low, high = (1 - error) * (1 - margin), (1 + error) * (1 + margin)
    return steps, float(gap), float(error)


def cheapest(condition: float, tolerance: float) -> dict:
    """The schedule with the fewest products that reaches the tolerance.

    Degree 9 in s (q of degree 4) gives the most per product; only the ends are varied, and the last
    step only where digits do not matter. On wide intervals a first step of degree 9 has
    large alternating coefficients, which cost digits. In float32 those of ill-conditioned matrices are
    lost to rounding anyway.
    """
    first = (2,) if condition >= 1e3 else (2, 4)
    last = (1, 2, 4) if tolerance > 1e-6 else (4,)
    reach = max(tolerance, 2e-11 * condition) if tolerance == 1e-7 else tolerance
    best = None
    for middle in itertools.count():
        for start, end in itertools.product(first, last):
            degrees = (start, *(4,) * middle, end)
            steps, gap, error = compose(condition, degrees)
            cost = FIRST[start] + sum(PRODUCTS[d] for d in degrees[1:])
            if error <= reach and (best is None or (cost, error) < (best[0], best[1]["error"])):
                found = {"condition": condition, "tolerance": tolerance, "error": error, "gap": gap, "steps": steps}
                best = cost, found
        if best is not None:
            return best[1]
    raise AssertionError


def widest_step(error: mp.mpf, high: mp.mpf, degree: int) -> tuple[mp.mpf, tuple[mp.mpf, ...]]:
    """The least ``low`` for which the best step on [low, high] has this error at most, by bisection, and that step."""
    low, inside = mp.mpf("1e-3"), mp.mpf("0.9")
    for _ in range(40):
        middle = mp.sqrt(low * inside)
        if best_step(middle, high, degree)[1] > error:
            low = middle
        else:
            inside = middle
    return inside, best_step(inside, high, degree)[0]


def moderate_steps(error: mp.mpf = MODERATE) -> dict[str, tuple[mp.mpf, tuple[mp.mpf, ...]]]:
    """Steps for any condition number, which is a matter of their number: name -> low end of the interval, and q.

    None of them takes a singular value of its interval below 1 - error. The first one is for [low, 1], the wide one,
    to be repeated, for [low, 1 + error], and the narrow one for what these leave.
    """
    one = mp.mpf(1)
    return {
        "FIRST": widest_step(error, one, 2),
        "WIDE": widest_step(error, one + error, 4),
        "NARROW": (one - error, best_step(one - error, one + error, 4)[0]),
    }


def main() -> None:
    schedules = [cheapest(condition, tolerance) for tolerance, conditions in LADDER.items() for condition in conditions]
    lines = ",\n".join("  " + json.dumps(schedule) for schedule in schedules)
    TARGET.write_text(f"[\n{lines}\n]\n")
    for s in schedules:
        degrees = [len(q) - 1 for q in s["steps"]]
        print(f"{s['condition']:.0e}  {s['tolerance']:.0e}  {s['error']:.1e}  {s['gap']:.1e}  {degrees}")
    for name, (low, q) in moderate_steps().items():
        print(f"{name} = {tuple(float(c) for c in q)}  # from {float(low):.4f}")


if __name__ == "__main__":
    main()
