"""What a training run is: all that changes its result, and nothing else.

The command line is made from this class: field by field, with these descriptions.
"""

from dataclasses import dataclass
from typing import Literal

Optimizer = Literal["sgd", "adamw"]
Augment = Literal["none", "crop-flip", "resized-crop-flip", "finegrained", "corner-crop-flip", "shift"]
Schedule = Literal["steps", "cosine", "one-cycle"]
Precision = Literal["float32", "bfloat16", "float16"]

RUN_FORMAT = "matroot-run 1"
"""Of the ``run.json`` of a run."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training run. Two runs of equal recipes on the same kind of machine give the same weights."""

    model: str
    """Network, one of matroot.models."""
    dataset: str
    """Data set, one of matroot.train.data."""
    preset: str = "default"
    """How roots are computed: default, a preset of the paper, or baseline, the network without the root."""
    seed: int = 0
    """Of initial weights, order of examples, augmentation and dropout."""

    epochs: int
    """Passes over the training data."""
    batch_size: int
    """Images or clips of one step, over all processes."""
    image_size: int
    """Pixels of the side of the square images the network is given."""
    frames: int = 8
    """Frames of a clip; for videos alone."""

    optimizer: Optimizer = "sgd"
    """Which one takes the steps."""
    lr: float
    """Learning rate at its largest."""
    momentum: float = 0.9
    """Of sgd."""
    weight_decay: float
    """Of all parameters with sgd; of weight matrices and convolutions with adamw."""
    classifier_lr_factor: float = 1.0
    """The classifier learns at this multiple of the rate."""
    schedule: Schedule
    """How the rate changes: one-cycle rises and falls to near 0 within the epochs, however many they are."""
    milestones: tuple[int, ...] = ()
    """Epochs after which steps multiplies the rate by 0.1."""
    warmup_epochs: int = 0
    """Epochs in which the rate rises linearly from near 0; part of all epochs. one-cycle has its own rise."""
    cooldown_epochs: int = 0
    """Epochs at the end in which cosine stays at its final rate; part of all epochs."""
    final_lr: float = 0.0
    """Where cosine ends."""
    clip_norm: float | None = None
    """Largest norm of the gradient of all parameters together."""

    augment: Augment = "crop-flip"
    """How training images vary; shift is crop without flip, for characters."""
    label_smoothing: float = 0.0
    """Share of the target that is spread over all classes."""
    mixup: float = 0.0
    """Parameter of the Beta distribution two images are blended by; 0 blends none."""
    cutmix: float = 0.0
    """The same for rectangles pasted from another image."""
    rand_augment: str | None = None
    """RandAugment in timm's description, such as rand-m9-mstd0.5-inc1."""
    erasing: float = 0.0
    """Probability that a rectangle of an image is erased."""

    ema: float | None = None
    """Decay of the average of weights that is evaluated; None evaluates the weights themselves."""
    recalibrate: int = 0
    """Batches from which normalisation statistics are measured anew before an evaluation; 0: running averages."""
    freeze_norms: bool = False
    """Every batch normalisation but the first is frozen, statistics, scale and shift, as published for videos."""
    first_preset: str | None = None
    """Preset of the first epochs; the published SVD runs of transformers start with ns."""
    first_preset_epochs: int = 0
    """Epochs of the first preset."""
    initial_weights: str | None = None
    """A safetensors file to start from; a classifier of another number of classes is left out."""

    precision: Precision = "float32"
    """Of autocast; roots and their statistics are computed in float32 at least."""
    channels_last: bool = False
    """Keep images channels-last in memory: faster convolutions on a GPU."""
    compile: bool = False
    """torch.compile the network."""
    deterministic: bool = True
    """Convolutions on a GPU give the same bits each time; otherwise cuDNN takes the fastest that it finds."""
    drop_path: float = 0.0
    """Stochastic depth of transformers."""
    whitening_eps: float | None = None
    """Added to the eigenvalues in decorrelated layers; None: as published."""
    published_init: bool = False
    """Scales of decorrelated layers from U(0, 1), as published, in the place of 1."""
