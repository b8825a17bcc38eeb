"""``matroot train style``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .._terminal import CommandError, importing
from ..train.config import counted, differences
from ..train.style.recipe import NAME, STYLE_RECIPES, TITLE, StyleRecipe, check
from .recipe_arguments import Call, parse


@dataclass(frozen=True)
class StyleOptions:
    """How a recipe is run; none of these changes its result."""

    data: Path | None = None
    """Folder of the pictures; otherwise MATROOT_DATA, then the usual places."""
    out: Path | None = None
    """Run folder; runs/style-DATASET-PRESET-seedN unless given."""
    resume: bool = False
    """Go on with the run in that folder; start it if there is none."""
    device: str | None = None
    """Such as cpu or cuda:1; the GPU if there is one."""
    time_limit: float | None = None
    """Seconds; no step is begun that would end later, on a GPU no line of metrics.jsonl, and --resume goes on."""
    sample_every: int = 1000
    """Steps between two checkpoints, each with a sample sheet."""
    report_every: int = 50
    """Steps of a line of metrics.jsonl."""
    no_graph: bool = False
    """Capture no steps in a CUDA graph; otherwise where it is possible."""
    quiet: bool = False
    """Print nothing but errors."""


def run(arguments: Sequence[str]) -> int:
    """Train; returns the exit status, 0 also for a run that a time limit ends."""
    call = parse("matroot train", arguments, StyleOptions(), STYLE_RECIPES, {NAME: TITLE})
    options = call.options
    for name in ("time_limit", "sample_every", "report_every"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise CommandError(f"--{name.replace('_', '-')} must be above 0, got {value}")
    with importing():
        check(call.recipe)
    _train(call, options.out or default_out(call.recipe))
    return 0


def _train(call: Call[StyleOptions, StyleRecipe], out: Path) -> None:
    with importing():
        # With torch, the network and the data, which --help does without.
        from ..train.style.run import WEIGHTS, Cadence, train

    recipe, options = call.recipe, call.options
    if not options.quiet:
        print(f"style, variant {call.variant}: style_exchange on {recipe.dataset}, preset {recipe.preset}")
        if changed := differences(call.of_variant, recipe):
            print(f"changed from the variant: {', '.join(map(str, changed))}")
        print(f"run folder: {out}")
    result = train(
        recipe,
        out,
        data=options.data,
        device=options.device,
        resume=options.resume,
        quiet=options.quiet,
        time_limit=options.time_limit,
        cadence=Cadence(options.report_every, options.sample_every),
        graph=not options.no_graph,
    )
    if result is not None and not options.quiet:
        print(f"{counted(result.iterations, 'step')}, {result.step_ms:.0f} ms each; cycle loss {result.cycle:.3f}")
        print(f"weights: {out / WEIGHTS}, sample sheets: {out / 'samples'}")


def default_out(recipe: StyleRecipe) -> Path:
    """The run folder of a recipe, in the working folder."""
    return Path("runs", f"{NAME}-{recipe.dataset}-{recipe.preset}-seed{recipe.seed}")
