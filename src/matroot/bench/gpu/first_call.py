"""The first call of a process: ``python -m matroot.bench.gpu.first_call N DEVICE`` prints seconds as JSON.

``first`` and ``second`` are a forward and backward pass of one N x N matrix; ``imports`` is what comes before them, the
start of CUDA included. In a process of its own, so that nothing is compiled or loaded yet.
"""

import json
import sys
import time
from functools import partial


def main(n: int, device: str) -> dict[str, float]:
    """Seconds of each part."""
    start = time.perf_counter()
    import torch

    import matroot

    from ..._timer import seconds
    from ..problems import forward_backward

    X = torch.eye(n, device=device).add_(1).unsqueeze(0).requires_grad_()
    G = torch.eye(n, device=device).unsqueeze(0)
    torch.bmm(G, G).sum().item()  # libraries of CUDA are loaded with their first call
    found = {"imports": time.perf_counter() - start}
    step = partial(forward_backward, matroot.sqrtm, X, G)
    return found | {name: seconds(step, device) for name in ("first", "second")}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), sys.argv[2])))
