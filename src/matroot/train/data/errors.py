"""What is wrong with data."""

from ..._terminal import CommandError


class DataError(CommandError):
    """A data set that is missing, incomplete or corrupt: which file, and what was expected there."""
