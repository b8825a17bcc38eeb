"""One step: what it updates, clips, averages and counts."""

import copy

import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.nn import functional

import matroot
from matroot.nn import DecorrelatedBatchNorm2d, SecondOrderHead, TemporalCovariancePool
from matroot.train.average import Average
from matroot.train.optimiser import create_optimizer
from matroot.train.step import SKIPPED_STEPS, EagerStep, why_not_captured

from .tiny import CLASSES, TinyNetwork, tiny_data, tiny_recipe


def make_step(step_type=EagerStep, ema=None, scaler=None, **fields):
    torch.manual_seed(0)
    network = TinyNetwork(CLASSES)
    network.dropout.p = 0.0
    recipe = tiny_recipe(ema=ema, **fields)
    average = None if ema is None else Average(network, ema)
    return step_type(network, create_optimizer(network, recipe), recipe, average, scaler)


def batches(step, count=4):
    return list(tiny_data(step.recipe, count).train.epoch(1))


def test_a_step_is_plain_sgd():
    """Against four lines of torch, to the rounding of float32."""
    step = make_step(weight_decay=0.0, label_smoothing=0.1)
    other = copy.deepcopy(step.model)
    images, labels = batches(step)[0]
    step(images, labels, 0.3)
    loss = functional.cross_entropy(other(images), labels, label_smoothing=0.1)
    loss.backward()
    for mine, own in zip(step.model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, own - 0.3 * own.grad)


def test_totals_count_examples():
    step = make_step()
    step.totals.start_epoch()
    loss = correct = 0.0
    for images, labels in batches(step, 3):
        with torch.no_grad():
            logits = copy.deepcopy(step.model)(images)
        loss += functional.cross_entropy(logits, labels, reduction="sum").item()
        correct += (logits.argmax(1) == labels).sum().item()
        step(images, labels, 0.1)
    assert step.totals.read().tolist() == pytest.approx([loss, correct, 48, 3, 0], rel=1e-5)  # float32 losses
    step.totals.start_epoch()
    assert step.totals.read().tolist() == [0] * 5


def test_mixed_targets_count_their_larger_part():
    step = make_step()
    images = batches(step)[0][0]
    logits = copy.deepcopy(step.model)(images)
    step(images, 0.7 * functional.one_hot(logits.argmax(1), CLASSES) + 0.3 / CLASSES, 0.1)
    assert step.totals.read()[1] == 16


@pytest.mark.parametrize("clip_norm", [1e-3, 1e3])
def test_clipping_bounds_the_whole_gradient(clip_norm):
    """The update of plain SGD is lr times the clipped gradient; a bound above its norm changes nothing."""
    free, clipped = make_step(weight_decay=0.0), make_step(weight_decay=0.0, clip_norm=clip_norm)
    before = [parameter.detach().clone() for parameter in free.model.parameters()]
    norms = []
    for step in (free, clipped):
        step(*batches(step)[0], 1.0)
        moved = [p.detach() - b for p, b in zip(step.model.parameters(), before, strict=True)]
        norms.append(torch.cat([m.flatten() for m in moved]).norm().item())
    # Weights of size 1 keep moves to 1e-7 each; there are about a thousand.
    assert norms[1] == pytest.approx(min(norms[0], clip_norm), rel=1e-2)


def test_average_follows_weights_and_statistics():
    step = make_step(ema=0.75)
    start = copy.deepcopy(step.model.state_dict())
    step(*batches(step)[0], 0.1)
    own = copy.deepcopy(step.model.state_dict())
    with step.average.applied():
        for name, mean in step.model.state_dict().items():
            expected = 0.75 * start[name] + 0.25 * own[name] if mean.is_floating_point() else own[name]
            torch.testing.assert_close(mean, expected)
    for name, tensor in step.model.state_dict().items():
        assert torch.equal(tensor, own[name])


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("clip_norm", [None, 1.0])
def test_weights_stay_those_before_a_step_that_is_not_finite(optimizer, clip_norm):
    step = make_step(optimizer=optimizer, clip_norm=clip_norm)
    (images, labels), *others = batches(step)
    step(images, labels, 0.1)
    before = [parameter.detach().clone() for parameter in step.model.parameters()]
    step(torch.full_like(images, torch.nan), labels, 0.1)
    for batch in others:
        step(*batch, 0.1)
    assert step.totals.read()[3:].tolist() == [1, 1]
    for mine, old in zip(step.model.parameters(), before, strict=True):
        assert torch.equal(mine, old)


def test_a_gradient_that_is_not_finite_is_seen_before_the_loss_is():
    """The derivative of |x|^0.5 at 0."""

    class Root(nn.Module):
        def forward(self, x):
            return (x - x.detach()).abs().sqrt() + x

    step = make_step()
    step.model.block.append(Root())
    step(*batches(step)[0], 0.1)
    assert step.totals.read()[4] == 1


def test_float16_may_skip_some_steps_in_a_row():
    """Also the first ones, which leave no trace in momentum or totals."""
    step = make_step(precision="float16", scaler=GradScaler("cpu"))
    images, labels = batches(step)[0]
    bad = torch.full_like(images, torch.inf)
    for _ in range(2):
        for _ in range(SKIPPED_STEPS - 1):
            step(bad, labels, 0.1)
        step(images, labels, 0.1)
    assert all(torch.isfinite(parameter).all() for parameter in step.model.parameters())
    assert step.totals.read()[2:].tolist() == [2 * 16, 2 * SKIPPED_STEPS, 0]
    assert torch.isfinite(step.totals.read()).all()
    for _ in range(SKIPPED_STEPS):
        step(bad, labels, 0.1)
    assert step.totals.read()[4] == 1


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_autocast_is_near_float32(precision):
    """Losses agree to the eps of the lower precision, 2^-7 and 2^-10; and they are not the same."""
    found = {}
    for chosen in ("float32", precision):
        step = make_step(precision=chosen, scaler=GradScaler("cpu") if chosen == "float16" else None)
        step(*batches(step)[0], 0.1)
        found[chosen] = step.totals.read()[0].item() / 16
    assert found[precision] == pytest.approx(found["float32"], rel=2**-7)
    assert found[precision] != found["float32"]


def test_channels_last_is_the_same():
    """But for the order of sums in float32."""
    found = []
    for channels_last in (False, True):
        step = make_step(channels_last=channels_last)
        if channels_last:
            step.model.to(memory_format=torch.channels_last)
        step(*batches(step)[0], 0.1)
        found.append(step.model.stem.weight.detach())
    torch.testing.assert_close(*found)


CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize("preset", matroot.presets())
def test_decompositions_are_not_captured(preset):
    network = TinyNetwork(CLASSES)
    vars(network.whiten).update(matroot.preset(preset))
    reason = why_not_captured(network, tiny_recipe(), CUDA, 1)
    if preset.startswith("svd"):
        assert "whiten (DecorrelatedBatchNorm2d) decomposes" in reason
    else:
        assert reason is None


@pytest.mark.parametrize(
    ("method", "gradient", "captured"),
    [
        ("auto", None, True),
        ("auto", "smith", True),
        ("auto", "exact", False),
        ("eigen", None, False),
        ("pade", "exact", False),
        ("pade", None, True),
    ],
)
def test_what_is_captured_depends_on_the_root(method, gradient, captured):
    network = TinyNetwork(CLASSES, method=method, gradient=gradient)
    assert (why_not_captured(network, tiny_recipe(), CUDA, 1) is None) == captured


@pytest.mark.parametrize(
    ("layer", "captured"),
    [
        (DecorrelatedBatchNorm2d(128, groups=2, method="pade"), True),
        (DecorrelatedBatchNorm2d(128, method="pade"), False),
        (DecorrelatedBatchNorm2d(128, method="taylor"), True),
        (SecondOrderHead(256, 10, reduce_to=48, method="pade"), True),
        (SecondOrderHead(256, 10, reduce_to=65, method="pade"), False),
        (TemporalCovariancePool(method="pade"), False),
        (TemporalCovariancePool(), True),
    ],
    ids=lambda x: type(x).__name__,
)
def test_linear_systems_above_the_size_of_kernels_are_not_captured(layer, captured):
    reason = why_not_captured(nn.Sequential(layer), tiny_recipe(), CUDA, 1)
    assert reason is None if captured else "solves linear systems" in reason


def test_what_is_captured_depends_on_the_run():
    network = TinyNetwork(CLASSES)
    assert "cpu" in why_not_captured(network, tiny_recipe(), torch.device("cpu"), 1)
    assert "processes" in why_not_captured(network, tiny_recipe(), CUDA, 2)
    assert "float16" in why_not_captured(network, tiny_recipe(precision="float16"), CUDA, 1)
    assert why_not_captured(network, tiny_recipe(precision="bfloat16"), CUDA, 1) is None
