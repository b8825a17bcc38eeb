"""A network small enough for tests, with weights that make its pictures vary."""

import pytest
import torch

from matroot.style import StyleNetwork


@pytest.fixture(scope="session")
def network() -> StyleNetwork:
    """Frozen, in float64, so that differences are faults and not rounding."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = StyleNetwork((6, 8, 10, 12), eps=1e-8)
        # As it is initialised all pictures are grey.
        torch.nn.init.kaiming_normal_(network.painter[-1].weight)
    return network.double().eval().requires_grad_(False)


@pytest.fixture
def content() -> torch.Tensor:
    """(2, 3, 45, 70), smooth and with noise; no size is a multiple of a stride."""
    return picture(45, 70, seed=1, batch=2)


@pytest.fixture
def style() -> torch.Tensor:
    """(1, 3, 64, 53)."""
    return picture(64, 53, seed=2) ** 2


def picture(height: int, width: int, seed: int, batch: int = 1) -> torch.Tensor:
    """(batch, 3, height, width) in [0, 1], float64: a few large shapes, and noise."""
    generator = torch.Generator().manual_seed(seed)
    shapes = torch.rand(batch, 3, 5, 5, generator=generator, dtype=torch.float64)
    smooth = torch.nn.functional.interpolate(shapes, (height, width), mode="bilinear")
    noise = torch.rand(batch, 3, height, width, generator=generator, dtype=torch.float64)
    return 0.8 * smooth + 0.2 * noise
