"""Statistics that are measured anew."""

import copy

import pytest
import torch
from torch import nn

from matroot.nn import DecorrelatedBatchNorm2d, update_statistics


def moved_network(dropout=0.0):
    """One whose running averages are far from its features."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 8, 3),
        DecorrelatedBatchNorm2d(8, eps=1e-2),
        nn.Dropout(dropout),
        nn.Conv2d(8, 4, 3),
        nn.BatchNorm2d(4),
        nn.BatchNorm2d(4, track_running_stats=False),
    ).double()
    for buffer in model.buffers():
        if buffer.is_floating_point():
            nn.init.normal_(buffer, 5.0)
    return model


def batches(count=3):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(6, 2, 8, 8, generator=generator, dtype=torch.float64) for _ in range(count)]


def test_statistics_are_means_over_the_batches():
    """To rounding in float64; the condition of the covariances is below 1e3."""
    model, data = moved_network(), batches()
    update_statistics(model, data)
    features = [model[0](images) for images in data]
    means = torch.stack([x.mean((0, 2, 3)) for x in features])
    torch.testing.assert_close(model[1].running_mean, means.mean(0), rtol=1e-12, atol=1e-12)
    roots = []
    for x, mean in zip(features, means, strict=True):
        rows = (x - mean[:, None, None]).transpose(0, 1).flatten(1)
        values, vectors = torch.linalg.eigh(rows @ rows.mT / rows.shape[1] + model[1].eps * torch.eye(8).double())
        roots.append(vectors @ torch.diag(values.rsqrt()) @ vectors.mT)
    torch.testing.assert_close(model[1].running_whitening[0], torch.stack(roots).mean(0), rtol=1e-10, atol=1e-10)
    assert model[4].num_batches_tracked == len(data)


def test_evaluation_of_the_very_batch_is_training():
    """For the decorrelated layer, whose statistics are divided by the number of positions."""
    model, (batch,) = moved_network()[:2], batches(1)
    update_statistics(model, [batch])
    torch.testing.assert_close(model.eval()(batch), model.train()(batch), rtol=1e-10, atol=1e-10)


def test_weights_momenta_and_flags_stay():
    model = moved_network()
    model[3].eval()
    before = copy.deepcopy(model)
    update_statistics(model, batches())
    assert [m.training for m in model.modules()] == [m.training for m in before.modules()]
    assert [model[1].momentum, model[4].momentum] == [before[1].momentum, before[4].momentum]
    for found, expected in zip(model.parameters(), before.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def unreadable():
    yield batches(1)[0]
    raise OSError("no such image")


NAN = torch.full((6, 2, 8, 8), torch.nan, dtype=torch.float64)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (lambda: [*batches(1), NAN[:, :1]], RuntimeError, "channels"),
        (unreadable, OSError, "no such image"),
        (list, ValueError, "there are no batches"),
        (lambda: iter(()), ValueError, "there are no batches"),
        (lambda: [NAN], ValueError, "no batch gave layer '1' statistics"),
        (lambda: [*batches(1), NAN], ValueError, "layer '4' came out NaN or Inf"),
    ],
)
@pytest.mark.parametrize("training", [False, True])
def test_an_error_leaves_everything_as_it_was(inputs, error, message, training):
    """Restored, so to the bit. The decorrelated layer ignores a batch of NaN, batch normalisation does not."""
    model = moved_network().train(training)
    before = copy.deepcopy(model)
    with pytest.raises(error, match=message):
        update_statistics(model, inputs())
    assert model[1].momentum == model[4].momentum == 0.1
    assert all(module.training is training for module in model.modules())
    for name, value in before.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, rtol=0, atol=0)


def test_a_layer_that_the_model_does_not_call_is_named():
    model = nn.Sequential(nn.Identity(), nn.BatchNorm2d(2))
    model.forward = model[0].forward
    with pytest.raises(ValueError, match=r"no batch gave layer '1' statistics: .*keep="):
        update_statistics(model, batches())
    update_statistics(model, batches(), keep=[model[1]])


@pytest.mark.parametrize("pair", [list, tuple])
def test_of_images_and_labels_the_images_are_taken(pair):
    """As ``update_bn`` does."""
    found = []
    for inputs in (batches(), [pair((images, torch.zeros(6))) for images in batches()]):
        model = moved_network()
        update_statistics(model, inputs)
        found.append(model[1].running_mean)
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_batches_are_moved_to_the_device():
    """The meta device has no values, so what is refused is what would be computed there."""
    model = moved_network()
    with pytest.raises(RuntimeError, match="meta"):
        update_statistics(model, batches(), device="meta")
    update_statistics(model, batches(), device="cpu")


def test_kept_layers_keep_their_statistics():
    model = moved_network()
    before = copy.deepcopy(model)
    update_statistics(model, batches(), keep=[model[4]])
    assert not torch.equal(model[1].running_mean, before[1].running_mean)
    torch.testing.assert_close(model[4].running_mean, before[4].running_mean, rtol=0, atol=0)


class NormThenDropout(nn.BatchNorm2d):
    """As timm's layers that normalise, drop and activate."""

    def __init__(self, channels):
        super().__init__(channels)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(super().forward(x))


def test_dropout_within_a_norm_plays_no_part():
    torch.manual_seed(0)
    model = nn.Sequential(NormThenDropout(4), nn.BatchNorm2d(4))
    x = torch.randn(8, 4, 3, 3)
    update_statistics(model, [x])
    normalised = nn.functional.batch_norm(x, None, None, training=True)
    torch.testing.assert_close(model[1].running_var, normalised.var((0, 2, 3)), rtol=1e-5, atol=1e-5)
    assert all(module.training for module in model.modules())


def test_dropout_plays_no_part():
    found = []
    for dropout in (0.0, 0.5):
        model = moved_network(dropout)
        update_statistics(model, batches())
        found.append(model[4].running_var)
    torch.testing.assert_close(*found, rtol=0, atol=0)
