"""Files that are written whole or not at all."""

from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a temporary file beside it, then rename that; OSError if it fails, and the earlier content stays."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
