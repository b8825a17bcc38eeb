"""Loss and accuracy on the test split."""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .data.batches import Batches
from .distributed import Ranks, sum_over_ranks
from .objective import autocast
from .recipe import Recipe


@dataclass(frozen=True)
class Scores:
    """Means over all examples; accuracies are fractions, ``top5`` counts a label among the five largest logits."""

    loss: float
    accuracy: float
    top5: float


@torch.no_grad()
def evaluate(model: nn.Module, batches: Batches, recipe: Recipe, ranks: Ranks, views: int = 1) -> Scores:
    """Scores over the batches of all processes; the network is left in evaluation mode.

    views: of an example; if there are several, the second dimension of batches, whose probabilities are averaged.
    """
    model.eval()
    sums = torch.zeros(4, dtype=torch.float64, device=ranks.device)
    for images, labels in batches.epoch(0):
        with autocast(recipe, ranks.device):
            logits = model(images if views == 1 else images.flatten(0, 1)).float()
        if views > 1:
            # Logarithms of the means, which are logits too.
            logits = logits.log_softmax(1).unflatten(0, (-1, views)).logsumexp(1) - math.log(views)
        loss = functional.cross_entropy(logits, labels, reduction="sum")
        hits = logits.topk(min(5, logits.shape[1])).indices == labels[:, None]
        sums += torch.stack([loss, hits[:, 0].sum(), hits.sum(), torch.full_like(loss, len(labels))])
    loss, correct, among_five, examples = sum_over_ranks(sums, ranks).tolist()
    return Scores(loss / examples, correct / examples, among_five / examples)
