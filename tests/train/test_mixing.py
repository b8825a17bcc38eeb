"""Mixup and cutmix."""

import pytest
import torch

from matroot.train.mixing import mix

from .tiny import tiny_recipe


def batch(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)), torch.arange(shape[0])


def test_nothing_to_mix_changes_nothing():
    images, labels = batch(4, 3, 5, 5)
    assert mix(tiny_recipe(), 4, images, labels, 1, 0) == (images, labels)


@pytest.mark.parametrize("shape", [(4, 3, 6, 6), (4, 2, 3, 6, 6)])
def test_mixup_weighs_images_and_targets_alike(shape):
    """Image k is lam x_k + (1 - lam) x_(B-1-k) for one lam, that of the targets; clips too."""
    images, labels = batch(*shape)
    original = images.clone()
    mixed, targets = mix(tiny_recipe(mixup=0.8), 4, images, labels, 1, 0)
    lam = targets[0, 0]
    assert 0 < lam < 1
    torch.testing.assert_close(targets, lam * torch.eye(4) + (1 - lam) * torch.eye(4).flip(0))
    torch.testing.assert_close(mixed, lam * original + (1 - lam) * original.flip(0))


@pytest.mark.parametrize("shape", [(4, 3, 6, 6), (4, 2, 3, 6, 6)])
def test_cutmix_weighs_targets_by_area(shape):
    """The same rectangle of every channel and frame is that of the other image."""
    for step in range(20):
        images, labels = batch(*shape)
        original = images.clone()
        mixed, targets = mix(tiny_recipe(cutmix=1.0), 4, images, labels, 1, step)
        other = (mixed == original.flip(0)).flatten(0, -3)
        assert (other == other[0]).all()
        assert targets[0, 3].item() == pytest.approx(other[0].float().mean().item(), abs=1e-6)
        torch.testing.assert_close(mixed, torch.where(other[0], original.flip(0), original))


def test_smoothing_is_in_the_targets():
    targets = mix(tiny_recipe(mixup=0.8, label_smoothing=0.1), 4, *batch(4, 3, 6, 6), 1, 0)[1]
    torch.testing.assert_close(targets.sum(1), torch.ones(4))
    assert targets.min().item() == pytest.approx(0.1 / 4)


def test_only_seed_epoch_and_step_decide():
    recipe = tiny_recipe(mixup=0.8, cutmix=1.0)
    found = [mix(recipe, 4, *batch(4, 3, 6, 6), epoch, step)[1] for epoch, step in ((1, 0), (1, 0), (1, 1), (2, 0))]
    assert torch.equal(found[0], found[1])
    assert len({tuple(targets.flatten().tolist()) for targets in found}) == 3
