"""Steps in CUDA graphs."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def assert_graph_repeats(step: Callable[[], Sequence[Tensor]], expected: Sequence[Tensor]) -> None:
    """A step captured in a graph finds the same bits, each time it is replayed."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for _ in range(3):
        graph.replay()
        assert all(torch.equal(a, b) for a, b in zip(captured, expected, strict=True))
