"""What the suites measure: batches outside the comfortable middle, as data."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..problems import covariances, symmetric, with_spectrum
from ..text import shape


@dataclass(frozen=True)
class Problem:
    """A batch of covariances of ``samples`` samples, 2n unless given; with ``condition``, of a log spectrum.

    ``goal`` is in milliseconds, for a forward and a backward pass or for what is measured of them.
    """

    batch: int
    n: int
    samples: int | None = None
    condition: float | None = None
    dtype: torch.dtype = torch.float32
    backward: bool = True
    goal: float | None = None

    @property
    def title(self) -> str:
        dtype = "" if self.dtype == torch.float32 else f", {str(self.dtype).removeprefix('torch.')}"
        return f"{shape(self.batch, self.n)}, {self.spectrum}{dtype}"

    @property
    def spectrum(self) -> str:
        if self.condition is not None:
            return f"log {self.condition:.0e}"
        return f"{self.samples or 2 * self.n} samples"

    def small(self) -> "Problem":
        """The same for seeing that everything runs."""
        return replace(self, batch=min(self.batch, 2), n=min(self.n, 8), samples=None)

    def matrices(self, device: str) -> tuple[Tensor, Tensor]:
        """The batch, and gradients of the output."""
        wide = torch.complex128 if self.dtype.is_complex else torch.float64
        if self.condition is None:
            A = covariances(self.batch, self.n, self.samples, device=device, dtype=wide)
        else:
            A = with_spectrum("log", self.batch, self.n, self.condition, device=device)
        G = symmetric(self.batch, self.n, device=device, dtype=wide)
        return A.to(self.dtype), G.to(self.dtype)


HARD = (
    Problem(256, 196, samples=256, goal=2.5),  # covariance pooling at 14 x 14
    Problem(256, 256, samples=300, goal=4.0),
    Problem(64, 256, condition=1e4, goal=1.8),
    Problem(64, 128, condition=1e4, goal=0.5),
    Problem(1000, 64, condition=1e4, goal=0.3),
    Problem(1000, 64, condition=1e6, goal=0.4),
)
LARGE = (
    Problem(1, 1024),
    Problem(1, 1025),
    Problem(1, 1100),
    Problem(1, 2048, goal=6.0),
    Problem(1, 4096, goal=30.0),
    Problem(1, 8192, backward=False, goal=120.0),
)
WIDE = (
    Problem(1000, 64, dtype=torch.float64, goal=4.0),
    Problem(16, 256, dtype=torch.float64, goal=4.0),
    Problem(1, 4096, dtype=torch.float64, goal=80.0),
    Problem(100, 64, dtype=torch.complex64, goal=4.0),
)
"""Dtypes beyond float32."""
