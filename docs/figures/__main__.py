"""Draw the figures of the site: ``python docs/figures [FOLDER] [NAME ...]``, by default into build/figures."""

import sys
from pathlib import Path

from draw import ROOT, draw_all

draw_all(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/figures", sys.argv[2:])
