"""Frames of a clip: one from each of its equal segments."""

import torch


def middle_frames(available: int, wanted: int) -> list[int]:
    """The middle of every segment; frames repeat where there are fewer than wanted."""
    return [(2 * segment + 1) * available // (2 * wanted) for segment in range(wanted)]


def random_frames(available: int, wanted: int, generator: torch.Generator) -> list[int]:
    """Anywhere in every segment, in order."""
    within = torch.rand(wanted, generator=generator, dtype=torch.float64)
    frames = ((torch.arange(wanted) + within) * (available / wanted)).long()
    # Rounding may reach the end of the last segment.
    return frames.clamp(max=available - 1).tolist()
