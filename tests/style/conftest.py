"""A network and pictures that the tests share."""

import pytest
import torch

from matroot.style import StyleNetwork

from .examples import picture, small_network


@pytest.fixture(scope="session")
def network() -> StyleNetwork:
    return small_network()


@pytest.fixture
def content() -> torch.Tensor:
    """(2, 3, 45, 70); no size is a multiple of a stride."""
    return picture(45, 70, seed=1, batch=2)


@pytest.fixture
def style() -> torch.Tensor:
    """(1, 3, 64, 53)."""
    return picture(64, 53, seed=2) ** 2


@pytest.fixture
def levels():
    """(3, 5, 7), eight bits, no two rows or columns alike."""
    return torch.randint(0, 256, (3, 5, 7), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
