"""The recipes, by name and variant.

``published`` is what the paper's authors ran, ``short`` the same network with a modern schedule for one GPU. Variants
named after a small data set train on that one. The first variant of a recipe is the one nobody has to name.
"""

from dataclasses import replace

from .recipe import Recipe

_DBN = Recipe(
    model="resnet18_dbn",
    dataset="cifar10",
    epochs=350,
    batch_size=128,
    image_size=32,
    lr=0.1,
    weight_decay=5e-4,
    schedule="steps",
    milestones=(100, 200, 300),
    augment="crop-flip",
    published_init=True,
)
_DBN_SHORT = replace(
    _DBN,
    epochs=30,
    schedule="one-cycle",
    milestones=(),
    label_smoothing=0.1,
    published_init=False,
    precision="bfloat16",
    channels_last=True,
    recalibrate=20,
)
_DBN_DIGITS = replace(
    _DBN_SHORT,
    dataset="digits",
    epochs=6,
    batch_size=64,
    image_size=16,
    lr=0.05,
    augment="shift",
    recalibrate=10,
    # Without instructions for it, bfloat16 is slower than float32 on a processor.
    precision="float32",
    channels_last=False,
)

_GCP = Recipe(
    model="resnet50_gcp",
    dataset="imagenet",
    epochs=60,
    batch_size=256,
    image_size=224,
    lr=0.0794,
    weight_decay=1e-4,
    schedule="steps",
    milestones=(30, 45),
    clip_norm=5.0,
    augment="resized-crop-flip",
)
_GCP_SHORT = replace(
    _GCP,
    epochs=20,
    image_size=160,
    lr=0.1,
    weight_decay=5e-5,
    schedule="one-cycle",
    milestones=(),
    label_smoothing=0.1,
    precision="bfloat16",
    channels_last=True,
)
_GCP_CIFAR100 = replace(_DBN_SHORT, model="resnet18_gcp", dataset="cifar100", clip_norm=5.0)
# Thirty birds of each class: many epochs of few steps, from nothing.
_GCP_CUB40 = replace(
    _GCP_SHORT,
    model="resnet18_gcp",
    dataset="cub40",
    epochs=100,
    batch_size=32,
    image_size=128,
    lr=0.02,
    weight_decay=5e-4,
)

_FINEGRAINED = Recipe(
    model="resnet50_gcp",
    dataset="cub200",
    epochs=200,
    batch_size=10,
    image_size=448,
    lr=3e-3,
    weight_decay=1e-4,
    classifier_lr_factor=20.0,
    schedule="steps",
    milestones=(50, 100),
    augment="finegrained",
    initial_weights="runs/gcp-imagenet-resnet50_gcp-default-seed0/best.safetensors",
)
_FINEGRAINED_SHORT = replace(
    _FINEGRAINED,
    epochs=40,
    batch_size=32,
    lr=1e-2,
    classifier_lr_factor=10.0,
    schedule="one-cycle",
    milestones=(),
    label_smoothing=0.1,
    precision="bfloat16",
    channels_last=True,
)

_VIDEO = Recipe(
    model="tea50_tcp",
    dataset="hmdb51",
    epochs=15,
    batch_size=32,
    image_size=224,
    frames=8,
    lr=1e-3,
    weight_decay=5e-4,
    schedule="steps",
    milestones=(5, 10),
    clip_norm=20.0,
    augment="corner-crop-flip",
    freeze_norms=True,
    initial_weights="runs/video-videos-tea50_tcp-default-seed0/best.safetensors",
)
_VIDEO_SHORT = replace(
    _VIDEO,
    epochs=10,
    lr=2e-3,
    schedule="one-cycle",
    milestones=(),
    label_smoothing=0.1,
    precision="bfloat16",
)
_VIDEO_KINETICS = replace(
    _VIDEO,
    dataset="videos",
    epochs=50,
    batch_size=64,
    lr=1e-2,
    milestones=(30, 40, 45),
    freeze_norms=False,
    initial_weights=None,
    precision="bfloat16",
)
# Few clips and no weights to start from: Adam, whose steps do not wait for the gradient to grow.
_VIDEO_FIGHT = replace(
    _VIDEO_SHORT,
    dataset="fight",
    epochs=60,
    batch_size=16,
    image_size=80,
    optimizer="adamw",
    lr=1e-3,
    weight_decay=0.05,
    schedule="cosine",
    warmup_epochs=5,
    freeze_norms=False,
    initial_weights=None,
    channels_last=True,
)

_SOVIT = Recipe(
    model="so_vit_7",
    dataset="imagenet",
    epochs=310,
    batch_size=512,
    image_size=224,
    optimizer="adamw",
    lr=1e-3,
    weight_decay=0.03,
    schedule="cosine",
    warmup_epochs=5,
    cooldown_epochs=10,
    final_lr=1e-5,
    augment="resized-crop-flip",
    label_smoothing=0.1,
    mixup=0.8,
    cutmix=1.0,
    rand_augment="rand-m9-mstd0.5-inc1",
    erasing=0.25,
    ema=0.99996,
    precision="float16",
    drop_path=0.1,
)
_SOVIT_SHORT = replace(
    _SOVIT,
    epochs=100,
    image_size=160,
    cooldown_epochs=0,
    mixup=0.2,
    rand_augment=None,
    ema=0.9998,
    precision="bfloat16",
    channels_last=True,
    drop_path=0.05,
)
# Without RandAugment images are augmented in batches, on the device.
_SOVIT_CIFAR100 = replace(
    _SOVIT_SHORT,
    dataset="cifar100",
    batch_size=256,
    image_size=32,
    augment="crop-flip",
    mixup=0.8,
    ema=None,
)

RECIPES: dict[str, dict[str, Recipe]] = {
    "dbn": {"digits": _DBN_DIGITS, "short": _DBN_SHORT, "published": _DBN},
    "gcp": {"short": _GCP_SHORT, "cifar100": _GCP_CIFAR100, "cub40": _GCP_CUB40, "published": _GCP},
    "finegrained": {
        "short": _FINEGRAINED_SHORT,
        "cub40": replace(_GCP_CUB40, classifier_lr_factor=5.0),
        "published": _FINEGRAINED,
        "published-cars": replace(_FINEGRAINED, dataset="cars", classifier_lr_factor=10.0),
        "published-aircraft": replace(
            _FINEGRAINED,
            dataset="aircraft",
            epochs=50,
            batch_size=8,
            milestones=(21, 40),
            weight_decay=1e-3,
            classifier_lr_factor=5.0,
        ),
    },
    "video": {"short": _VIDEO_SHORT, "fight": _VIDEO_FIGHT, "published": _VIDEO, "kinetics": _VIDEO_KINETICS},
    "sovit": {
        "short": _SOVIT_SHORT,
        "cifar100": _SOVIT_CIFAR100,
        "tinyimagenet20": replace(
            _SOVIT_CIFAR100,
            dataset="tinyimagenet20",
            batch_size=64,
            image_size=64,
            lr=5e-4,
            augment="resized-crop-flip",
        ),
        "published": _SOVIT,
        "published-14": replace(_SOVIT, model="so_vit_14", weight_decay=0.05),
        "published-svd": replace(_SOVIT, preset="svd-pade", first_preset="ns", first_preset_epochs=50),
    },
}

TITLES: dict[str, str] = {
    "dbn": "Decorrelated batch normalisation in a ResNet",
    "gcp": "Global covariance pooling on a ResNet",
    "finegrained": "Covariance pooling for birds, cars and aircraft",
    "video": "Temporal-attentive covariance pooling of clips",
    "sovit": "Second-order vision transformer",
}
