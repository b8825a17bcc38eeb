"""How the robust path is launched, without a GPU."""

from importlib.util import find_spec

import pytest
import torch

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.parametrize(("n", "fitting", "depth"), [(100, 64, 64), (1300, 64, 64), (1300, 32, 32), (2000, 32, 32)])
def test_less_is_loaded_at_a_time_where_the_code_has_no_room(n, fitting, depth, monkeypatch):
    """Of compute capability 10, the code for large tiles takes more shared memory than of 9, and there is no more."""
    from matroot.backends.triton.robust import launch

    launched = []
    monkeypatch.setattr(
        launch, "resident_programs", lambda kernel, arguments, options, *_: 5 if options["DEPTH"] <= fitting else 0
    )
    monkeypatch.setattr(launch, "launch_cached", lambda *arguments: launched.append(arguments))
    A = torch.empty(1, n, n, device="meta")
    launch.solve((A, A, A, A), A, torch.empty(1, 32, dtype=torch.int32, device="meta"), 0.0, True, True, ())
    ((_, _, arguments, options, _),) = launched
    assert options["DEPTH"] == depth
    assert arguments[-1] == -(-n // depth) * depth  # the columns of factors
