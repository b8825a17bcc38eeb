"""Packages that parts of the library need beside torch, and which extra of the distribution brings them."""

from importlib.util import find_spec


def require(extra: str, *packages: str) -> None:
    """Raise ModuleNotFoundError, with the command that installs it, for the first package that is missing."""
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f'{package} is not installed: pip install "matroot[{extra}]"', name=package)
