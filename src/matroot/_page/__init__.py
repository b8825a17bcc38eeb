"""The look of the pages: one HTML file that needs no other, light and dark, on screen and on paper."""

from html import escape
from importlib.resources import files as resources


def html_page(title: str, body: str) -> str:
    """A whole page. The title is text; the body is HTML, in which all text from files is escaped already."""
    style = resources("matroot._page").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>matroot: {escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}</body>\n</html>\n"
    )


def frame(label: str, table: str, ident: str = "") -> str:
    """A table in a region that keyboards can scroll."""
    at = f' id="{ident}"' if ident else ""
    return (
        f'<div class="table"{at} role="region" tabindex="0" aria-label="{escape(label)}"><table>{table}</table></div>'
    )
