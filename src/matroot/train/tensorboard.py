"""Metrics for TensorBoard, where it is installed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Board:
    """Writes lines of ``metrics.jsonl`` into a folder of TensorBoard; without TensorBoard it does nothing."""

    def __init__(self, folder: Path, first_epoch: int) -> None:
        """first_epoch: what the folder has of this epoch and later ones is dropped."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self._writer = None
        else:
            self._writer = SummaryWriter(str(folder), purge_step=first_epoch)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the numbers of an epoch."""
        if self._writer is not None:
            for name, value in row.items():
                if name != "epoch":
                    self._writer.add_scalar(name.replace("_", "/", 1), value, row["epoch"])
            self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
