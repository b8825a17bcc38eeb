"""Networks, data and recipes that train in a blink."""

from dataclasses import dataclass

import torch
from safetensors.torch import save_file
from torch import nn

import matroot
from matroot import models
from matroot.nn import DecorrelatedBatchNorm2d
from matroot.train import data
from matroot.train.data.batches import Data
from matroot.train.recipe import Recipe

CLASSES, CHANNELS, SIZE = 6, 2, 8


class TinyNetwork(nn.Module):
    """Two convolutions, a decorrelated and two plain normalisations, dropout."""

    def __init__(self, num_classes, **options):
        super().__init__()
        self.num_classes = num_classes
        self.stem = nn.Conv2d(CHANNELS, 8, 3, padding=1)
        self.whiten = DecorrelatedBatchNorm2d(8, eps=1e-2, **options)
        self.block = nn.Sequential(
            nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        )
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(8, num_classes)

    def get_classifier(self):
        return self.fc

    def forward(self, images):
        return self.fc(self.dropout(self.block(self.whiten(self.stem(images))).mean((2, 3))))


@dataclass(frozen=True)
class TinyBatches:
    """Noise about a pattern per class; all of it from seed and epoch."""

    seed: int
    steps: int
    batch_size: int
    device: str | torch.device = "cpu"

    def __len__(self):
        return self.steps

    def epoch(self, number):
        patterns = torch.randn(CLASSES, CHANNELS, SIZE, SIZE, generator=torch.Generator().manual_seed(99))
        generator = torch.Generator().manual_seed(1000 * self.seed + number)
        for _ in range(self.steps):
            labels = torch.randint(CLASSES, (self.batch_size,), generator=generator)
            noise = torch.randn(self.batch_size, CHANNELS, SIZE, SIZE, generator=generator)
            yield (patterns[labels] + noise).to(self.device), labels.to(self.device)


def tiny_recipe(**fields):
    """A recipe of 3 epochs of 4 steps, unless ``fields`` say otherwise."""
    given = {
        "model": "tiny",
        "dataset": "tiny",
        "epochs": 3,
        "batch_size": 16,
        "image_size": SIZE,
        "lr": 0.1,
        "weight_decay": 1e-3,
        "schedule": "one-cycle",
        "augment": "none",
    }
    return Recipe(**(given | fields))


def tiny_data(recipe, steps=4, device="cpu"):
    """A few batches to train on and two to test with."""
    train = TinyBatches(recipe.seed, steps, recipe.batch_size, device)
    return Data(train, TinyBatches(500, 2, 20, device), CLASSES, CHANNELS, "noise stands in for pictures")


def install(patch):
    """Make ``train()`` find the network and the data of this file. patch: a ``pytest.MonkeyPatch``."""
    patch.setattr(models, "create", _create, raising=False)
    patch.setattr(models, "save", _save, raising=False)
    patch.setattr(models, "set_preset", _set_preset, raising=False)
    patch.setattr(data, "open_data", lambda recipe, root, device, *_: tiny_data(recipe, device=device), raising=False)


def _create(name, num_classes, preset, in_channels):
    assert (name, in_channels) == ("tiny", CHANNELS)
    return TinyNetwork(num_classes, **_options(preset))


def _options(preset):
    return {"method": "auto", "gradient": None} if preset == "default" else matroot.preset(preset)


def _set_preset(network, preset):
    vars(network.whiten).update(_options(preset))


def _save(network, path):
    save_file(network.state_dict(), path)
