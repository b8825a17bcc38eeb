"""Every data set on disk: the forms it is kept in, and where it comes from."""

from dataclasses import dataclass

from ...models import _torchvision as _torchvision

# isort: split
from torchvision.datasets import CIFAR10, CIFAR100

from .places import Layout
from .readers.actions import Hmdb51, Ucf101
from .readers.aircraft import Aircraft
from .readers.birds import Birds
from .readers.cars import RESIZE, Cars
from .readers.cifar import CifarMosaics, PublishedCifar
from .readers.fight import FILE as FIGHT_FILE
from .readers.fight import read_fight
from .readers.folders import ClipFolders, ImageFolders
from .readers.packed import PackedFolders
from .split import DataSet

CIFAR10_FILES = ("cifar10_webp_lossless_A.zip", "cifar10_webp_lossless_B.zip")
CIFAR100_FILES = ("cifar100_webp_near5.zip",)
TINY_FILE = "tinyimagenet20.zip"
CUB40_FILE = "cub40_s160.zip"

TINY = PackedFolders(
    TINY_FILE,
    test="val",
    side=64,
    classes=20,
    stand_in="20 of the 200 classes of Tiny-ImageNet (64x64 pixels) stand in for ImageNet; "
    "their accuracy is not comparable with the paper's.",
)
CUB40 = PackedFolders(
    CUB40_FILE,
    test="test",
    side=160,
    classes=40,
    stand_in="40 of the 200 classes of CUB-200-2011 (160 pixels) stand in for all of them; "
    "their accuracy is not comparable with the paper's.",
)

BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
UCF101_SPLITS = ("ucfTrainTestlist", "splits")
HMDB51_SPLITS = ("testTrainMulti_7030_splits", "test_train_splits", "splits")


@dataclass(frozen=True)
class Entry:
    """How a data set is found."""

    layouts: tuple[Layout[DataSet], ...]
    origin: str
    """Where people get it, as a sentence."""


def _train_and(*tests: str, videos: bool | None = None) -> tuple[Layout[DataSet], ...]:
    """A folder of one's own, with its test split by one of these names."""
    readers = ((test, ImageFolders(test) if videos is None else ClipFolders(test, videos)) for test in tests)
    return tuple(Layout(("train", test), reader) for test, reader in readers)


ENTRIES = {
    "cifar10": Entry(
        (
            Layout((*BATCHES, "test_batch", "batches.meta"), PublishedCifar(CIFAR10, 10), ("cifar-10-batches-py",)),
            Layout(CIFAR10_FILES, CifarMosaics(CIFAR10_FILES, 10)),
        ),
        "Unpack cifar-10-python.tar.gz of https://www.cs.toronto.edu/~kriz/cifar.html there.",
    ),
    "cifar100": Entry(
        (
            Layout(("train", "test", "meta"), PublishedCifar(CIFAR100, 100), ("cifar-100-python",)),
            Layout(CIFAR100_FILES, CifarMosaics(CIFAR100_FILES, 100)),
        ),
        "Unpack cifar-100-python.tar.gz of https://www.cs.toronto.edu/~kriz/cifar.html there.",
    ),
    "tinyimagenet20": Entry((Layout((TINY_FILE,), TINY),), "It holds train/CLASS/IMAGE and val/CLASS/IMAGE."),
    "cub40": Entry((Layout((CUB40_FILE,), CUB40),), "It holds train/CLASS/IMAGE and test/CLASS/IMAGE."),
    "fight": Entry((Layout((FIGHT_FILE,), read_fight),), "It holds clips/NAME.jpg and labels.csv with file and label."),
    "imagenet": Entry(
        (Layout(("train", "val"), ImageFolders("val", classes=1000), ("imagenet",)),),
        "Get ILSVRC2012 from https://image-net.org and sort its images into a folder for every class.",
    ),
    "folder": Entry(_train_and("val", "test"), "Each of the two has a folder of images for every class."),
    "cub200": Entry(
        (
            Layout(
                ("images", "images.txt", "image_class_labels.txt", "train_test_split.txt"),
                Birds(classes=200),
                ("CUB_200_2011",),
            ),
        ),
        "Unpack CUB_200_2011.tgz of https://www.vision.caltech.edu/datasets/cub_200_2011 there.",
    ),
    "aircraft": Entry(
        (
            Layout(
                (
                    "data/images",
                    "data/variants.txt",
                    "data/images_variant_trainval.txt",
                    "data/images_variant_test.txt",
                ),
                Aircraft(classes=100),
                ("fgvc-aircraft-2013b",),
            ),
        ),
        "Unpack fgvc-aircraft-2013b.tar.gz of https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft there.",
    ),
    "cars": Entry(
        (
            Layout(
                ("cars_train", "cars_test", "devkit/cars_train_annos.mat", "cars_test_annos_withlabels.mat"),
                Cars(classes=196),
                ("stanford_cars",),
            ),
            Layout(
                ("train", "test"),
                ImageFolders("test", classes=196, fine_grained=RESIZE),
                ("stanford_cars", "car_data"),
            ),
        ),
        "Its own page is gone; mirrors have it in one of these forms.",
    ),
    "hmdb51": Entry(
        tuple(Layout((splits,), Hmdb51(splits, classes=51), ("hmdb51",)) for splits in HMDB51_SPLITS),
        "Get videos and split files from https://serre-lab.clps.brown.edu/resource/hmdb-a-large-human-motion-database.",
    ),
    "ucf101": Entry(
        tuple(
            Layout(
                tuple(f"{splits}/{file}" for file in ("classInd.txt", "trainlist01.txt", "testlist01.txt")),
                Ucf101(splits, classes=101),
                ("ucf101",),
            )
            for splits in UCF101_SPLITS
        ),
        "Get videos and split files from https://www.crcv.ucf.edu/data/UCF101.php.",
    ),
    "frames": Entry(
        _train_and("val", "test", videos=False),
        "Each of the two has a folder for every class, and in it a folder of frames for every clip.",
    ),
    "videos": Entry(
        _train_and("val", "test", videos=True), "Each of the two has a folder of video files for every class."
    ),
}
