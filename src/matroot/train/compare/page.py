"""The page of comparisons: one HTML file that needs no other. All text from files goes through ``escape``."""

from collections.abc import Sequence
from html import escape
from typing import Any

from ..._page import frame, html_page
from ..._page.drawing import COLOURS
from ..config import counted
from .findings import findings
from .plots import bars, curves, dashes, lines, style
from .results import Comparison
from .summary import cells, heads, notes, summarise

INTRODUCTION = (
    "The same network, trained with every preset: one way to compute matrix roots and their gradients. The baseline is"
    " the network without the root, the default is what matroot does when nothing is chosen, the others are those of"
    " the paper: Song, Sebe, Wang, <cite>Fast Differentiable Matrix Square Root and Inverse Square Root</cite>. Figures"
    " after ± are standard deviations over seeds."
)


def page(comparisons: Sequence[Comparison]) -> str:
    """One page of one or several result files."""
    titles = [_title(one) for one in comparisons]
    links = "".join(f'<li><a href="#comparison-{k}">{escape(title)}</a></li>' for k, title in enumerate(titles))
    contents = f'<nav aria-label="Comparisons"><ul>{links}</ul></nav>\n' if len(comparisons) > 1 else ""
    body = "\n".join(
        _section(one, title, f"comparison-{k}") for k, (one, title) in enumerate(zip(comparisons, titles, strict=True))
    )
    return html_page(
        "; ".join(titles),
        f"<header><h1>Training runs, compared</h1>\n<p>{INTRODUCTION}</p></header>\n"
        f"<main>\n{contents}{body}\n</main>\n",
    )


def _title(one: Comparison) -> str:
    recipe = one.recipe
    return f"{one.name} ({one.variant}): {recipe['model']} on {recipe['dataset']}, {counted(recipe['epochs'], 'epoch')}"


def _section(one: Comparison, title: str, ident: str) -> str:
    summary = summarise(one)
    found, said = findings(one, summary), notes(one, summary)
    rows = "".join(_row(cells(row)) for row in summary.rows)
    table = frame(f"Table: {title}", f"{_head(heads(summary))}<tbody>{rows}</tbody>")
    cards = _card("What was found", found or ["Too few figures for a statement."])
    cards += _card("Beside the figures", said)
    return (
        f'<section id="{ident}">\n<h2>{escape(title)}</h2>\n<div class="cards">{cards}</div>\n{table}\n'
        f"{_figures(one, ident)}\n{_machine(one, ident)}\n</section>"
    )


def _card(title: str, sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<div class="card"><h3>{escape(title)}</h3><ul>{items}</ul></div>'


def _head(texts: Sequence[str]) -> str:
    first, *rest = texts
    others = "".join(f'<th scope="col">{escape(text)}</th>' for text in rest)
    return f'<thead><tr><th scope="col" class="text">{escape(first)}</th>{others}</tr></thead>'


def _row(texts: Sequence[str]) -> str:
    first, *rest = texts
    return f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(text)}</td>" for text in rest)}</tr>'


def _figures(one: Comparison, ident: str) -> str:
    found, epochs = lines(one), one.recipe["epochs"]
    drawn = (
        ("Test accuracy against epoch: mean of the runs, and least to greatest", curves(f"{ident}-all", found, epochs)),
        ("The last third of the epochs", curves(f"{ident}-end", found, epochs, last_third=True)),
        ("Milliseconds of a training step, the root's share in colour", bars(f"{ident}-steps", summarise(one))),
    )
    figures = "".join(f"<figure><figcaption>{text}.</figcaption>{svg}</figure>" for text, svg in drawn if svg)
    return f'{_legend([line.preset for line in found])}<div class="figures">{figures}</div>' if figures else ""


def _legend(presets: Sequence[str]) -> str:
    """Above the curves, as many in a row as fit the screen."""
    items = []
    for preset in presets:
        dash = f' stroke-dasharray="{dashes(preset)}"' if dashes(preset) else ""
        line = f'<path class="line c{style(preset) % COLOURS}"{dash} d="M0 6h28"/>'
        items.append(f'<li><svg width="28" height="12" aria-hidden="true">{line}</svg> {escape(preset)}</li>')
    return f'<nav aria-label="Lines"><ul>{"".join(items)}</ul></nav>' if items else ""


def _machine(one: Comparison, ident: str) -> str:
    """The command, the machine and the recipe, folded away."""
    rows: dict[str, Any] = {"command": one.command}
    if one.timing:
        rows["steps timed on"] = one.timing.device
    rows |= {"runs made on": "; ".join(_places(one))} | one.environment
    rows |= {f"recipe: {key}": value for key, value in one.recipe.items()}
    body = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td class="wide">{escape(_text(value))}</td></tr>'
        for key, value in rows.items()
    )
    return (
        f'<details id="{ident}-machine"><summary>Command, machine and recipe</summary>\n'
        f"{frame('Command, machine and recipe', f'<tbody>{body}</tbody>')}</details>"
    )


def _places(one: Comparison) -> list[str]:
    """Machines, versions and code of the runs, each once."""
    found = [run.environment for run in one.runs if run.environment]
    texts = (
        f"{place.get('device') or place.get('processor')}, torch {place.get('torch')}, source {place.get('source')}"
        for place in found
    )
    return list(dict.fromkeys(texts))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
