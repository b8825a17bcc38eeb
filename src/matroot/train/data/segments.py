"""Frames of a clip: one from each of its equal segments."""

import torch


def middle_frames(available: int, wanted: int, part: int = 0, parts: int = 1) -> list[int]:
    """The middle of every segment, or of one of the equal parts of it; frames repeat where there are too few."""
    middles = (2 * (segment * parts + part) + 1 for segment in range(wanted))
    return [middle * available // (2 * wanted * parts) for middle in middles]


def random_frames(available: int, wanted: int, generator: torch.Generator) -> list[int]:
    """Anywhere in every segment, in order."""
    within = torch.rand(wanted, generator=generator, dtype=torch.float64)
    frames = ((torch.arange(wanted) + within) * (available / wanted)).long()
    # Rounding may reach the end of the last segment.
    return frames.clamp(max=available - 1).tolist()
