"""Run folders in the common format without any training, in this process or as a program of its own.

As a program it takes the job of ``matroot.train.compare.worker``. It imports nothing of matroot, so that it starts at
once. The data path of a job says how it behaves: ``epoch=0.05`` are the seconds of an epoch, ``fail=ns`` lets the
preset ns fail.
"""

import json
import signal
import sys
import time
from pathlib import Path


def accuracy(preset, seed, epoch):
    """Different for every preset and seed, rising with the epoch, below 1."""
    return 0.9 - 0.5 / (1 + epoch) + 0.01 * seed + 0.001 * len(preset)


def write(path, text):
    """Whole or not at all: others read while this writes."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


def train(recipe, folder, seconds=0.0, fail=(), stop_after=None):
    """Resume a run, or start it; ValueError in the second epoch of a preset that is to fail."""
    folder.mkdir(parents=True, exist_ok=True)
    metrics = folder / "metrics.jsonl"
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    preset, seed = recipe["preset"], recipe["seed"]

    def describe(result):
        content = {"format": "matroot-run 1", "command": "", "environment": {"device": "none", "torch": "2"}}
        write(folder / "run.json", json.dumps({**content, "recipe": recipe, "result": result}))

    describe(None)
    for epoch in range(len(lines) + 1, recipe["epochs"] + 1):
        if preset in fail and epoch == 2:
            raise ValueError("the loss is not finite")
        time.sleep(seconds)
        line = {"epoch": epoch, "train_loss": 1 / epoch, "test_accuracy": accuracy(preset, seed, epoch)}
        lines.append(json.dumps({**line, "seconds": seconds}))
        write(metrics, "\n".join(lines) + "\n")
        if stop_after == epoch:
            raise KeyboardInterrupt
    found = [json.loads(line)["test_accuracy"] for line in lines]
    describe(
        {
            "epochs": len(found),
            "best_accuracy": max(found),
            "final_accuracy": found[-1],
            "stand_in": f"{recipe['dataset']} stands in for something",
        }
    )


def main(job):
    def stop(*_):
        sys.exit(130)

    signal.signal(signal.SIGTERM, stop)
    found = json.loads(job)
    behaviour = dict(part.split("=") for part in (found["options"]["data"] or "epoch=0").split(","))
    try:
        train(found["recipe"], Path(found["folder"]), float(behaviour["epoch"]), behaviour.get("fail", "").split("+"))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
