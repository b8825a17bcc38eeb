"""Properties of every layer around a covariance: derivatives, degenerate input, copies, dtypes, compilation."""

import copy
import io
import pickle

import pytest
import torch
from torch.autograd import gradcheck
from torch.utils.checkpoint import checkpoint

import matroot
import matroot.nn

from .modules import MODULES, ONE_OF_A_KIND, WITH_ROOT, build, value_and_gradients

every_module = pytest.mark.parametrize("name", MODULES)
NORMALISED = ("pool-2d", "head", "attention")
"""Those that do something else in evaluation, one of a kind."""


def close(found, expected):
    """Up to the order of summation in float64 on values of order one, of which a singular covariance's root keeps
    the square root: some of these have no more positions than channels."""
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)


# --- derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "training"), [*((name, True) for name in MODULES), *((name, False) for name in NORMALISED)]
)
def test_gradcheck(name, training):
    module, inputs = build(name, torch.float64)
    module.train(training)
    tensors = [*(x.requires_grad_() for x in inputs), *module.parameters()]
    names = [key for key, _ in module.named_parameters()]

    def call(*tensors):
        given, parameters = tensors[: len(inputs)], tensors[len(inputs) :]
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), given)

    assert gradcheck(call, tensors, fast_mode=True)


# --- degenerate input ----------------------------------------------------------------------------------


DEGENERATE = {
    "zero": lambda x, axis: torch.zeros_like(x),
    "constant": lambda x, axis: torch.full_like(x, 3.7),
    "constant channels": lambda x, axis: x.index_fill(axis, torch.tensor([0, 3]), 7.0),
    "dead channels": lambda x, axis: x.index_fill(axis, torch.tensor([1, 2]), 0.0),
    "equal channels": lambda x, axis: x[:, :1].expand_as(x) if axis == 1 else x[..., :1].expand_as(x),
    "batch of one": lambda x, axis: x[:1],
    "one position": lambda x, axis: x[:, :2] if axis == 2 else x[(..., *[slice(1)] * (x.ndim - 2))],
    "huge": lambda x, axis: 1e12 * x,
    "tiny": lambda x, axis: 1e-30 * x,
}
CHOICES = {
    "auto": {},
    "minimax": {"method": "minimax"},
    "mpa-lya": matroot.preset("mpa-lya"),
    "ns": matroot.preset("ns"),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("name", "choice"), [("attention", "auto"), *((name, choice) for name in WITH_ROOT for choice in CHOICES)]
)
def test_degenerate_input_gives_finite_values_and_gradients(name, choice, training):
    module, inputs = build(name, **CHOICES[choice])
    axis = 2 if name == "head" else 1
    for kind, degenerate in DEGENERATE.items():
        given = [degenerate(x, axis).contiguous() for x in inputs]
        for tensor in value_and_gradients(module.train(training), given):
            assert torch.isfinite(tensor).all(), kind


# --- state, copies, layouts, dtypes --------------------------------------------------------------


@every_module
def test_state_crosses_dtypes(name):
    """A float32 state in a float64 module, and back, is the same function."""
    module, inputs = build(name)
    wide = build(name, torch.float64)[0]
    for parameter in wide.parameters():
        parameter.data.zero_()
    wide.load_state_dict(module.state_dict())
    wide_inputs = [x.double() for x in inputs]
    back = build(name)[0]
    back.load_state_dict(wide.state_dict())
    for key, value in module.state_dict().items():
        assert torch.equal(back.state_dict()[key], value)
    expected = module.eval()(*inputs)
    # A zero eigenvalue, as of a dead channel, becomes the root of 4 eps times a bound of the largest: see Minimax.
    torch.testing.assert_close(wide.eval()(*wide_inputs).float(), expected, rtol=1e-3, atol=5e-3)
    assert {v.dtype for v in wide.state_dict().values()} <= {torch.float64, torch.int64}


@every_module
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies_are_equal_and_separate(name, copied):
    module, inputs = build(name, torch.float64)
    twin = copied(module)
    close([twin.eval()(*inputs)], [module.eval()(*inputs)])
    assert not {p.data_ptr() for p in twin.parameters()} & {p.data_ptr() for p in module.parameters()}


@every_module
def test_saved_and_loaded(name):
    module, inputs = build(name, torch.float64)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    twin = MODULES[name][0]().double()
    twin.load_state_dict(torch.load(file, weights_only=True))
    close([twin.eval()(*inputs)], [module.eval()(*inputs)])


@pytest.mark.parametrize(
    "written",
    [
        "CovariancePool(in_channels=6)",
        "CovariancePool(in_channels=6, reduce_to=None, dims=3, root=False, triangle=False)",
        "CovariancePool(in_channels=6, method=Minimax(tolerance=0.01, condition=None), gradient=Smith(rounds=2))",
        "TemporalCovariancePool()",
        "TemporalCovariancePool(window=5, per_frame=True, method='taylor')",
        "TemporalAttention(channels=6, window=3, expansion=2)",
        "WhitenColor()",
        "WhitenColor(alpha=1, learnable=False, groups=3, eps=0.01)",
        "SecondOrderHead(in_features=6, num_classes=5, reduce_to=None)",
    ],
)
def test_prints_as_its_constructor_call(written):
    module = eval(written, {**{name: getattr(matroot, name) for name in dir(matroot)}, **vars(matroot.nn)})
    assert f"{type(module).__name__}({module.extra_repr()})" == written


def test_a_subclass_with_another_constructor_prints_as_the_layer_it_extends():
    class Reduced(matroot.nn.CovariancePool):
        def __init__(self, width, **options):
            super().__init__(2 * width, width, **options)

    assert Reduced(4, dims=1).extra_repr() == "in_channels=8, reduce_to=4, dims=1"


@every_module
def test_checkpointing(name):
    module, inputs = build(name, torch.float64)

    class Checkpointed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, *inputs):
            return checkpoint(self.inner, *inputs, use_reentrant=False)

    close(value_and_gradients(Checkpointed(), inputs), value_and_gradients(module, inputs))


@every_module
def test_channels_last(name):
    """Another layout of the same numbers gives the same result and keeps its layout where the shape stays."""
    module, inputs = build(name, torch.float64)
    if inputs[0].ndim < 4:
        last = [x.mT.contiguous().mT for x in inputs]
    else:
        layout = torch.channels_last if inputs[0].ndim == 4 else torch.channels_last_3d
        last = [x.contiguous(memory_format=layout) for x in inputs]
        if name == "whiten-color":
            assert module(*last).is_contiguous(memory_format=layout)
    assert not any(x.is_contiguous() for x in last)
    close(value_and_gradients(module, last), value_and_gradients(module, inputs))


@every_module
def test_autocast(name):
    """bfloat16 features go in and come out; a statistic in bfloat16 would cost its root sqrt(2^-8) of the norm."""
    module, inputs = build(name)
    with torch.autocast("cpu", torch.bfloat16):
        value = module.eval()(*(x.bfloat16() for x in inputs))
    assert value.dtype == torch.bfloat16
    exact = copy.deepcopy(module).double()(*(x.bfloat16().double() for x in inputs))
    assert torch.linalg.vector_norm(value.double() - exact) < 0.03 * torch.linalg.vector_norm(exact)
    with torch.autocast("cpu", torch.bfloat16):
        gradients = value_and_gradients(module.train(), [x.bfloat16() for x in inputs])
    assert all(torch.isfinite(g).all() for g in gradients)
    assert [g.dtype for g in gradients[1 : 1 + len(inputs)]] == [torch.bfloat16] * len(inputs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@every_module
def test_half_precision_modules(name, dtype):
    module, inputs = build(name, dtype)
    value = module(*inputs)
    assert value.dtype == dtype
    assert torch.isfinite(value).all()


# --- torch.compile -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_compile(name):
    """One graph: nothing in it waits for a value on the host."""
    torch._dynamo.reset()
    module, inputs = build(name, torch.float64)
    expected = value_and_gradients(module, inputs)

    class Compiled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module
            self.call = torch.compile(module, fullgraph=True, backend="aot_eager")

        def forward(self, *inputs):
            return self.call(*inputs)

    close(value_and_gradients(Compiled(), inputs), expected)
