import pytest

from .tiny import install


@pytest.fixture
def tiny(monkeypatch):
    """``train()`` trains the tiny network on the tiny data."""
    install(monkeypatch)
