"""torchvision can be imported where its operators cannot be loaded: the networks see to that, before any test does."""

from matroot import models as models
