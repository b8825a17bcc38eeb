"""One run of a comparison: in this process, or as ``python -m matroot.train.compare.worker JOB`` in its own."""

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

from ..._terminal import exit_status, importing
from ..recipe import Recipe
from .plan import Run, RunOptions


def train_run(run: Run, options: RunOptions) -> None:
    """Start a run, or go on with it; raises what ``train`` raises."""
    with importing():
        # With torch, the networks and the data: the process that waits for others does without.
        from ..run import train

    train(
        run.recipe,
        run.folder,
        data=options.data,
        device=options.device,
        resume=True,
        workers=options.workers,
        quiet=True,
        graph=options.graph,
    )


def to_job(run: Run, options: RunOptions) -> str:
    """A run as an argument for another process."""
    job = {"folder": str(run.folder), "recipe": asdict(run.recipe), "options": asdict(options)}
    return json.dumps(job, default=str)


def from_job(job: str) -> tuple[Run, RunOptions]:
    """What ``to_job`` was given."""
    found: dict[str, Any] = json.loads(job)
    recipe: dict[str, Any] = found["recipe"]
    recipe["milestones"] = tuple(recipe["milestones"])
    options = found["options"]
    options["data"] = None if options["data"] is None else Path(options["data"])
    return Run(Recipe(**recipe), Path(found["folder"])), RunOptions(**options)


def stop_with_parent() -> None:
    """Stop this process as SIGTERM does once the other end of its standard input is closed, however that came."""

    def wait() -> None:
        # Not sys.stdin, whose lock would be held when the interpreter ends.
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, daemon=True).start()


def main(arguments: list[str]) -> int:
    """Run the job of the only argument; returns the exit status."""
    run, options = from_job(arguments[0])
    stop_with_parent()

    def program() -> int:
        train_run(run, options)
        return 0

    return exit_status(program)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
