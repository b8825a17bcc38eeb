"""Random batches in search of the worst result: ``python -m matroot.bench.random_search``.

Every batch follows from its number: size, spectrum, scale, dtype, and matrices without a root among the others. Results
must be finite, NaN or zero where they have to be, symmetric, and not depend on the batch. The largest errors are kept,
in units of what rounding alone costs, with the numbers that make them again. A run that was interrupted is resumed.
"""

from ..._extras import require

require("bench", "rich")
