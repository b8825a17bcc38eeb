"""Data sets, where they are looked for, and batches of them."""

from .batches import Batches as Batches
from .batches import Data as Data
from .errors import DataError as DataError
from .open import list_datasets as list_datasets
from .open import open_data as open_data
