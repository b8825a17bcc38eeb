"""A network small enough for tests, and pictures for it."""

import torch
from sklearn.datasets import load_sample_image
from torch.nn import functional

from matroot.style import StyleNetwork


def small_network(eps: float = 1e-8) -> StyleNetwork:
    """Frozen, in float64, so that differences are faults and not rounding."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(1)  # no unit is dead: covariances are well-conditioned
        network = StyleNetwork((6, 8, 10), eps)
        # As it is initialised all pictures are grey.
        torch.nn.init.kaiming_normal_(network.painter[-1].weight)
    return network.double().eval().requires_grad_(False)


def picture(height: int, width: int, seed: int, batch: int = 1) -> torch.Tensor:
    """(batch, 3, height, width) in [0, 1], float64: a few large shapes, and noise."""
    generator = torch.Generator().manual_seed(seed)
    shapes = torch.rand(batch, 3, 5, 5, generator=generator, dtype=torch.float64)
    smooth = functional.interpolate(shapes, (height, width), mode="bilinear")
    noise = torch.rand(batch, 3, height, width, generator=generator, dtype=torch.float64)
    return 0.8 * smooth + 0.2 * noise


def photograph(name: str) -> torch.Tensor:
    """(3, 192, 288) in [0, 1], of a photograph that comes with scikit-learn; reduced, so without blocks of JPEG."""
    pixels = torch.from_numpy(load_sample_image(name).copy()).permute(2, 0, 1) / 255
    return functional.interpolate(pixels[None], size=(192, 288), mode="bilinear", antialias=True)[0]
