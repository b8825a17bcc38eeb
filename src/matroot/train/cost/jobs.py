"""The recipes that need a cluster, and the steps to measure for them."""

from dataclasses import dataclass

from ..recipe import Recipe
from ..recipes import RECIPES

PRESETS = ("baseline", "default", "mpa-lya")
"""The network without the root, with matroot's own, and with the paper's."""


@dataclass(frozen=True)
class Job:
    """A recipe on its published data."""

    recipe: str
    variant: str
    title: str
    """The data."""
    examples: int
    """Training images or videos."""
    num_classes: int
    batches: tuple[int, ...]
    """Examples that one GPU has in a step, as measured; rising."""

    @property
    def settings(self) -> Recipe:
        return RECIPES[self.recipe][self.variant]

    @property
    def steps(self) -> int:
        """Of an epoch; what does not fill the last batch is left out."""
        return self.examples // self.settings.batch_size

    def gpus(self, available: int) -> int:
        """How many of the GPUs are of use: they divide a batch, and each has the smallest measured one at least."""
        batch = self.settings.batch_size
        most = max(1, min(available, batch // self.batches[0]))
        return max(number for number in range(1, most + 1) if batch % number == 0)

    def measured_batch(self, gpus: int) -> int:
        """The largest measured batch that is not more than a GPU's part of a step."""
        part = self.settings.batch_size // gpus
        return max(batch for batch in self.batches if batch <= part)


JOBS = (
    Job("gcp", "published", "ImageNet", 1_281_167, 1000, (32, 64)),
    Job("sovit", "published", "ImageNet", 1_281_167, 1000, (64,)),
    Job("sovit", "published-14", "ImageNet", 1_281_167, 1000, (64,)),
    Job("video", "kinetics", "Kinetics-400", 240_000, 400, (8,)),
    Job("video", "published", "HMDB51", 3_570, 51, (8,)),
)
