"""The demo: what it measures, and what it prints."""

import math
import re
from io import StringIO

import pytest
import torch

import matroot

pytest.importorskip("rich")

from rich.console import Console

from matroot.bench import baselines, demo, problems

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def rows() -> dict[str, demo.Row]:
    return {row.name: row for row in demo.measure(batch=4, n=8, rounds=1, device=torch.device("cpu"))}


def printed(width: int) -> str:
    file = StringIO()
    assert demo.main(Console(file=file, width=width, highlight=False), batch=4, n=8, rounds=1) == 0
    return file.getvalue()


@pytest.mark.parametrize("inverse", [False, True])
def test_reference_gradient_is_the_derivative(inverse: bool) -> None:
    B = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    eye = torch.eye(4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda B: baselines.EighRoot.apply(inverse, B @ B.mT + eye), B)


def test_every_solver_has_a_row(rows: dict[str, demo.Row]) -> None:
    assert tuple(rows) == ("torch", "default", "minimax", *matroot.presets())


def test_reference_and_default_are_exact_to_rounding(rows: dict[str, demo.Row]) -> None:
    # float32 has eps = 1.2e-7, and the condition of these covariances stays below 1e2.
    for row in (rows["torch"], rows["default"], rows["minimax"]):
        assert row.inverse_error is not None
        assert row.inverse_gradient_error is not None
        assert max(row.root_error, row.inverse_error, row.root_gradient_error, row.inverse_gradient_error) < 1e-5


def test_approximation_is_seen_as_one(rows: dict[str, demo.Row]) -> None:
    # A degree 5 approximant is far from float32 accuracy and nowhere near useless.
    assert 1e-4 < rows["mpa-lya"].root_error < 0.5


def test_power_iteration_has_no_inverse(rows: dict[str, demo.Row]) -> None:
    for name, row in rows.items():
        absent = (row.inverse_error is None, row.inverse_gradient_error is None)
        assert absent == ((True, True) if name == "pi" else (False, False))


def test_times_are_positive_and_relative_to_the_reference(rows: dict[str, demo.Row]) -> None:
    assert rows["torch"].ratio == 1
    for row in rows.values():
        assert row.milliseconds > 0
        assert row.ratio == pytest.approx(row.milliseconds / rows["torch"].milliseconds)


@pytest.mark.parametrize("width", [80, 120])
def test_main_prints_a_whole_table(width: int) -> None:
    lines = printed(width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line or "\x1b" in line for line in lines)
    for name in ("torch", "default", "minimax", *matroot.presets()):
        method_to_ratio = r"\s+\S+\s+\S+(\s+(\d\.\de-?\d+|–)){4}(\s+[\d.]+){2}"  # noqa: RUF001
        assert sum(re.fullmatch(re.escape(name) + method_to_ratio, line.rstrip()) is not None for line in lines) == 1


def test_nan_reaches_the_error() -> None:
    A, G = problems.covariances(2, 3).float(), problems.symmetric(2, 3).float()
    true = demo.reference(A, G, inverse=False)
    value, gradient = demo.errors(lambda A: A * torch.tensor([1.0, math.nan])[:, None, None], A, G, true)
    assert math.isnan(value)
    assert math.isnan(gradient)


def test_interrupt_is_one_line_and_status_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "measure", interrupted)
    assert demo.main(Console(file=StringIO())) == 130
    assert len(capsys.readouterr().err.splitlines()) == 1
