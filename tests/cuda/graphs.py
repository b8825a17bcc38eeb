"""Steps in CUDA graphs."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def capture(step: Callable[[], Sequence[Tensor]]) -> tuple[torch.cuda.CUDAGraph, Sequence[Tensor]]:
    """A step in a graph, after one call of it, and the tensors of its results."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    return graph, captured


def assert_graph_repeats(step: Callable[[], Sequence[Tensor]], expected: Sequence[Tensor]) -> None:
    """A step captured in a graph finds the same bits, each time it is replayed."""
    graph, captured = capture(step)
    for _ in range(3):
        graph.replay()
        assert all(torch.equal(a, b) for a, b in zip(captured, expected, strict=True))
