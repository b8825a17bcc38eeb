"""How large images are before a square of the network's size is cut from them."""

MARGIN = 8 / 7
"""Short side of stored and of evaluated images, as a multiple of the network's: 256 pixels for 224."""


def with_margin(image_size: int) -> int:
    """Pixels of the short side that leave room for crops of ``image_size``."""
    return round(image_size * MARGIN)


def padding(side: int) -> int:
    """Black pixels around an image without such room: 4 for 32."""
    return side // 8
