"""The first call of a process: ``python -m matroot.bench.gpu.first_call N DEVICE BACKEND`` prints seconds as JSON.

``first`` and ``second`` are a forward and backward pass of one N x N matrix; for N = 0 launches of a kernel that does
nothing. In a process of its own, so that nothing is compiled or loaded yet but the libraries of CUDA, which do not
belong to the call.
"""

import json
import sys
from functools import partial

import torch
from torch import Tensor

import matroot

from ..._timer import seconds
from ..problems import covariances_and_gradients, forward_backward


def launch_nothing(out: Tensor) -> None:
    """Triton is imported here: that belongs to a first call."""
    from .nothing import nothing_kernel

    nothing_kernel[1, 1, 1](out)


def main(n: int, device: str, backend: str) -> dict[str, float]:
    """Seconds of both."""
    A, G = (T.float().to(device) for T in covariances_and_gradients(1, max(n, 1)))
    torch.bmm(G, G).sum().item()
    if n:
        step = partial(forward_backward, partial(matroot.sqrtm, backend=backend), A.requires_grad_(), G)
    else:
        step = partial(launch_nothing, G)
    return {name: seconds(step, device) for name in ("first", "second")}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), *sys.argv[2:])))
