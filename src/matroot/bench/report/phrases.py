"""Numbers and comparisons in words."""

from collections.abc import Iterable, Sequence

NAMES = {
    "auto": "the default",
    "eigh": "torch.linalg.eigh",
    "paper": "the paper's method",
    "mpa-lya": "MPA-Lya",
    "mtp-lya": "MTP-Lya",
    "ns": "Newton-Schulz",
    "svd": "the eigendecomposition",
    "pade": "Padé",
    "taylor": "Taylor",
    "newton-schulz": "Newton-Schulz",
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SAME = 1.05
"""Times closer than this factor count as equal."""


def number(x: float) -> str:
    """Three digits where people read them, a power of ten elsewhere."""
    if x == 0:
        return "0"
    if 1e-2 <= abs(x) < 1e5:
        return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"
    mantissa, _, power = f"{x:.1e}".partition("e")
    return f"{mantissa}·10{str(int(power)).translate(RAISED)}"


def ratio(r: float) -> str:
    return f"{r:.2g}" if r < 100 else f"{r:.0f}"


def compared(ours: float, theirs: float, other: str) -> str:
    """``3.7 times as fast as B (7.4 ms)``, for two times in milliseconds."""
    if theirs >= SAME * ours:
        how = f"{ratio(theirs / ours)} times as fast as"
    elif ours >= SAME * theirs:
        how = f"{ratio(ours / theirs)} times as long as"
    else:
        how = "within 5 percent of"
    return f"{how} {other} ({number(theirs)} ms)"


def name(contestant: str) -> str:
    return NAMES.get(contestant, contestant)


def listed(items: Iterable[object]) -> str:
    texts = [str(item) for item in items]
    return " and ".join(([", ".join(texts[:-1])] if texts[:-1] else []) + texts[-1:])


def which(good: Sequence[object], all_: Sequence[object], what: str) -> str:
    """``everywhere``, ``nowhere``, or where."""
    if len(good) == len(all_):
        return f"everywhere ({len(all_)} of {len(all_)})"
    return f"only for {what} {listed(good)} ({len(good)} of {len(all_)})" if good else f"nowhere (0 of {len(all_)})"
