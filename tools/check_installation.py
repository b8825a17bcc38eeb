"""Check an installed wheel: that its compiled code runs and is exact, or that it says why there is none.

    python tools/check_installation.py          # a wheel with compiled code
    python tools/check_installation.py --pure   # one that was built without a compiler

Ends with status 1 and a reason.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

import torch
from torch import Tensor

import matroot

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Check an installed wheel.")
    parser.add_argument("--pure", action="store_true", help="it was built without a compiler")
    pure = parser.parse_args(arguments).pure
    check_place(Path(matroot.__file__).resolve())
    check_tag(distribution("matroot").read_text("WHEEL") or "", pure)
    check_info(pure)
    if pure:
        check_refusal()
    else:
        check_results("compiled")
    check_results("auto")
    print(f"{matroot.__file__}: {'no compiled code, as it should be' if pure else 'compiled code runs'}")


def check_place(package: Path) -> None:
    """A package of the checkout would pass for the wheel."""
    require(not package.is_relative_to(ROOT / "src"), f"{package} is no installed wheel")


def check_tag(metadata: str, pure: bool) -> None:
    """One wheel for every Python, and for every platform only if nothing is compiled."""
    tags = [line.removeprefix("Tag: ") for line in metadata.splitlines() if line.startswith("Tag: ")]
    require(bool(tags) and all(tag.startswith("py3-none-") for tag in tags), f"tags for some Pythons only: {tags}")
    require(pure == ("py3-none-any" in tags), f"tags that do not tell whether there is compiled code: {tags}")


def check_info(pure: bool) -> None:
    """The line of ``matroot info``."""
    command = [sys.executable, "-m", "matroot", "info"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = next((line for line in printed.splitlines() if "compiled code" in line), "")
    require(("ready" in line) != pure, f"matroot info says: {line}\n{printed}")


def check_refusal() -> None:
    """A call that insists on compiled code gets the reason."""
    try:
        matroot.sqrtm(torch.eye(2), backend="compiled")
    except ValueError as problem:
        require("no compiled code" in str(problem), f"the reason is not given: {problem}")
    else:
        require(False, "there is compiled code")


def check_results(backend: str) -> None:
    """Both roots and the gradient against a decomposition in float64, and the same bits on one thread."""
    for dtype in (torch.float32, torch.float64):
        A = covariances(40, 48, dtype)
        found = evaluate(A, backend)
        exact = evaluate(A.double(), "torch")
        for name, X, Y in zip(("root", "inverse root", "gradient"), found, exact, strict=True):
            # Rounding times what the condition number, here below 50, and n products allow.
            error = (torch.linalg.matrix_norm(X - Y) / torch.linalg.matrix_norm(Y)).max().item()
            require(error < 200 * torch.finfo(dtype).eps, f"{name} in {dtype} by {backend} has error {error:.1e}")
        if backend == "compiled":
            threads = torch.get_num_threads()
            torch.set_num_threads(1)
            alone = evaluate(A, backend)
            torch.set_num_threads(threads)
            require(all(map(torch.equal, found, alone)), f"{dtype} results depend on the number of threads, {threads}")


def covariances(batch: int, n: int, dtype: torch.dtype) -> Tensor:
    """Of 2n normal samples each, the same everywhere."""
    X = torch.randn(batch, n, 2 * n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return (X @ X.mT / (2 * n)).to(dtype)


def evaluate(A: Tensor, backend: str) -> tuple[Tensor, Tensor, Tensor]:
    """Root, inverse root, and the gradient for weights that do not commute with them."""
    A = A.clone().requires_grad_()
    method = "eigen" if backend == "torch" else "auto"
    S, R = matroot.roots(A, method, backend=backend)
    (gradient,) = torch.autograd.grad((S, R), A, (A.detach().sin(), A.detach().cos()))
    return S.detach(), R.detach(), gradient


def require(true: bool, reason: str) -> None:
    if not true:
        raise SystemExit(f"check_installation: {reason}")


if __name__ == "__main__":
    main()
