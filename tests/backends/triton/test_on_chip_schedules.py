"""The coefficients of roots on chip, which are data with a script."""

import importlib.util
from pathlib import Path

import torch

from matroot.backends.triton.on_chip import schedules

EPS = torch.finfo(torch.float32).eps


def test_coefficients_are_what_the_script_prints():
    script_file = Path(__file__).parents[3] / "tools/minimax_schedules.py"
    spec = importlib.util.spec_from_file_location("minimax_schedules", script_file)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, (_, q) in script.moderate_steps().items():
        assert tuple(float(c) for c in q) == getattr(schedules, name)


def test_steps_keep_their_intervals():
    """What a step leaves is what the next one is for."""

    def image(q, low, high):
        s = torch.linspace(low, high, 10_000, dtype=torch.float64)
        found = s * sum(c * s ** (2 * k) for k, c in enumerate(q))
        return (1 - found).abs().max().item()

    assert image(schedules.FIRST, 0.1015, 1.0) < 0.45 + 1e-3
    assert image(schedules.WIDE, 0.083, 1.45) < 0.45 + 1e-3
    assert image(schedules.NARROW, 0.55, 1.45) < 0.01
    assert image(schedules.TAYLOR, 0.99, 1.01) < 0.25 * EPS
