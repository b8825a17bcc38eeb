"""One step of style exchange: generators, then discriminators."""

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Adam

from ...models.style_exchange import StyleExchange
from .losses import Discriminators, discriminator_loss, exchange, generator_losses
from .recipe import StyleRecipe

LOSSES = ("adversarial", "reconstruction", "cycle", "style", "content", "discriminator")
"""What :class:`Step` returns, in its order; the first five are the generators'."""


class Step:
    """``step(photos, paintings, lr)``: update both networks, and return their losses (6,) as ``LOSSES`` names them.

    Nothing waits for the device. Both networks are on it.
    """

    def __init__(self, network: StyleExchange, discriminators: Discriminators, recipe: StyleRecipe) -> None:
        self.network, self.discriminators, self.recipe = network, discriminators, recipe
        self.generator_optimizer = _adam(network, recipe)
        self.discriminator_optimizer = _adam(discriminators, recipe)

    def __call__(self, photos: Tensor, paintings: Tensor, lr: float) -> Tensor:
        for optimizer in (self.generator_optimizer, self.discriminator_optimizer):
            optimizer.param_groups[0]["lr"] = lr
        if self.recipe.channels_last:
            photos, paintings = (x.contiguous(memory_format=torch.channels_last) for x in (photos, paintings))
        # Gradients go through the discriminators to the generators, not to the discriminators.
        self.discriminators.requires_grad_(False)
        with self._autocast(photos):
            made = exchange(self.network, photos, paintings)
            losses = generator_losses(self.recipe, made, self.discriminators, photos, paintings)
        self._update(self.generator_optimizer, torch.stack(list(losses.values())).sum(), self.network)
        self.discriminators.requires_grad_(True)
        with self._autocast(photos):
            judged = discriminator_loss(made, self.discriminators, photos, paintings)
        self._update(self.discriminator_optimizer, judged, self.discriminators)
        return torch.stack([*(losses[name] for name in LOSSES[:-1]), judged]).detach()

    def _autocast(self, images: Tensor) -> torch.autocast:
        return torch.autocast(images.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")

    def _update(self, optimizer: Adam, loss: Tensor, network: nn.Module) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.clip_norm is not None:
            clip_grad_norm_(network.parameters(), self.recipe.clip_norm)
        optimizer.step()


def _adam(network: nn.Module, recipe: StyleRecipe) -> Adam:
    betas = (recipe.beta1, recipe.beta2)
    return Adam(network.parameters(), recipe.lr, betas, weight_decay=recipe.weight_decay, fused=True)
