"""Calls that are captured in a CUDA graph and replayed."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from .._terminal import CommandError

_Result = TypeVar("_Result", bound=Tensor | None)


class CaptureError(CommandError):
    """A step that was expected to fit into a CUDA graph and did not."""


class CapturedCall:
    """``call(function, *inputs)``: a function of tensors, replayed from a CUDA graph.

    The first ``WARMUP`` calls are ordinary ones, on a stream of their own; the next one captures. Inputs are copied to
    where the graph reads them; if one has another shape than in the first call, the call is an ordinary one.
    CaptureError where the function cannot be captured.

    function: the same each time, and so is what it does. It is not kept: a step that holds its captured call
        is freed, with the memory of the graph, as soon as nobody holds the step.

    A tensor that is returned is the graph's own: the next call overwrites it.
    """

    WARMUP = 3

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: tuple[Tensor, ...] | None = None
        self._result: Tensor | None = None
        self._calls = 0

    def __call__(self, function: Callable[..., _Result], *inputs: Tensor) -> _Result:
        if self._inputs is None:
            self._inputs = tuple(x.clone() for x in inputs)
        if any(own.shape != given.shape for own, given in zip(self._inputs, inputs, strict=True)):
            return function(*inputs)
        for own, given in zip(self._inputs, inputs, strict=True):
            own.copy_(given)
        self._calls += 1
        if self._calls <= self.WARMUP:
            return self._warm_up(function, self._inputs)
        if self._graph is None:
            self._graph = self._capture(function, self._inputs)
        self._graph.replay()
        return self._result  # pyright: ignore[reportReturnType]

    def _warm_up(self, function: Callable[..., _Result], inputs: tuple[Tensor, ...]) -> _Result:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            result = function(*inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        return result

    def _capture(self, function: Callable[..., _Result], inputs: tuple[Tensor, ...]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        try:
            # Threads that load data may call CUDA meanwhile.
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                self._result = function(*inputs)
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            raise CaptureError(f"the step cannot be captured in a CUDA graph: {reason}; use --no-graph") from error
        return graph
