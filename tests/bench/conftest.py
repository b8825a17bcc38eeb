"""What the tests of the benchmarks share."""

import pytest
import torch


@pytest.fixture(scope="module")
def one_thread():
    """On matrices this small, threads that wait for each other take longer than the arithmetic."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
