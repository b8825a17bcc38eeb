"""The paper's networks."""

from . import _torchvision as _torchvision
