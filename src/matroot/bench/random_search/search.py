"""The worst cases so far, and the file that they are in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._environment import environment
from ..._terminal import CommandError
from ..cases import rounded
from ..format import ResultError
from ..results import save_program
from .batches import Batch
from .check import PARTS, SINGULAR_ROOT, Report

FORMAT = "matroot-random-search 1"
WORST = 20
"""Cases that are kept of every quantity."""
MUST_AGREE = ("device", "torch", "matroot", "source")
"""What must not differ between the batches of one file."""

Record = dict[str, Any]


@dataclass
class Search:
    """Batches 0 to ``done`` - 1 of one run; ``worst`` has the largest units first."""

    device: str
    max_n: int
    done: int = 0
    matrices: int = 0
    worst: dict[str, list[Record]] = field(default_factory=lambda: {name: [] for name in (*PARTS, SINGULAR_ROOT)})
    failures: list[Record] = field(default_factory=list)

    def add(self, batch: Batch, report: Report) -> None:
        """Take in the next batch."""
        self.failures += [_described(batch) | {"failure": failure} for failure in report.failures]
        for name, (units, errors) in report.errors.items():
            own = [
                {"units": rounded(unit), "error": rounded(error), "condition": rounded(condition), "matrix": place}
                for unit, error, condition, place in zip(units, errors, report.condition, batch.good(), strict=True)
                if unit == unit  # NaN is a failure already
            ]
            largest = sorted(own, key=_units, reverse=True)[:1]  # one of a batch: its matrices resemble each other
            found = self.worst[name] + [_described(batch) | record for record in largest]
            self.worst[name] = sorted(found, key=_units, reverse=True)[:WORST]
        self.done += 1
        self.matrices += batch.size

    def save(self, path: Path) -> None:
        """ResultError if that fails."""
        rows = [{"quantity": name} | record for name, records in self.worst.items() for record in records]
        facts = {"format": FORMAT, "batches": self.done, "matrices": self.matrices, "failures": self.failures}
        asked = {"where": self.device, "max_n": self.max_n}
        command = f"python -m matroot.bench.random_search --batches {self.done} --device {self.device}"
        save_program(path, f"{command} --max-n {self.max_n}", rows, **asked, **facts)


def load(path: Path, device: str, max_n: int) -> Search:
    """A search to resume, or a new one if there is no file; ResultError if it does not fit what runs now."""
    if not path.exists():
        return Search(device, max_n)
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise KeyError("format")
        before, now = content["surroundings"], environment()
        differing = [key for key in MUST_AGREE if before.get(key) != now[key]]
        search = Search(device, max_n, content["batches"], content["matrices"], failures=content["failures"])
        for row in content["results"]:
            search.worst[row.pop("quantity")].append(row)
        differing += [key for key, value in (("where", device), ("max_n", max_n)) if content[key] != value]
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ResultError(f"{path}: no file of a random search") from None
    if differing:
        raise CommandError(f"{path}: made with another {', '.join(differing)}; --fresh starts over, or another --out")
    return search


def _units(record: Mapping[str, Any]) -> float:
    """What is infinite is written as None."""
    return float("inf") if record["units"] is None else record["units"]


def _described(batch: Batch) -> Record:
    return {
        "number": batch.number,
        "n": batch.n,
        "kind": batch.kind,
        "dtype": batch.dtype,
        "scale": rounded(batch.scale),
        "batch": batch.size,
        "gradients": list(batch.gradients),
    }
