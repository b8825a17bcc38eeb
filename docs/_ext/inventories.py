"""References to PyTorch and Python resolve without a network: their pages are listed in ``references.txt``."""

import zlib
from pathlib import Path

_HEADER = "# Sphinx inventory version 2\n# Project: {0}\n# Version: \n# The rest is compressed with zlib.\n"
_SITES = {"torch": "https://docs.pytorch.org/docs/stable/", "python": "https://docs.python.org/3/"}


def intersphinx_mapping(listing: Path, folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for each site of the listing into a folder, and name them as Sphinx wants."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [line.split() for line in listing.read_text().splitlines() if line and not line.startswith("#")]
    mapping = {}
    for site, address in _SITES.items():
        body = "".join(f"{name} {role} 1 {page} -\n" for own, name, role, page in entries if own == site)
        inventory = folder / f"{site}.inv"
        inventory.write_bytes(_HEADER.format(site).encode() + zlib.compress(body.encode()))
        mapping[site] = (address, str(inventory))
    return mapping
