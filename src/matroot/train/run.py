"""Training runs: one call, one folder."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from .. import models
from . import data as datasets
from . import distributed
from .config import counted
from .distributed import Ranks
from .folder import Folder, Result
from .interruption import Interruption
from .loop import Trainer
from .progress import Reporter
from .recipe import Recipe
from .seeding import convolutions
from .tensorboard import Board


def train(
    recipe: Recipe,
    out: Path,
    *,
    data: Path | None = None,
    device: str | None = None,
    resume: bool = False,
    workers: int = 2,
    quiet: bool = False,
    stop_after: int | None = None,
    graph: bool | None = None,
    fsdp: bool = False,
) -> Result | None:
    """Train a recipe and return its result, also written to ``run.json`` in the folder ``out``.

    data: where data sets are looked for, see ``matroot.train.data``.
    device: ``"cuda"`` or ``"cpu"``; None is CUDA where there is one. Under torchrun all processes train together.
    resume: go on after the last epoch that ``out`` has, to the result of a run that never stopped: the same bits on
        a CPU, and on a GPU with deterministic kernels. A finished run returns its result; where its
        best weights are missing, and are the last ones, they are written again.
    workers: processes that read data; the result does not depend on them.
    stop_after: stop after this many epochs of this call, and return None; a later call resumes.
    graph: replay steps from a CUDA graph; None where that is possible.
    fsdp: shard So-ViT networks over the processes.

    The folder gets a line of ``metrics.jsonl``, ``last.pt`` and, where it improves, ``best.safetensors`` after every
    epoch; Ctrl-C, SIGTERM or a crash lose the epoch under way at most. CommandError for a folder that has a run already
    and ``resume`` is not given, or in which another process trains, for a checkpoint of another recipe or a damaged
    one, and for what data and network say. NonFiniteError where the loss or a gradient is not finite.
    """
    folder = Folder(Path(out), recipe)
    ranks = distributed.start(device)
    try:
        alone = folder.locked() if ranks.is_main else nullcontext()
        with Interruption() as interruption, convolutions(recipe.deterministic), alone:
            if ranks.is_main and not resume:
                folder.require_new()
            result = folder.result() if ranks.is_main and resume else None
            restores = result is not None and folder.can_restore_best(result)
            finished, restores = distributed.from_main((result, restores), ranks)
            if finished is not None and not restores:
                return finished
            opened = datasets.open_data(recipe, data, ranks.device, ranks.rank, ranks.world, workers)
            with Reporter(recipe.epochs, len(opened.train), quiet or not ranks.is_main) as reporter:
                trainer = Trainer(recipe, opened, ranks, graph, fsdp, reporter.say)
                parameters = sum(parameter.numel() for parameter in trainer.network.parameters())
                steps = counted(trainer.steps, "step")
                reporter.say(f"{parameters:,} parameters on {ranks.device}, {steps} an epoch")
                if opened.stand_in is not None:
                    reporter.say(opened.stand_in)
                run = _Run(folder, ranks, trainer, reporter, interruption)
                if finished is None:
                    return run.epochs(resume, stop_after)
                run.resume()
                return finished
    finally:
        distributed.stop(ranks)


class _Run:
    """The epochs of a run, and its files, which the main process alone writes."""

    def __init__(
        self, folder: Folder, ranks: Ranks, trainer: Trainer, reporter: Reporter, interruption: Interruption
    ) -> None:
        self._folder, self._ranks, self._trainer = folder, ranks, trainer
        self._reporter, self._interruption = reporter, interruption
        self._history: list[dict[str, Any]] = []

    def epochs(self, resume: bool, stop_after: int | None) -> Result | None:
        """Train from where the folder stands; None where ``stop_after`` ends it first."""
        if resume:
            self.resume()
        if self._ranks.is_main:
            self._folder.describe(None)
            self._folder.write_metrics(self._history)
        first, last = len(self._history) + 1, self._trainer.recipe.epochs
        if stop_after is not None:
            last = min(last, first + stop_after - 1)
        board = Board(self._folder.tensorboard, first) if self._ranks.is_main else None
        try:
            for epoch in range(first, last + 1):
                self._epoch(epoch)
                if board is not None:
                    board.epoch(self._history[-1])
        except KeyboardInterrupt:
            self._reporter.say(f"stopped after epoch {len(self._history)}; --resume goes on with {self._folder.path}")
            raise
        finally:
            if board is not None:
                board.close()
        return self._finish() if len(self._history) == self._trainer.recipe.epochs else None

    def resume(self) -> None:
        """Take over what the folder has; best weights that it lacks are written again where the last are the best."""
        found = distributed.from_main(self._folder.load() if self._ranks.is_main else None, self._ranks)
        if found is None:
            self._reporter.say(f"{self._folder.path} has no checkpoint yet: the run starts with epoch 1")
            return
        self._history = found.history
        self._trainer.load_state(vars(found))
        self._reporter.resume(len(self._history))
        self._reporter.say(f"resumed after epoch {len(self._history)} of {self._trainer.recipe.epochs}")
        if self._ranks.is_main and not self._folder.best.exists():
            self._replace_best(vars(found))

    def _replace_best(self, state: dict[str, Any]) -> None:
        """The best weights are missing: the last ones are written where these are the best."""
        best = Result.of(self._history, None).best_epoch
        if best == len(self._history):
            models.save(self._trainer.evaluated_network(state), self._folder.best)
        else:
            self._reporter.say(f"{self._folder.best} is missing: the weights of epoch {best}, the best one, are lost")

    def _epoch(self, epoch: int) -> None:
        def on_steps(steps: int, loss: float, accuracy: float, rate: float) -> None:
            self._reporter.step(epoch, steps, loss, accuracy, rate)

        row = self._trainer.train_epoch(epoch, on_steps)
        scores = self._trainer.evaluate(epoch)
        row |= {"test_loss": scores.loss, "test_accuracy": scores.accuracy, "test_top5": scores.top5}
        state = self._trainer.state()
        history = [*self._history, row]
        with self._interruption.deferred():
            if self._ranks.is_main:
                self._folder.write_metrics(history)
                # Before the checkpoint, which promises that the best of its epochs is there.
                if Result.of(history, None).best_epoch == epoch:
                    models.save(self._trainer.evaluated_network(state), self._folder.best)
                self._folder.save(history, state)
            self._history = history
        self._reporter.epoch(row)

    def _finish(self) -> Result:
        result = Result.of(self._history, self._trainer.data.stand_in)
        if self._ranks.is_main:
            self._folder.describe(result)
        distributed.barrier(self._ranks)
        return result
