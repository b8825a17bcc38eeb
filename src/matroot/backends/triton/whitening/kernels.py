"""Kernels that whiten features in half precision: few passes over them, everything else on chip.

Features are M positions of C channels, contiguous, in G groups of SIZE channels. Each program of a pass takes a chunk
of positions of one group; other kernels add up the sums of chunks in a fixed order. D is SIZE padded to a power of
two, BLOCK the positions in one step. Tensor cores multiply in the dtype of the features and add in float32;
FLOAT32_FACTORS, for the interpreter, does not round factors to that dtype. Groups and positions are 64-bit before they
are multiplied: offsets may need it. Import only where Triton is.
"""

import triton
import triton.language as tl

_COUNTS = ["positions", "chunk", "parts"]


@triton.jit
def _factor(x, like, FLOAT32_FACTORS: tl.constexpr):
    """``x`` as a factor of products in the dtype of ``like``."""
    return x.to(tl.float32) if FLOAT32_FACTORS else x.to(like.dtype.element_ty)


@triton.jit
def _max_abs_or_one(A):
    """What factors are divided by: float16 has a short range."""
    largest = tl.max(tl.max(tl.abs(A), 1), 0)
    return tl.where(largest > 0, largest, 1.0)


@triton.jit(do_not_specialize=_COUNTS)
def moments_kernel(
    P, Q, mean, first, second, positions, chunk,
    CHANNELS: tl.constexpr, SIZE: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, OWN_MEAN: tl.constexpr,
    FLOAT32_FACTORS: tl.constexpr,
):  # fmt: skip
    """Of each chunk: with OWN_MEAN the mean of Q and the products of Q less that with itself; otherwise the sum of P
    and the products of P with Q less ``mean``.

    first, second: (G, chunks, SIZE) and (G, chunks, SIZE, SIZE), float32.
    """
    part, group = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, D)
    inside = column < SIZE
    channel = group * SIZE + column
    begin = part * chunk
    end = tl.minimum(begin + chunk, positions)
    sums = tl.zeros((BLOCK, D), tl.float32)
    if OWN_MEAN:
        for start in range(begin, end, BLOCK):
            row = start + tl.arange(0, BLOCK)
            place = row.to(tl.int64)[:, None] * CHANNELS + channel[None, :]
            sums += tl.load(Q + place, (row < end)[:, None] & inside[None, :], 0.0).to(tl.float32)
        centre = tl.sum(sums, 0) / (end - begin)
    else:
        centre = tl.load(mean + channel, inside, 0.0)
    products = tl.zeros((D, D), tl.float32)
    for start in range(begin, end, BLOCK):
        row = start + tl.arange(0, BLOCK)
        taken = (row < end)[:, None] & inside[None, :]
        place = row.to(tl.int64)[:, None] * CHANNELS + channel[None, :]
        exact = tl.where(taken, tl.load(Q + place, taken, 0.0).to(tl.float32) - centre[None, :], 0.0)
        q = _factor(exact, Q, FLOAT32_FACTORS)
        if OWN_MEAN:
            p = q
        else:
            p = tl.load(P + place, taken, 0.0)
            sums += p.to(tl.float32)
            p = _factor(p, P, FLOAT32_FACTORS)
            # Many features less their mean are rounded alike, which adds up where P has a mean too.
            low = _factor(exact - q.to(tl.float32), Q, FLOAT32_FACTORS)
            products = tl.dot(tl.trans(p), low, products, input_precision="ieee")
        products = tl.dot(tl.trans(p), q, products, input_precision="ieee")
    slot = group * tl.num_programs(0) + part
    tl.store(first + slot * SIZE + column, centre if OWN_MEAN else tl.sum(sums, 0), inside)
    row = column[:, None]
    tl.store(second + (slot * SIZE + row) * SIZE + column[None, :], products, (row < SIZE) & inside[None, :])


@triton.jit(do_not_specialize=_COUNTS)
def statistics_kernel(
    means, scatters, mean, covariance, shifted, positions, chunk, parts, eps,
    SIZE: tl.constexpr, D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Mean, covariance and covariance + eps I from the means and scatters of chunks; one row a program.

    Scatters are about the chunks' own means, to which those of the means are added: nothing cancels.
    """
    row, group = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, D)[None, :]
    sums = tl.zeros((PARTS, D), tl.float32)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)[:, None]
        taken = (part < parts) & (column < SIZE)
        count = tl.minimum(positions - part * chunk, chunk).to(tl.float32)
        sums += count * tl.load(means + (group * parts + part) * SIZE + column, taken, 0.0)
    centre = tl.sum(sums, 0)[None, :] / positions
    sums = tl.zeros((PARTS, D), tl.float32)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)[:, None]
        taken = (part < parts) & (column < SIZE)
        count = tl.minimum(positions - part * chunk, chunk).to(tl.float32)
        slot = group * parts + part
        deviation = tl.where(taken, tl.load(means + slot * SIZE + column, taken, 0.0) - centre, 0.0)
        own = tl.sum(tl.where(column == row, deviation, 0.0), 1)[:, None]
        sums += tl.load(scatters + (slot * SIZE + row) * SIZE + column, taken, 0.0) + count * own * deviation
    result = tl.sum(sums, 0)[None, :] / positions
    channel = group * SIZE + row
    inside = column < SIZE
    diagonal = column == row
    tl.store(mean + group * SIZE + column, centre, inside & diagonal)
    tl.store(covariance + channel * SIZE + column, result, inside)
    tl.store(shifted + channel * SIZE + column, tl.where(diagonal, result + eps, result), inside)


@triton.jit(do_not_specialize=_COUNTS)
def gradients_kernel(
    sums, products, W, weight, grad_bias, grad_W, grad_weight, parts,
    SIZE: tl.constexpr, D: tl.constexpr, PARTS: tl.constexpr, AFFINE: tl.constexpr,
):  # fmt: skip
    """Gradients with respect to W and to the weight, and the sum of those with respect to y, from the sums and products
    of chunks; one row a program."""
    row, group = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, D)
    inside = column < SIZE
    T = tl.zeros((PARTS, D), tl.float32)
    own = tl.zeros((PARTS,), tl.float32)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)
        slot = (group * parts + part) * SIZE + row
        taken = (part < parts)[:, None] & inside[None, :]
        T += tl.load(products + slot[:, None] * SIZE + column[None, :], taken, 0.0)
        own += tl.load(sums + slot, part < parts, 0.0)
    result = tl.sum(T, 0)
    channel = group * SIZE + row
    tl.store(grad_bias + channel, tl.sum(own, 0))
    if AFFINE:
        tl.store(grad_weight + channel, tl.sum(result * tl.load(W + channel * SIZE + column, inside, 0.0), 0))
        result *= tl.load(weight + channel).to(tl.float32)
    tl.store(grad_W + channel * SIZE + column, result, inside)


@triton.jit(do_not_specialize=_COUNTS)
def affine_kernel(
    P, Q, W, weight, shift, mean, H, out, positions, chunk, share,
    CHANNELS: tl.constexpr, SIZE: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, AFFINE: tl.constexpr,
    BACKWARD: tl.constexpr, HAS_CONSTANT: tl.constexpr, FLOAT32_FACTORS: tl.constexpr,
):  # fmt: skip
    """y = A (x - mean) + shift with A = weight * W, of P = x; or, BACKWARD, the gradient with respect to x.

    That is A^T g + share (S (x - mean) - A^T shift) of P = g, the gradient with respect to y, and Q = x, where
    S = H + H^T, H is the gradient with respect to the covariance, ``shift`` the sum of all g, and ``share`` one over
    the number of positions; with HAS_CONSTANT ``shift`` is what is added in place of -share A^T shift.

    x enters as it is, and the mean's part of the result is subtracted in float32, as seen by the rounded A and S.
    """
    part, group = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, D)
    inside = column < SIZE
    channel = group * SIZE + column
    one, other = column[:, None], column[None, :]
    square = (one < SIZE) & (other < SIZE)
    matrix = group * SIZE * SIZE
    A = tl.load(W + matrix + one * SIZE + other, square, 0.0)
    if AFFINE:
        A *= tl.load(weight + channel, inside, 0.0).to(tl.float32)[:, None]
    unit = _max_abs_or_one(A)
    A = _factor(A / unit, P, FLOAT32_FACTORS)
    centre = tl.load(mean + channel, inside, 0.0)[:, None]
    constant = tl.zeros((D,), tl.float32)
    if BACKWARD:
        S = tl.load(H + matrix + one * SIZE + other, square, 0.0)
        S += tl.load(H + matrix + other * SIZE + one, square, 0.0)
        scale = _max_abs_or_one(S)
        S = _factor(S / scale, P, FLOAT32_FACTORS)
        scale *= share
        constant -= scale * tl.sum(S.to(tl.float32) * centre, 0)
        total = tl.load(shift + channel, inside, 0.0)
        if HAS_CONSTANT:
            constant += total
        else:
            constant -= share * unit * tl.sum(A.to(tl.float32) * total[:, None], 0)
    else:
        A = tl.trans(A)
        constant -= unit * tl.sum(A.to(tl.float32) * centre, 0)
        if AFFINE:
            constant += tl.load(shift + channel, inside, 0.0).to(tl.float32)
    begin = part * chunk
    end = tl.minimum(begin + chunk, positions)
    for start in range(begin, end, BLOCK):
        row = start + tl.arange(0, BLOCK)
        taken = (row < end)[:, None] & inside[None, :]
        place = row.to(tl.int64)[:, None] * CHANNELS + channel[None, :]
        p = _factor(tl.load(P + place, taken, 0.0), P, FLOAT32_FACTORS)
        result = unit * tl.dot(p, A, input_precision="ieee") + constant[None, :]
        if BACKWARD:
            q = _factor(tl.load(Q + place, taken, 0.0), Q, FLOAT32_FACTORS)
            result += scale * tl.dot(q, S, input_precision="ieee")
        tl.store(out + place, result, taken)
