"""The first call of a process: ``python -m matroot.bench.gpu.first_call N DEVICE BACKEND`` prints seconds as JSON.

``first`` and ``second`` are a forward and backward pass of one N x N matrix. In a process of its own, so that nothing
is compiled or loaded yet but the libraries of CUDA, which do not belong to the call.
"""

import json
import sys
from functools import partial

import torch

import matroot

from ..._timer import seconds
from ..problems import covariances_and_gradients, forward_backward


def main(n: int, device: str, backend: str) -> dict[str, float]:
    """Seconds of both."""
    A, G = (T.float().to(device) for T in covariances_and_gradients(1, n))
    torch.bmm(G, G).sum().item()
    step = partial(forward_backward, partial(matroot.sqrtm, backend=backend), A.requires_grad_(), G)
    return {name: seconds(step, device) for name in ("first", "second")}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), *sys.argv[2:])))
