"""What generators and discriminators of style exchange minimise."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...models.style_discriminator import StyleDiscriminator
from ...models.style_exchange import StyleExchange, style_code
from .recipe import StyleRecipe


class Discriminators(nn.Module):
    """One for each domain."""

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.photo, self.painting = StyleDiscriminator(channels), StyleDiscriminator(channels)


@dataclass(frozen=True)
class Exchanged:
    """All that a pass through both generators makes of photos and paintings, each (B, 3, H, W) in [-1, 1]."""

    photos_again: Tensor
    """From their own codes."""
    paintings_again: Tensor
    as_paintings: Tensor
    """The photos, in the style of the paintings."""
    as_photos: Tensor
    photos_back: Tensor
    """The photos, after they were paintings."""
    paintings_back: Tensor
    style_difference: Tensor
    """Scalar: between the styles and those of the pictures they were given to."""
    content_difference: Tensor


def exchange(network: StyleExchange, photos: Tensor, paintings: Tensor) -> Exchanged:
    """Reconstruct, exchange, and exchange back."""
    photo, painting = network.photo, network.painting
    photo_content, painting_content = photo.content(photos), painting.content(paintings)
    photo_style, painting_style = photo.style(photos), painting.style(paintings)
    photo_color, painting_color = photo.coloring(photo_style), painting.coloring(painting_style)
    # Every layer sees images one by one, so that two batches for one decoder are one.
    contents = torch.cat([photo_content, painting_content])
    photos_again, as_photos = photo.decode(contents, photo_color.repeat(2)).chunk(2)
    as_paintings, paintings_again = painting.decode(contents, painting_color.repeat(2)).chunk(2)
    content_of_painted, content_of_photographed = painting.content(as_paintings), photo.content(as_photos)
    return Exchanged(
        photos_again=photos_again,
        paintings_again=paintings_again,
        as_paintings=as_paintings,
        as_photos=as_photos,
        photos_back=photo.decode(content_of_painted, photo_color),
        paintings_back=painting.decode(content_of_photographed, painting_color),
        style_difference=style_difference(photo.style(as_photos), photo_style)
        + style_difference(painting.style(as_paintings), painting_style),
        content_difference=difference(content_of_painted, photo_content)
        + difference(content_of_photographed, painting_content),
    )


def generator_losses(
    recipe: StyleRecipe, made: Exchanged, discriminators: Discriminators, photos: Tensor, paintings: Tensor
) -> dict[str, Tensor]:
    """Scalars, weighted; what is minimised is their sum."""
    convincing = target_distance(discriminators.photo(made.as_photos), 1)
    convincing = convincing + target_distance(discriminators.painting(made.as_paintings), 1)
    again = difference(made.photos_again, photos) + difference(made.paintings_again, paintings)
    back = difference(made.photos_back, photos) + difference(made.paintings_back, paintings)
    return {
        "adversarial": convincing,
        "reconstruction": recipe.reconstruction_weight * again,
        "cycle": recipe.cycle_weight * back,
        "style": recipe.style_weight * made.style_difference,
        "content": recipe.content_weight * made.content_difference,
    }


def discriminator_loss(made: Exchanged, discriminators: Discriminators, photos: Tensor, paintings: Tensor) -> Tensor:
    """Scalar: squared distances of the scores of pictures from 1 and of the generators' from 0."""
    loss = torch.zeros((), device=photos.device)
    for judge, real, fake in (
        (discriminators.photo, photos, made.as_photos),
        (discriminators.painting, paintings, made.as_paintings),
    ):
        loss = loss + target_distance(judge(real), 1) + target_distance(judge(fake.detach()), 0)
    return loss


def target_distance(scores: Sequence[Tensor], target: float) -> Tensor:
    """Least squares: the mean of (score - target)^2 over positions, summed over scales."""
    return torch.stack([(score.float() - target).square().mean() for score in scores]).sum()


def difference(x: Tensor, y: Tensor) -> Tensor:
    """Mean of |x - y|."""
    return functional.l1_loss(x.float(), y.float())


def style_difference(x: Tensor, y: Tensor) -> Tensor:
    """Difference of means plus difference of covariances of two style features (B, C, ., .).

    Positions of two pictures do not correspond: only what transforms take from a style can be compared. For a feature
    averaged to one position, as published, it is the difference of the features.
    """
    a, b = style_code(x), style_code(y)
    return difference(a.mean, b.mean) + difference(a.covariance, b.covariance)
