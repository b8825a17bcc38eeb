"""Several views of an example in an evaluation."""

import numpy as np
import pytest
import torch
from PIL import Image

from matroot.train.data import DataError, open_data
from matroot.train.data.seeding import generator_for
from matroot.train.data.transforms import Evaluation
from matroot.train.data.views import Views

from .look_alikes import class_folders, clip_folder, recipe, write_zip
from .look_alikes import fight_members as packed

CPU = torch.device("cpu")
FRAMES = 4


def ramp(width, height):
    """A frame whose grey level is the column, or the row where it is taller than wide."""
    along = np.arange(max(width, height), dtype=np.uint8)
    grey = np.broadcast_to(along if width > height else along[:, None], (height, width))
    return Image.fromarray(np.repeat(grey[:, :, None], 3, 2))


@pytest.mark.parametrize(("width", "height"), [(40, 16), (16, 40)])
def test_three_crops_lie_along_the_longer_side(width, height):
    crops = Evaluation(14, None, crops=3)([ramp(width, height)] * 2, generator_for(0))
    assert crops.shape == (3 * 2, 3, 14, 14)
    first, middle, last = crops[0], crops[2], crops[4]
    assert torch.equal(crops[0], crops[1])  # all frames of a crop, then the next crop
    assert (first.min(), last.max()) == (0, 39)
    assert abs(float(middle.float().mean()) - 19.5) < 1
    torch.testing.assert_close(middle, Evaluation(14, None)([ramp(width, height)], generator_for(0))[0])


@pytest.fixture
def videos(tmp_path):
    """A training and two test clips of each of two classes, 24 frames each."""
    for split, clips in (("train", 1), ("val", 2)):
        for label in ("one", "two"):
            for clip in range(clips):
                clip_folder(tmp_path / split / label / f"clip{clip}", 24)
    return tmp_path


def views_of(root, clips, crops, **fields):
    given = recipe("frames", frames=FRAMES, model="tea50_tcp", **fields)
    return open_data(given, root, CPU, workers=0, views=Views(clips, crops)).test


def test_clips_of_a_video_have_frames_of_their_own(videos):
    one = torch.cat([images for images, _ in views_of(videos, 1, 1).epoch(0)])
    three = torch.cat([images for images, _ in views_of(videos, 3, 1).epoch(0)])
    assert three.shape == (len(one), 3, *one.shape[1:])
    torch.testing.assert_close(three[:, 1], one)  # the second of three parts of a segment has its middle
    assert not torch.equal(three[:, 0], three[:, 2])
    both = torch.cat([images for images, _ in views_of(videos, 3, 3).epoch(0)])
    torch.testing.assert_close(both[:, 3:6], three)  # of the middle crops


def test_data_say_whether_they_are_clips(videos, tmp_path):
    assert open_data(recipe("frames", frames=FRAMES), videos, CPU).clips
    assert not open_data(recipe("folder"), class_folders(tmp_path / "folder"), CPU).clips


def test_batches_are_smaller_by_the_number_of_views(videos):
    sizes = [len(labels) for _, labels in views_of(videos, 2, 1, batch_size=4).epoch(0)]
    assert max(sizes) <= 2


def test_what_has_no_views(tmp_path):
    write_zip(tmp_path / "video_fight_surv_8x112x112.zip", packed())
    with pytest.raises(DataError, match="held in memory"):
        open_data(recipe("fight", model="tea50_tcp"), tmp_path, CPU, views=Views(crops=3))
    with pytest.raises(DataError, match="one clip"):
        open_data(recipe("folder"), class_folders(tmp_path / "folder"), CPU, views=Views(clips=2))
    for wrong in ({"clips": 0}, {"crops": 2}):
        with pytest.raises(DataError):
            Views(**wrong)
