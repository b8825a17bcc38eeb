"""Single images of every kind."""

import numpy as np
import pytest
from PIL import Image

from matroot.train.data import DataError
from matroot.train.data.readers.images import decode_image

from ..look_alikes import encoded, picture


@pytest.mark.parametrize(("kind", "mode"), [("PNG", "1"), ("PNG", "L"), ("PNG", "LA"), ("PNG", "P"), ("TIFF", "CMYK")])
def test_other_modes_become_colours(kind, mode):
    image = picture(0).convert(mode)
    read = decode_image(encoded(image, kind), "x")
    assert read.mode == "RGB"
    assert (np.asarray(read) == np.asarray(image.convert("RGB"))).all()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_grey_of_16_bits_keeps_its_levels(kind):
    grey = np.asarray(picture(0).convert("L"))
    image = Image.fromarray(grey.astype(np.uint16) * 257)
    read = np.asarray(decode_image(encoded(image, kind), "x"))
    assert (read == grey[:, :, None]).all()


def test_whatever_a_decoder_raises_names_the_image(monkeypatch):
    """Decoders of AVIF raise RuntimeError for a damaged file."""

    def fail(image):
        raise RuntimeError("Failed to decode image")

    data = encoded(picture(0), "PNG")
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fail)
    with pytest.raises(DataError, match=r"bird.png: cannot be read as an image: Failed to decode image"):
        decode_image(data, "bird.png")
