"""torch.export and ONNX: one graph that calls every method, run on other batch sizes and scales."""

import logging

import pytest
import torch

from matroot import Eigen, Minimax, NewtonSchulz, Pade, PowerIteration, Taylor

from ..matrices import FUNCTIONS, error, wishart
from .losses import A, close


class Roots(torch.nn.Module):
    """A root by each of (method, function name)."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def forward(self, X):
        return tuple(FUNCTIONS[name](X, method) for method, name in self.calls)


BATCH = {0: torch.export.Dim("batch", min=1, max=64)}
# Few steps, for small graphs: an exported call is compared with the same call, not with the truth.
PRODUCTS = [
    (Taylor(degree=3), "roots"),
    (NewtonSchulz(iterations=2), "roots"),
    (NewtonSchulz(iterations=2, form="single"), "invsqrtm"),
    (Minimax(), "sqrtm"),
    (PowerIteration(iterations=2), "sqrtm"),
]
FACTORS = [("auto", "sqrtm"), (Eigen(), "roots"), (Pade(degree=3), "invsqrtm")]
"""Methods that decompose or solve, which ONNX cannot."""


@pytest.mark.parametrize(("strict", "calls"), [(False, PRODUCTS + FACTORS), (True, [PRODUCTS[0], FACTORS[1]])])
def test_export(strict, calls):
    """Strict export differs in how Python is traced, not in what it sees of a method."""
    roots = Roots(calls)
    program = torch.export.export(roots, (A,), dynamic_shapes=(BATCH,), strict=strict).module()
    for batch in (1, 3, 7):
        X = wishart(batch, 4, seed=batch)
        close(program(X), roots(X))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_onnx(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    roots = Roots(PRODUCTS)
    program = torch.onnx.export(roots.eval(), (A.float(),), dynamo=True, verbose=False, dynamic_shapes=(BATCH,))
    program.save(str(tmp_path / "roots.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "roots.onnx"))
    for X in (wishart(1, 4), 1e20 * wishart(2, 4, seed=1), 1e-20 * wishart(5, 4, seed=2)):
        found = session.run(None, {session.get_inputs()[0].name: X.float().numpy()})
        for call, value, expected in zip(roots.calls, found, roots(X.float()), strict=True):
            assert error(torch.from_numpy(value), expected.double()) < 1e-5, call
