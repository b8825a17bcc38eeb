"""What CUDA graphs ask of ordinary operations: nothing that comes from the host, once it has come."""

from functools import partial

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import matroot
from matroot import Minimax
from matroot._registry import GRADIENTS
from matroot.backends.composite.refined import prepare_for_graphs
from matroot.backends.constants import can_keep, on_device

from ..matrices import wishart
from ..operations import Largest
from ..pairs import NAMED

ROWS = ((1.0, 2.0), (3.0, 4.0))


class FromHost(TorchDispatchMode):
    """Records operations that make a tensor of host data, or copy one to another device."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, result)) if isinstance(leaf, torch.Tensor)]
        if func.overloadpacket == torch.ops.aten.lift_fresh or len({tensor.device for tensor in tensors}) > 1:
            self.seen.append(str(func))
        return result


def test_what_comes_from_the_host_is_recorded():
    with FromHost() as mode:
        (torch.tensor([1.0]) + 1).to("meta")
    assert mode.seen == ["aten.lift_fresh.default", "aten._to_copy.default"]


@pytest.mark.parametrize(
    "pair",
    [pair for pair, (method, gradient) in NAMED.items() if gradient.name in ("unrolled", "krylov", "smith")]
    + [f"eigen/{name}" for name in GRADIENTS if name not in ("unrolled", "krylov", "smith")],
)
def test_nothing_comes_from_the_host_twice(pair):
    """The meta device is like a GPU here: values on it cannot be read."""
    method, gradient = NAMED[pair]
    X = wishart(3, 5).to("meta").requires_grad_()

    def step():
        function = matroot.roots if method.has_inverse else lambda *args, **rest: [matroot.sqrtm(*args, **rest)]
        outputs = function(X, method, gradient=gradient, backend="torch", ridge=0.1)
        torch.autograd.grad(sum(root.sum() for root in outputs), X)

    step()
    with FromHost() as mode:
        step()
    assert not mode.seen


@pytest.fixture
def empty_cache():
    """No constant is on any device, before the test and after it."""
    on_device.cache_clear()
    yield
    on_device.cache_clear()


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("mode", [torch.inference_mode, FakeTensorMode, partial(torch.device, "meta")])
def test_a_constant_is_an_ordinary_tensor_wherever_it_is_first_used(mode):
    """It outlives the call: a fake tensor or an inference tensor would break the calls after it."""
    with mode():
        first = on_device(torch.device("cpu"), ROWS)
    assert type(first) is torch.Tensor
    assert not first.is_inference()
    assert first.tolist() == [list(row) for row in ROWS]
    assert on_device(torch.device("cpu"), ROWS) is first


@pytest.mark.usefixtures("empty_cache")
def test_a_transform_leaves_no_tensor_of_its_own_behind():
    torch.func.grad(lambda x: on_device(torch.device("cpu"), ROWS).sum() * x)(torch.ones(()))
    assert not torch._C._functorch.is_functorch_wrapped_tensor(on_device(torch.device("cpu"), ROWS))


@pytest.mark.usefixtures("empty_cache")
def test_a_compiled_graph_holds_the_constant():
    """A copy from the host in it would keep PyTorch from recording it in a CUDA graph."""
    seen = []

    def record(graph, inputs):
        seen.append([str(node.target) for node in graph.graph.nodes])
        return make_boxed_func(graph.forward)

    def root(A, method):
        return method.evaluate(A, "sqrt")

    torch._dynamo.reset()
    compiled = torch.compile(root, backend=aot_autograd(fw_compiler=record), fullgraph=True)
    A, methods = wishart(3, 5), (Minimax(), Minimax(tolerance=1e-4))
    for method in methods:
        torch.testing.assert_close(compiled(A, method), root(A, method))
    assert len(seen) == len(methods)
    assert all("aten.index_select.default" in names for names in seen)
    assert not [name for names in seen for name in names if "lift_fresh" in name]


@pytest.mark.usefixtures("empty_cache")
def test_refinement_makes_ready_for_graphs():
    """A graph of float64 takes ordinary operations, which the calls before it do not."""
    prepare_for_graphs.cache_clear()
    prepare_for_graphs(torch.device("meta"), 0, False)
    A = wishart(3, 5).to("meta")
    with FromHost() as mode:
        matroot.roots(A, "minimax", backend="torch")
    assert not mode.seen


def test_what_a_graph_of_float64_takes_can_be_captured():
    """On CUDA ``cholesky_solve`` of a batch calls MAGMA up to torch 2.11, which allocates memory and waits."""
    A = wishart(3, 5).to("meta").requires_grad_()
    with Largest() as mode:
        S, R = matroot.roots(A, "minimax", backend="torch")
        torch.autograd.grad((S, R), A, (S, R))
    assert "linalg_cholesky_ex" in mode.names
    assert not mode.names & {"cholesky_solve", "_cholesky_solve_helper"}


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("known", [False, True])
def test_fake_tensors_get_no_kept_constant(known):
    """They cannot be computed with beside ordinary ones, and must not be kept."""
    A = wishart(3, 5)
    if known:
        Minimax().evaluate(A, "sqrt")
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(A)
        assert not can_keep(fake)
        (S,) = Minimax().evaluate(fake, "sqrt")
    assert S.shape == A.shape
    assert type(Minimax().evaluate(A, "sqrt")[0]) is torch.Tensor


@pytest.mark.usefixtures("empty_cache")
def test_a_graph_is_told_to_wait(monkeypatch):
    """Memory of a graph's own pool is never kept: nothing is made while one is recorded."""
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match="make the same call once before it"):
        on_device(torch.device("cuda"), ROWS)
    assert on_device.cache_info().currsize == 0
