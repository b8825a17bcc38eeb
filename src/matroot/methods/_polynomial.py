"""Matrix polynomials in few products."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..backends import torch_ops


def evaluate(matrix: Tensor, polynomials: Sequence[Sequence[float]]) -> list[Tensor]:
    """Evaluate polynomials of one common degree K >= 1 at ``matrix``, sharing its powers.

    Paterson-Stockmeyer: with blocks of s coefficients, s - 1 products make the powers and
    each of the m polynomials costs ceil(K/s) - 1 more. For K = 11, m = 1 that is 5 products
    instead of Horner's 10; for K = 5, m = 2 it is 4.
    """
    degree = len(polynomials[0]) - 1
    block = min(
        range(1, degree + 1),
        key=lambda s: s - 1 + len(polynomials) * (math.ceil(degree / s) - 1),
    )
    eye = torch_ops.identity(matrix)
    powers = [eye, matrix]
    while len(powers) <= block:
        powers.append(torch_ops.product(powers[-1], matrix))

    def combine(coefficients: Sequence[float]) -> Tensor:
        total = coefficients[0] * eye
        for coefficient, power in zip(coefficients[1:], powers[1:], strict=False):
            total = torch.add(total, power, alpha=coefficient)
        return total

    results = []
    for polynomial in polynomials:
        blocks = math.ceil(degree / block)
        # The top block may use X^s as well: its s + 1 coefficients cost no extra product.
        total = combine(polynomial[(blocks - 1) * block :])
        for start in range((blocks - 2) * block, -1, -block):
            total = torch_ops.product(total, powers[block]) + combine(polynomial[start : start + block])
        results.append(total)
    return results
