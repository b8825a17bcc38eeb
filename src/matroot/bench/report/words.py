"""What the numbers say, suite by suite."""

from collections.abc import Callable

from . import error_words, time_words
from .claim import Claim
from .results import Results

CLAIMS: dict[str, Callable[[Results], list[Claim]]] = {
    "scalar": error_words.scalar,
    "forward": error_words.forward,
    "backward": time_words.backward,
    "batch": time_words.against("batch", "batch", "batch size"),
    "dimension": time_words.against("dimension", "n", "n ="),
    "schemes": time_words.schemes,
    "residuals": error_words.residuals,
    "pade": error_words.pade,
    "applications": time_words.against("applications", "shape", "shape"),
    "accuracy": error_words.accuracy,
    "speed": time_words.speed,
}


def summary(results: Results) -> list[Claim]:
    """How fast the default is, how exact, and compared with what."""
    claims = time_words.default(results)
    accuracy = error_words.accuracy(results)
    if not claims and not accuracy:
        text = "The file has no times of the default next to another solver: see the sections below."
        return [Claim(text, ())]
    return claims + accuracy[:1]


def claims(suite: str, results: Results) -> list[Claim]:
    """What the numbers of a suite say; nothing for a suite this version does not know."""
    return CLAIMS[suite](results) if suite in CLAIMS else []
