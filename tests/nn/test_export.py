"""Every layer as an exported graph: saved, loaded, and run in PyTorch and in ONNX."""

import io
import logging

import onnxruntime
import pytest
import torch
from torch import nn
from torch.torch_version import TorchVersion

import matroot
import matroot.nn
from matroot.nn import ZCAWhitening

from .decorrelated_layers import LAYERS, features, make
from .modules import ONE_OF_A_KIND, build


def decorrelated(kind, track, **options):
    """A layer with running statistics, and input."""
    layer = make(kind, track=track, **options)
    layer(features(kind, dtype=layer.weight.dtype))
    return layer, [features(kind, dtype=layer.weight.dtype, seed=1)]


def zca(learn, dtype=torch.float64):
    X = features("1d", dtype=dtype, mean=1.0)
    return getattr(ZCAWhitening(6, dtype=dtype), learn)(X), [X]


CASES = {
    **{f"decorrelated-{kind}": lambda kind=kind: decorrelated(kind, "whitening") for kind in LAYERS},
    "decorrelated-covariance": lambda: decorrelated("2d", "covariance"),
    "zca": lambda: zca("fit"),
    **{name: lambda name=name: build(name, torch.float64) for name in ONE_OF_A_KIND},
}


def exported_saved_and_loaded(module, inputs):
    file = io.BytesIO()
    torch.export.save(
        torch.export.export(module, tuple(inputs), dynamic_shapes=_dynamic(inputs) if ANY_BATCH else None), file
    )
    file.seek(0)
    return torch.export.load(file).module()


def test_every_layer_is_here():
    layers = {v for v in vars(matroot.nn).values() if isinstance(v, type) and issubclass(v, nn.Module)}
    assert {type(case()[0]) for case in CASES.values()} == layers


# torch 2.11 derives a bound of the batch from the strides of a product of grouped channels.
ANY_BATCH = torch.__version__ >= TorchVersion("2.12")


@pytest.mark.filterwarnings("ignore:The given buffer is not writable:UserWarning")  # torch.export.load of 2.11
@pytest.mark.parametrize("name", CASES)
def test_export_round_trip(name):
    """Any batch size; eager and exported roots of a zero eigenvalue differ: of 4 eps, and of rounding."""
    module, inputs = CASES[name]()
    loaded = exported_saved_and_loaded(module.eval(), inputs)
    for copies in (1, 2) if ANY_BATCH else (1,):
        repeated = _repeated(inputs, copies)
        torch.testing.assert_close(loaded(*repeated), module(*repeated), rtol=1e-6, atol=1e-6)


def test_export_of_deferred_roots():
    """After ``partial_fit`` alone the graph contains the roots, and exporting does not change the module."""
    layer, (X,) = zca("partial_fit")
    loaded = exported_saved_and_loaded(layer, [X])
    assert torch.equal(layer.whitening, torch.eye(6, dtype=X.dtype))
    for found in (loaded(X), layer(X)):
        torch.testing.assert_close(found, ZCAWhitening(6, dtype=X.dtype).fit(X)(X), rtol=1e-9, atol=1e-9)


def _dynamic(inputs):
    """A symbolic batch, except for inputs of batch one."""
    batch = torch.export.Dim("batch", min=2, max=128)
    return tuple({0: batch} if len(x) > 1 else None for x in inputs)


def _repeated(inputs, copies):
    return [torch.cat([x] * copies) if len(x) > 1 else x for x in inputs]


# --- ONNX ----------------------------------------------------------------------------------------


class Together(nn.Module):
    """Layers side by side, each on inputs of its own: one graph, since most of the time goes into making one."""

    def __init__(self, cases):
        super().__init__()
        self.layers = nn.ModuleList([module for module, _ in cases])
        self.counts = [len(inputs) for _, inputs in cases]

    def forward(self, *inputs):
        remaining = iter(inputs)
        return tuple(
            layer(*(next(remaining) for _ in range(count)))
            for layer, count in zip(self.layers, self.counts, strict=True)
        )


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_onnx(tmp_path):
    """Layers with a root and without, for any batch size. The method is one made of products, with few of them: what
    methods need is tested where they are."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    method = matroot.NewtonSchulz(iterations=2)
    cases = {name: build(name, method=method) for name in ("temporal", "whiten-color", "head")} | {
        "attention": build("attention"),
        "decorrelated-whitening": decorrelated("2d", "whitening", dtype=torch.float32),
        "decorrelated-covariance": decorrelated("1d", "covariance", method=method, dtype=torch.float32),
        "zca": zca("fit", torch.float32),
    }
    module = Together(list(cases.values())).eval()
    inputs = [x[:2] for _, given in cases.values() for x in given]
    program = torch.onnx.export(module, tuple(inputs), dynamo=True, verbose=False, dynamic_shapes=(_dynamic(inputs),))
    program.save(str(tmp_path / "layers.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "layers.onnx"))
    for copies in (1, 2):
        repeated = _repeated(inputs, copies)
        names = [given.name for given in session.get_inputs()]
        found = session.run(None, dict(zip(names, (x.numpy() for x in repeated), strict=True)))
        for name, ours, expected in zip(cases, found, module(*repeated), strict=True):
            # other products in another order, in float32, through a root
            torch.testing.assert_close(
                torch.from_numpy(ours), expected, rtol=1e-3, atol=1e-3, msg=lambda text, name=name: f"{name}: {text}"
            )


def test_sizes_that_depend_on_data():
    """Positions that a mask chooses: their number is no constant of the graph."""

    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = matroot.nn.CovariancePool(4, dims=1, method="taylor")

        def forward(self, x, mask):
            positions = mask.nonzero().squeeze(-1)
            torch._check(positions.shape[0] >= 2)
            return self.pool(x[:, :, positions])

    x, mask = torch.randn(2, 4, 12, dtype=torch.float64), torch.arange(12) % 3 > 0
    module = Chosen().double().eval()
    graph = torch.export.export(module, (x, mask), strict=False).module()
    for each in (mask, ~mask):
        torch.testing.assert_close(graph(x, each), module(x, each))
