"""The lines of ``choose`` on the CPU against the committed measurements that they are drawn from."""

import json
from collections import defaultdict
from pathlib import Path

import torch

import matroot

from .installation import needs_compiled_code

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "solver-crossover-cpu.json"
CLEARLY = 1.05
"""A ratio of times above this, or below one over it, is no tie."""


@needs_compiled_code
def test_lines_lie_between_the_crossings_of_covariances_and_of_condition_1e4():
    """What decomposes is not clearly slower on both spectra than products, and the other way round."""
    gains = defaultdict(list)
    for case in json.loads(RESULTS.read_text(encoding="utf-8"))["results"]:
        times = case["milliseconds"]
        ratio = times["eigh"]["least"] / times["minimax+smith"]["least"]
        gains[case["dtype"], case["batch"], case["n"]].append(ratio)
    assert gains
    for (dtype, batch, n), ratios in gains.items():
        plan = matroot.choose(torch.ones((), dtype=getattr(torch, dtype)).expand(batch, n, n))
        if plan.method.name == "minimax":
            assert max(ratios) > 1 / CLEARLY, (dtype, batch, n)
        else:
            assert min(ratios) < CLEARLY, (dtype, batch, n)
