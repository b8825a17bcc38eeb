"""Text files of annotations."""

from pathlib import Path

from ..errors import DataError


def read_table(path: Path, columns: int, expected: str) -> list[list[str]]:
    """Rows of a file, cut at spaces into ``columns`` of which the last may hold spaces; DataError names a bad line."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = line.split(maxsplit=columns - 1)
        if len(row) != columns:
            raise DataError(f"{path}, line {number}: {line.strip()!r}, expected {expected}")
        rows.append([cell.strip() for cell in row])
    if not rows:
        raise DataError(f"{path}: is empty, expected {expected} in every line")
    return rows


def require_files(examples: list[tuple[Path, int]], where: Path) -> None:
    """DataError with the first missing file and their number."""
    missing = [path for path, _ in examples if not path.exists()]
    if missing:
        raise DataError(f"{where}: {len(missing)} of {len(examples)} files are missing, first {missing[0]}")
