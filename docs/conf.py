"""The site: ``make docs`` builds it, without a network, into build/site."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("MATROOT_DOCS_BUILD", HERE.parent / "build"))
sys.path.insert(0, str(HERE / "_ext"))

from docutils import nodes  # noqa: E402
from inventories import intersphinx_mapping as _mapping  # noqa: E402

import matroot  # noqa: E402

project = "matroot"
author = "The matroot developers"
copyright = author
version = release = matroot.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "docstrings",
    "drawn",
    "mathml",
]
exclude_patterns = ["_ext", "figures"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # tables that matroot compare prints begin with headings of the third level

intersphinx_mapping = _mapping(HERE / "references.txt", BUILD / "inventories")
drawn_folder = str(BUILD / "figures")

autodoc_inherit_docstrings = False  # those of torch.nn.Module are not ours
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
maximum_signature_line_length = 80
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "matroot"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # browsers do not let a page read others from disk
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"


def setup(app):
    """Parts of a script that a page shows end with its last line of code."""

    def strip(app, doctree):
        for block in doctree.findall(nodes.literal_block):
            text = block.astext().rstrip()
            block.rawsource, block.children = text, [nodes.Text(text)]

    app.connect("doctree-read", strip)
