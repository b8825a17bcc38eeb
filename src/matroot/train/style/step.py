"""One step of style exchange: generators, then discriminators."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Adam

from ...models.style_exchange import StyleExchange
from ..graph import CapturedCall
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
        device = next(network.parameters()).device
        # On the device, so that a captured step sees it change; there in the float32 that Adam's kernels read.
        dtype = torch.float64 if device.type == "cpu" else torch.float32
        self._rate = torch.tensor(recipe.lr, dtype=dtype, device=device)
        self._networks = {"generators": network, "discriminators": discriminators}
        self._optimizers = {name: _adam(part, self._rate, recipe) for name, part in self._networks.items()}

    def __call__(self, photos: Tensor, paintings: Tensor, lr: float) -> Tensor:
        self._rate.fill_(lr)
        return self._train(photos, paintings)

    def state(self) -> dict[str, Any]:
        """Networks and optimisers, as fields of a Checkpoint."""
        return {
            "network": {name: network.state_dict() for name, network in self._networks.items()},
            "optimizer": {name: optimizer.state_dict() for name, optimizer in self._optimizers.items()},
        }

    def load_state(self, network: dict[str, Any], optimizer: dict[str, Any]) -> None:
        """Go on from :meth:`state`, of any device, before the first step."""
        for name, part in self._networks.items():
            part.load_state_dict(network[name])
            self._optimizers[name].load_state_dict(optimizer[name])
            # Groups are now those of the file, whose rate is a number or a tensor elsewhere.
            self._optimizers[name].param_groups[0].update(lr=self._rate, capturable=True)

    def _train(self, photos: Tensor, paintings: Tensor) -> Tensor:
        if self.recipe.channels_last:
            photos, paintings = (x.contiguous(memory_format=torch.channels_last) for x in (photos, paintings))
        # Gradients go through the discriminators to the generators, not to the discriminators.
        self.discriminators.requires_grad_(False)
        with self._autocast(photos):
            made = exchange(self.network, photos, paintings)
            losses = generator_losses(self.recipe, made, self.discriminators, photos, paintings)
        self._update("generators", torch.stack(list(losses.values())).sum())
        self.discriminators.requires_grad_(True)
        with self._autocast(photos):
            judged = discriminator_loss(made, self.discriminators, photos, paintings)
        self._update("discriminators", judged)
        return torch.stack([*(losses[name] for name in LOSSES[:-1]), judged]).detach()

    def _autocast(self, images: Tensor) -> torch.autocast:
        return torch.autocast(images.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")

    def _update(self, name: str, loss: Tensor) -> None:
        optimizer = self._optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.clip_norm is not None:
            clip_grad_norm_(self._networks[name].parameters(), self.recipe.clip_norm)
        optimizer.step()


class GraphStep(Step):
    """A :class:`Step` on CUDA that is replayed from a graph, see :class:`CapturedCall`."""

    def __init__(self, network: StyleExchange, discriminators: Discriminators, recipe: StyleRecipe) -> None:
        super().__init__(network, discriminators, recipe)
        self._captured = CapturedCall()

    def __call__(self, photos: Tensor, paintings: Tensor, lr: float) -> Tensor:
        self._rate.fill_(lr)
        return self._captured(self._train, photos, paintings).clone()


def _adam(network: nn.Module, rate: Tensor, recipe: StyleRecipe) -> Adam:
    betas = (recipe.beta1, recipe.beta2)
    return Adam(network.parameters(), rate, betas, weight_decay=recipe.weight_decay, fused=True, capturable=True)
