"""Which figures there are, and drawing those whose inputs have changed since they were drawn.

Inputs are the scripts, the committed results, and the package.
"""

import hashlib
import runpy
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import decision
import matplotlib as mpl
import numerics
import paper
import precision
import results
import scalar
import style
from matplotlib import pyplot as plt

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
FROM_RESULTS = (results.times, results.errors)
COMPUTED = (
    decision.decision, scalar.small_eigenvalues, paper.normalisations, paper.approximants,
    numerics.floors, numerics.composition, numerics.gaps, numerics.solvers,
    precision.refinement, precision.half_products, precision.shifted,
)  # fmt: skip
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))


def figures() -> dict[str, tuple[Callable[[], object], list[Path]]]:
    """Name -> what draws it, and the files that it depends on besides the scripts of this folder."""
    package = sorted((ROOT / "src/matroot").rglob("*.py"))
    found: dict[str, tuple[Callable[[], object], list[Path]]] = {}
    for draw in FROM_RESULTS:
        found[draw.__name__] = (draw, sorted(results.RESULTS.glob("*.json")))
    for draw in COMPUTED:
        found[draw.__name__] = (draw, package)
    for script in TUTORIALS:
        found[script.stem] = (lambda script=script: runpy.run_path(str(script))["figure"], [script, *package])
    return found


def draw_all(folder: Path, names: Iterable[str] = ()) -> None:
    """Draw what is named, or all that is missing or out of date."""
    folder.mkdir(parents=True, exist_ok=True)
    own = sorted(Path(__file__).parent.glob("*.py"))
    known = figures()
    for name in names or known:
        draw, inputs = known[name]
        digest = _digest([*own, *inputs])
        note = folder / f"{name}.digest"
        if (folder / f"{name}.svg").exists() and note.exists() and note.read_text() == digest:
            continue
        start = time.perf_counter()
        with mpl.rc_context(style.RC):
            style.save(draw(), folder / f"{name}.svg")
            plt.close("all")
        note.write_text(digest)
        print(f"{name}: {time.perf_counter() - start:.1f} s")


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
