"""``matroot evaluate``."""

import argparse
import os

from ..train.data.views import Views
from ..train.evaluate_run import evaluate_run


def run(chosen: argparse.Namespace) -> int:
    """Evaluate every run and print its scores; returns the exit status."""
    views = Views(chosen.clips, chosen.crops)
    for folder in chosen.runs:
        scores = evaluate_run(folder, views, data=chosen.data, device=chosen.device, workers=chosen.workers)
        seen = "one view" if views.count == 1 else f"{views.count} views"
        if os.environ.get("RANK", "0") == "0":  # of the processes that torchrun starts one speaks
            print(f"{folder}  top-1 {scores.accuracy:.2%}  top-5 {scores.top5:.2%}  loss {scores.loss:.4f}  {seen}")
    return 0
