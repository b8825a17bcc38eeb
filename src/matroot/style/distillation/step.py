"""One step of a distillation, and what it changes: network, average and optimiser."""

import copy
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from ..network import StyleNetwork
from ..transforms import Whitening
from .batches import Batches, Pairs
from .losses import content_distance, feature_distance, style_distance, total_variation
from .recipe import Recipe
from .teacher import Teacher

TERMS = ("content", "style", "pixels", "features", "imitation", "variation")
"""Fields of a recipe that are weights of a loss, in the order of a step's figures."""
FIGURES = (*TERMS, "gradient", "skipped")
"""What is summed over steps: the terms without weights, the norm of the gradient, steps that were not finite."""
IMITATED_STRENGTH = 0.6
"""Of the teacher's own pictures; with more, its single transform destroys the content."""


class Distiller:
    """A network in training. Nothing in a step waits for the device; only :meth:`read` does."""

    def __init__(self, recipe: Recipe, teacher: Teacher, batches: Batches, device: torch.device) -> None:
        self.recipe, self.batches, self.device = recipe, batches, device
        torch.manual_seed(recipe.seed)
        self.teacher = teacher.to(device)
        self.network = StyleNetwork(recipe.channels).to(device)
        self.average = copy.deepcopy(self.network).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=recipe.lr, betas=(0.9, 0.99), fused=True)
        self.done = 0
        """Steps so far."""
        self._sums = torch.zeros(len(FIGURES), dtype=torch.float64, device=device)
        self._counted = 0

    def step(self) -> None:
        """Train on the next pairs; weights stay as they are where the gradient is not finite."""
        recipe = self.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(recipe, self.done)
        self.optimizer.zero_grad(set_to_none=True)
        terms = self._terms(self.batches.step(self.done))
        weights = [term_weight(recipe, name, self.done) for name in TERMS]
        torch.stack([weight * term for weight, term in zip(weights, terms, strict=True)]).sum().backward()
        norm = clip_grad_norm_(self.network.parameters(), recipe.clip_norm)
        skipped = (~torch.isfinite(norm)).float()
        # Fused optimisers, as a scaler of losses needs them, leave out an update where this is 1.
        vars(self.optimizer)["found_inf"] = skipped
        self.optimizer.step()
        self._update_average()
        self._sums.add_(torch.nan_to_num(torch.cat([terms.detach(), norm[None], skipped[None]]).double(), 0, 0, 0))
        self._counted += 1
        self.done += 1

    def read(self) -> dict[str, float]:
        """Means of ``FIGURES`` over the steps since the last call; what is not finite counts as 0."""
        means = (self._sums / max(self._counted, 1)).tolist()
        self._sums.zero_()
        self._counted = 0
        return dict(zip(FIGURES, means, strict=True))

    def state(self) -> dict[str, Any]:
        """All that :meth:`load_state` needs to go on as if there had been no interruption."""
        return {
            "done": self.done,
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`."""
        self.done = state["done"]
        self.network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])

    def _terms(self, pairs: Pairs) -> Tensor:
        """The losses of ``TERMS``, without weights."""
        content, style, recipe = pairs.content, pairs.style, self.recipe
        half = len(content) // 2
        # Half of the contents and the other half of the styles: as many pictures of each kind in the place of twice.
        originals = torch.cat([content[:half], style[half:]])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            with torch.no_grad():
                seen = self.teacher.encode(torch.cat([content, style]))
                of_content, of_style = zip(*(x.chunk(2) for x in seen), strict=True)
                of_originals = [torch.cat([x[:half], y[half:]]) for x, y in zip(of_content, of_style, strict=True)]
            painted = self.network.stylize(content, self.network.statistics(style), transform=Whitening()).float()
            reproduced = self.network(originals).float()
            # One pass of the teacher for both.
            seen = self.teacher.encode(torch.cat([painted, reproduced]))
            of_painted, of_reproduced = zip(*(x.chunk(2) for x in seen), strict=True)
            imitation = self._imitation(painted, of_content[-1], of_style[-1])
        return torch.stack(
            [
                content_distance(of_painted[-1], of_content[-1]),
                style_distance(of_painted, of_style),
                functional.l1_loss(reproduced, originals),
                feature_distance(of_reproduced, of_originals),
                imitation,
                total_variation(painted),
            ]
        )

    def _imitation(self, painted: Tensor, content: Tensor, style: Tensor) -> Tensor:
        """The mean absolute difference from the teacher's picture; 0, and no time, once it has no weight."""
        if term_weight(self.recipe, "imitation", self.done) == 0:
            return painted.new_zeros(())
        picture = self.teacher.transfer(content, style, IMITATED_STRENGTH).float()
        return functional.l1_loss(painted, picture[..., : painted.shape[2], : painted.shape[3]])

    @torch.no_grad()
    def _update_average(self) -> None:
        # Early on the average would be of random weights.
        decay = min(self.recipe.ema, (1 + self.done) / (10 + self.done))
        torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()), 1 - decay)


def learning_rate(recipe: Recipe, step: int) -> float:
    """Of step 0, 1, ...: a linear rise, then half a cosine."""
    if step < recipe.warmup:
        return recipe.lr * (step + 1) / recipe.warmup
    passed = (step - recipe.warmup) / max(recipe.steps - recipe.warmup, 1)
    return recipe.final_lr + (recipe.lr - recipe.final_lr) * (1 + math.cos(math.pi * min(passed, 1))) / 2


def term_weight(recipe: Recipe, name: str, step: int) -> float:
    """Weight of a term of the loss at step 0, 1, ...; that of the imitation falls linearly to 0."""
    weight = getattr(recipe, name)
    if name != "imitation":
        return weight
    return weight * max(0.0, 1 - step / (recipe.imitated * recipe.steps)) if recipe.imitated else 0.0
