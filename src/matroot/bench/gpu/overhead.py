"""What a call costs beside its kernels: one small matrix, next to an autograd Function that does nothing."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

import matroot

from ..._timer import Work
from ..problems import forward_backward
from .compared import OURS, add_times
from .problems import Problem

Result = dict[str, Any]

PROBLEM = Problem(1, 64, goal=0.11)
NOTHING = "empty Function"


class Nothing(Function):
    """A new tensor each way, whatever it holds."""

    @staticmethod
    def forward(ctx, A):
        return torch.empty_like(A)

    @staticmethod
    def backward(ctx, G):
        return torch.empty_like(G)


def measure(device: str, quick: bool, backend: str = "auto") -> Iterator[Result]:
    """Milliseconds of a forward and backward pass."""
    problem = PROBLEM.small() if quick else PROBLEM
    A, G = problem.matrices(device)
    X = A.requires_grad_()
    works: dict[str, Work] = {
        OURS: _step(partial(matroot.sqrtm, backend=backend), X, G),
        NOTHING: _step(Nothing.apply, X, G),
    }
    result: Result = {"case": problem.title, "batch": problem.batch, "n": problem.n, "notes": {}}
    result["goal_milliseconds"] = problem.goal
    add_times(result, works, device, quick)
    yield result


def _step(function: Any, X: Tensor, G: Tensor) -> Work:
    return partial(forward_backward, function, X, G)
