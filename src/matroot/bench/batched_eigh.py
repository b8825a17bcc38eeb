"""Which batches on a GPU ``torch.linalg.eigh`` decomposes one matrix at a time."""

BATCHED_SINCE = (2, 12)
"""The version of torch from which all batches are decomposed as such."""
ONE_BY_ONE_ABOVE = 32
"""The largest size of matrices of which earlier versions decompose batches."""


def is_batched_in(torch: str) -> bool:
    """Whether a version of torch, ``2.11.0+cu130``, decomposes batches of any size."""
    return tuple(int(part) for part in torch.split(".")[:2] if part.isdecimal()) >= BATCHED_SINCE


def takes_one_by_one(torch: str, n: int) -> bool:
    """Whether it takes matrices of size n one by one."""
    return n > ONE_BY_ONE_ABOVE and not is_batched_in(torch)
