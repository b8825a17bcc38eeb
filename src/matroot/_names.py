"""What is said of a name that is none of the valid ones."""

from collections.abc import Iterable
from difflib import get_close_matches


def valid_names(name: object, valid: Iterable[str]) -> str:
    """The second half of a message: the nearest valid name, if one is near, and all of them."""
    names = list(valid)
    nearest = get_close_matches(name, names, n=1) if isinstance(name, str) else []
    listed = f"names are {', '.join(names)}"
    return f"did you mean {nearest[0]!r}? Valid {listed}" if nearest else f"valid {listed}"
