"""Batches of data that live on the GPU."""

import pytest
import torch

from matroot.train.data import open_data

from ..train.tiny import tiny_recipe


@pytest.mark.parametrize("augment", ["none", "crop-flip", "resized-crop-flip", "shift"])
def test_an_epoch_is_that_of_the_cpu_and_waits_for_nothing(augment):
    """Crops copy pixels; a resized crop interpolates, which rounds differently: 1e-3 is below a grey level."""
    recipe = tiny_recipe(dataset="digits", image_size=16, augment=augment, erasing=0.25, batch_size=128)
    epochs = [open_data(recipe, None, torch.device(kind)).train.epoch(3) for kind in ("cpu", "cuda")]
    next(epochs[1])  # the random numbers of the epoch are copied to the device
    next(epochs[0])
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = list(epochs[1])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected = list(epochs[0])
    assert len(found) == len(expected) > 5
    for (images, labels), (same, truth) in zip(found, expected, strict=True):
        torch.testing.assert_close(labels.cpu(), truth)
        torch.testing.assert_close(images.cpu(), same, rtol=0, atol=1e-3)
