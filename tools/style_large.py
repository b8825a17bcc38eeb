"""Time and memory of ``matroot stylize`` on a large photo.

    python tools/style_large.py --photo PHOTO --style PAINTING --out RESULT.json

The photo is enlarged to 4000 x 3000 pixels, with the noise of a camera, and stylized by the command in a process of its
own with two threads. The result file has seconds by the clock and of the processor, and the largest resident memory.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional

from matroot._terminal import CommandError, exit_status
from matroot.bench.results import save_program
from matroot.style.images import read, write

THREADS = 2
NOISE = 4 / 255


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the result; returns the exit status, 2 for files that cannot be read or written."""
    return exit_status(partial(_run, arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photo", type=Path, required=True)
    parser.add_argument("--style", type=Path, required=True, metavar="PAINTING")
    parser.add_argument("--size", type=int, nargs=2, default=(4000, 3000), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--out", type=Path, default=Path("style-large.json"), metavar="RESULT.json")
    given = parser.parse_args(arguments)
    width, height = given.size
    with tempfile.TemporaryDirectory() as folder:
        photo, target = Path(folder) / "photo.jpg", Path(folder) / "result.jpg"
        large = functional.interpolate(read(given.photo)[None, :3], (height, width), mode="bicubic")[0]
        write(photo, (large + NOISE * torch.randn(large.shape)).clamp(0, 1))
        files = ["--style", given.style, "-o", target, photo]
        command = [sys.executable, "-m", "matroot", "stylize", "--device", "cpu", *files]
        start = time.perf_counter()
        environment = os.environ | {"OMP_NUM_THREADS": str(THREADS)}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise CommandError(f"matroot stylize ended with status {process.returncode}")
    result = {
        "width": width,
        "height": height,
        "threads": THREADS,
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        # Linux counts in units of 1024 bytes.
        "peak_bytes": used.ru_maxrss * 1024,
    }
    print(*(f"{key} {value}" for key, value in result.items()), sep="  ")
    names = [f"--photo={given.photo.name}", f"--style={given.style.name}", f"--size {width} {height}"]
    save_program(given.out, " ".join(["python tools/style_large.py", *names]), [result])
    return 0


if __name__ == "__main__":
    sys.exit(main())
