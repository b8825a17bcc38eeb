"""Layers made under a default device, and on the meta device."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import matroot.nn

CONSTRUCTORS = {
    "DecorrelatedBatchNorm": "6, groups=2",
    "DecorrelatedBatchNorm1d": "6",
    "DecorrelatedBatchNorm2d": "6, track='covariance'",
    "DecorrelatedBatchNorm3d": "6, affine=False",
    "ZCAWhitening": "6",
    "CovariancePool": "6, 4",
    "TemporalCovariancePool": "",
    "TemporalAttention": "6",
    "WhitenColor": "0.3",
    "SecondOrderHead": "6, 5, reduce_to=4",
}


def construct(name):
    return eval(f"{name}({CONSTRUCTORS[name]})", vars(matroot.nn))


def test_every_layer_is_here():
    layers = {key for key, v in vars(matroot.nn).items() if isinstance(v, type) and issubclass(v, nn.Module)}
    assert CONSTRUCTORS.keys() == layers


def test_constructors_compute_nothing():
    """In a process of its own: a root of meta tensors in compiled code ends it."""
    calls = "\n".join(f"    matroot.nn.{name}({arguments})" for name, arguments in CONSTRUCTORS.items())
    program = f"import torch, matroot.nn\nwith torch.device('meta'):\n{calls}\n"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_made_on_the_meta_device(name):
    """``to_empty`` and the state of another layer make an equal one; so does ``reset_parameters``, where a layer has
    parameters or buffers of its own."""
    torch.manual_seed(0)
    expected = construct(name)
    with torch.device("meta"):
        made = construct(name)
    state = made.state_dict()
    assert all(tensor.is_meta for tensor in state.values())
    assert {key: (t.shape, t.dtype) for key, t in state.items()} == {
        key: (t.shape, t.dtype) for key, t in expected.state_dict().items()
    }
    loaded = _filled(made.to_empty(device="cpu"))
    loaded.load_state_dict(expected.state_dict())
    _assert_equal_state(loaded, expected)
    if list(made.parameters(recurse=False)) or list(made.buffers(recurse=False)):
        reset = _filled(loaded)
        reset.reset_parameters()
        _assert_equal_state(reset, expected)


def test_attention_is_reset_to_its_start():
    torch.manual_seed(0)
    expected = construct("TemporalAttention")
    layer = _filled(construct("TemporalAttention"))
    torch.manual_seed(0)
    layer.reset_parameters()
    _assert_equal_state(layer, expected)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("DecorrelatedBatchNorm", [(4, 6, 5, 4)]),
        ("DecorrelatedBatchNorm2d", [(4, 6, 5, 4)]),
        ("ZCAWhitening", [(20, 6)]),
        ("CovariancePool", [(2, 6, 5, 4)]),
        ("TemporalCovariancePool", [(2, 6, 3, 5, 4)]),
        ("TemporalAttention", [(2, 6, 3, 5, 4)]),
        ("WhitenColor", [(2, 6, 5, 4), (1, 6, 20)]),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_no_allocation_on_the_default_device(name, shapes, training):
    """Layers and features on the CPU, whatever the default device."""
    torch.manual_seed(0)
    layer, inputs = construct(name).train(training), [torch.randn(shape, requires_grad=True) for shape in shapes]
    results = []
    for default in ("cpu", "meta"):
        with torch.device(default):
            value = layer(*inputs)
            results.append((value.detach(), *torch.autograd.grad(value.square().sum(), inputs)))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)  # float32, rounding through a root


@pytest.mark.parametrize("learn", ["fit", "partial_fit", "fit_transform"])
def test_statistics_are_not_allocated_on_the_default_device(learn):
    torch.manual_seed(0)
    layer, X = construct("ZCAWhitening"), torch.randn(20, 6)
    with torch.device("meta"):
        getattr(layer, learn)(X)
    torch.testing.assert_close(layer.covariance, torch.cov(X.T), rtol=1e-4, atol=1e-4)


def _filled(layer):
    """The layer with every parameter and buffer overwritten."""
    with torch.no_grad():
        for tensor in layer.state_dict().values():
            tensor.fill_(3)
    return layer


def _assert_equal_state(layer, expected):
    for key, value in expected.state_dict().items():
        assert torch.equal(layer.state_dict()[key], value)
