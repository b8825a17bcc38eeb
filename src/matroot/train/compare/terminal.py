"""The table of a comparison in the terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .results import Comparison
from .summary import cells, heads, notes, summarise, title


def show(comparison: Comparison, console: Console) -> None:
    """Print the rows and what has to be said beside them."""
    summary = summarise(comparison)
    table = Table(
        box=SIMPLE_HEAD, title=escape(title(comparison)), title_justify="left", pad_edge=False, padding=(0, 1, 0, 0)
    )
    for k, head in enumerate(heads(summary)):
        # On two lines it all fits into 80 columns.
        table.add_column(head.replace(" ", "\n", 1), justify="right" if k else "left", no_wrap=True)
    for row in summary.rows:
        table.add_row(*map(escape, cells(row)))
    console.print(table)
    for note in notes(comparison, summary):
        console.print(note, markup=False, highlight=False)
