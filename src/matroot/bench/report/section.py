"""A section of the page, and the axes that sections share."""

from dataclasses import dataclass

from .charts import Axis
from .figures import Figure

MS = Axis("milliseconds")
ERROR = Axis("error")
NO_AXIS = Axis("", log=False)
"""Of rows."""


@dataclass(frozen=True)
class Section:
    title: str
    about: str
    paper: str | None = None
    paper_numbers: tuple[tuple[str, ...], ...] = ()
    """Head and rows of a table of the paper, its times measured on a Tesla K40."""
    figures: tuple[Figure, ...] = ()
    same_everywhere: bool = False
    """Whether the numbers are those of formulas, the same on every machine: one file is enough."""
