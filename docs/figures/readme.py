"""Draw the figure of README.md, which is committed: ``python docs/figures/readme.py``."""

import hashlib
import re

import matplotlib as mpl
import results
import style
from draw import DOCS

FIGURE = DOCS / "_static/readme.svg"
SOURCE = results.RESULTS / "bench-cpu-float32.json"


def themes() -> str:
    """Colours for both themes, and backgrounds: where README.md is shown the page has none for the figure."""
    css = (DOCS / "_static/site.css").read_text()
    dark = " ".join(css.partition('body[data-theme="dark"] {')[2].partition("}")[0].split())
    light = "svg { background: #ffffff }"
    return f"<style>{light} @media (prefers-color-scheme: dark) {{ svg {{ background: #0d1117; {dark} }} }}</style>"


def digest() -> str:
    """Of the results that are drawn; the file names it, so that a test sees whether it is up to date."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()


def main() -> None:
    with mpl.rc_context(style.RC | {"svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = results.errors()
        for ax in figure.axes:
            ax.minorticks_off()  # half of the file
        style.save(figure, FIGURE)
    source = re.sub(r"\s*<metadata>.*?</metadata>", "", FIGURE.read_text(), flags=re.DOTALL)
    start = source.index(">", source.index("<svg")) + 1
    FIGURE.write_text(f"{source[:start]}\n<!-- results: {digest()} -->\n{themes()}{source[start:]}")


if __name__ == "__main__":
    main()
