"""What is said of a name that is none of the valid ones."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: object, valid: Iterable[str]) -> str | None:
    """The valid name that was probably meant; None if none is near."""
    near = get_close_matches(name, valid, n=1) if isinstance(name, str) else []
    return near[0] if near else None


def valid_names(name: object, valid: Iterable[str]) -> str:
    """The second half of a message: the nearest valid name, if one is near, and all of them."""
    names = list(valid)
    meant, listed = nearest(name, names), f"names are {', '.join(names)}"
    return f"valid {listed}" if meant is None else f"did you mean {meant!r}? Valid {listed}"
