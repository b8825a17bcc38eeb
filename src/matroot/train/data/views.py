"""How often an example is looked at in an evaluation."""

from dataclasses import dataclass

from .errors import DataError

CROPS = (1, 3)


@dataclass(frozen=True)
class Views:
    """An evaluation averages the probabilities of all views of an example. DataError for numbers out of range."""

    clips: int = 1
    """Of a video: each has its own frame of every segment."""
    crops: int = 1
    """Of a frame: the middle square, or three along the longer side."""

    def __post_init__(self) -> None:
        if self.clips < 1:
            raise DataError(f"an evaluation needs at least one clip of a video, got {self.clips}")
        if self.crops not in CROPS:
            raise DataError(f"crops of a frame are {' or '.join(map(str, CROPS))}, got {self.crops}")

    @property
    def count(self) -> int:
        return self.clips * self.crops


ONE_VIEW = Views()
