"""``python -m tests.train.until_killed FOLDER``: for every line it reads, a process that trains in this folder.

It prints the process's id, and its exit status once it has ended. Processes are forked, as imports take seconds.
"""

import os
import sys
from pathlib import Path

import pytest
import torch

from matroot.train import run

from .tiny import install, tiny_recipe

EPOCHS = 40
RECIPE = tiny_recipe(
    epochs=EPOCHS, optimizer="adamw", lr=0.01, schedule="cosine", warmup_epochs=1, mixup=0.8, cutmix=1.0, ema=0.8
)


def main(folder: Path) -> None:
    for _ in sys.stdin:
        process = os.fork()
        if process == 0:
            run.train(RECIPE, folder, quiet=True, resume=True)
            os._exit(0)
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        main(Path(sys.argv[1]))
