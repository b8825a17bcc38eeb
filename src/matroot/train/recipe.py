"""What a training run is: all that changes its result, and nothing else."""

from dataclasses import dataclass
from typing import Literal

Augment = Literal["none", "crop-flip", "resized-crop-flip", "finegrained", "corner-crop-flip", "shift"]
Schedule = Literal["steps", "cosine", "one-cycle"]
Precision = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training run. Two runs of equal recipes on the same kind of machine give the same weights."""

    model: str
    """A network of ``matroot.models``."""
    dataset: str
    """A data set of ``matroot.train.data``."""
    preset: str = "default"
    """How roots are computed: ``default``, a preset of the paper, or ``baseline``: the network without the root."""
    seed: int = 0

    epochs: int
    batch_size: int
    """Images or clips of one step, over all processes."""
    image_size: int
    """Pixels of the square images the network is given."""
    frames: int = 8
    """Frames of a clip; of use for videos alone."""

    optimizer: Literal["sgd", "adamw"] = "sgd"
    lr: float
    momentum: float = 0.9
    weight_decay: float
    classifier_lr_factor: float = 1.0
    """The classifier learns at this multiple of ``lr``."""
    schedule: Schedule
    milestones: tuple[int, ...] = ()
    """Epochs after which ``steps`` multiplies the rate by 0.1."""
    warmup_epochs: int = 0
    """Epochs in which the rate rises linearly from near 0; part of ``epochs``. ``one-cycle`` has its own rise."""
    final_lr: float = 0.0
    """Where ``cosine`` ends."""
    clip_norm: float | None = None
    """Largest norm of the gradient of all parameters together."""

    augment: Augment = "crop-flip"
    label_smoothing: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    rand_augment: str | None = None
    """timm's description, such as ``rand-m9-mstd0.5-inc1``."""
    erasing: float = 0.0
    """Probability that a rectangle of an image is erased."""

    ema: float | None = None
    """Decay of the average of weights that is evaluated; None evaluates the weights themselves."""
    freeze_norms: bool = False
    """Every batch normalisation but the first uses its running statistics, as published for videos."""
    first_preset: str | None = None
    """Preset of the first ``first_preset_epochs`` epochs; the published SVD runs start with ``ns``."""
    first_preset_epochs: int = 0
    initial_weights: str | None = None
    """A safetensors file to start from; a classifier of another number of classes is left out."""

    precision: Precision = "float32"
    """Of autocast; roots and their statistics are computed in float32 at least."""
    channels_last: bool = False
    compile: bool = False
    """``torch.compile`` of the network."""
    drop_path: float = 0.0
    """Stochastic depth of transformers."""
    published_init: bool = False
    """Scales of decorrelated layers from U(0, 1), as published, in the place of 1."""
