"""Comparisons to show, and recipes to compare."""

from matroot.train.compare.results import Comparison, RunResult, StepTime, Timing
from matroot.train.compare.run_state import Curve
from matroot.train.recipe import Recipe

RECIPE = Recipe(
    model="resnet18_dbn",
    dataset="cifar10",
    epochs=3,
    batch_size=8,
    image_size=32,
    lr=0.1,
    weight_decay=0.0,
    schedule="steps",
    milestones=(1, 2),
)


def curve(*accuracies):
    return Curve(tuple(range(1, len(accuracies) + 1)), accuracies, tuple(1 - a for a in accuracies))


def run(preset, seed, *accuracies, failure=None):
    """A finished run, or one that failed."""
    result = {"best_accuracy": max(accuracies), "final_accuracy": accuracies[-1], "stand_in": None}
    return RunResult(preset, seed, None if failure else result, failure, curve(*accuracies), {"device": "example"})


RUNS = (
    run("baseline", 0, 0.5, 0.94, 0.93),
    run("default", 0, 0.6, 0.95, 0.94),
    run("mpa-lya", 0, 0.6, 0.94, 0.94),
    run("baseline", 1, 0.5, 0.92, 0.90),
    run("default", 1, 0.6, 0.94, 0.93),
    run("mpa-lya", 1, 0.6, 0.1, failure="the loss is not finite"),
)
TIMING = Timing(
    "Example GPU",
    {
        "baseline": StepTime(2.0, 1.9, 2.1, "graph"),
        "default": StepTime(2.5, 2.4, 2.6, "graph", 0.1),
        "mpa-lya": StepTime(5.0, 4.9, 5.1, "eager", 0.5),
    },
)


def comparison(**changes):
    fields = {
        "command": "matroot compare dbn",
        "environment": {"processor": "Example Processor"},
        "name": "dbn",
        "variant": "short",
        "recipe": {"model": "resnet18_dbn", "dataset": "cifar10", "epochs": 3, "milestones": [1, 2]},
        "runs": RUNS,
        "timing": TIMING,
    }
    return Comparison(**(fields | changes))
