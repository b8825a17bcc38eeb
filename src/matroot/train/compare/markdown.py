"""A comparison as a section of a markdown document."""

from ..markdown import table
from .findings import findings
from .results import Comparison
from .summary import cells, heads, notes, summarise, title


def section(comparison: Comparison) -> str:
    """Title, what was found, the table, the command and machine, and what has to be said beside the figures."""
    summary = summarise(comparison)
    rows = table(heads(summary), [cells(row) for row in summary.rows])
    machine = comparison.environment
    place = comparison.timing.device if comparison.timing else machine.get("device") or machine["processor"]
    origin = f"`{comparison.command}`, on {place}."
    said = "\n".join(f"- {note}" for note in notes(comparison, summary))
    return "\n\n".join((f"### {title(comparison)}", " ".join(findings(comparison, summary)), rows, origin, said))
