"""Roots by ordinary operations, and the derivative rule.

Let S = A^(1/2), R = A^(-1/2), all matrices Hermitian, <X, Y> = Re tr(X^H Y), and let L_B be the
Lyapunov operator L_B[X] = B X + X B, which is self-adjoint. Differentiating S S = A gives

    dS = L_S^-1[dA],

and since R = S^-1, dR = -R dS R. With S at hand both derivatives share one solve. With R
alone, multiply S dS + dS S = dA by R^2 from both sides: Y = R dS R satisfies R Y + Y R = R^2 dA R^2, so

    dR = -L_R^-1[R^2 dA R^2].

Adjoints, for upstream gradients G_S and G_R:

    root alone          dA = L_S^-1[G_S]
    both roots          dA = L_S^-1[G_S - R G_R R]
    inverse root alone  dA = L_R^-1[-R^2 G_R R^2]

The right-hand sides are solved by functions that can be differentiated again (``lyapunov``), and
they are written in terms of the *outputs* S and R, so that a second derivative reaches A through
them: any order follows.

Truncated methods return an S whose square is only near A. The rule still applies the equations
above to that S: the gradient of an exact root, evaluated at an approximate one.
"""

import torch
from torch import Tensor
from torch.autograd import Function

from .._inputs import clean
from .._tracing import (
    autocast_disabled,
    compiling,
    derivative_order,
    exporting,
    inside_jvp,
    jit_tracing,
    needs_grad,
    transforming,
)
from ..backends import torch_ops
from ..backends._base import by_kind
from ..gradients import Exact, Gradient, Unrolled
from ..gradients._base import ImplicitGradient, SpectralGradient, apply_in_eigenbasis
from ..methods import Method
from ..methods._base import Output, is_inverse, select
from ..methods.eigen import clamp_eigenvalues
from .lyapunov import inverse_lyapunov, lyapunov


def roots_by_torch_ops(
    A: Tensor, ridge: float, method: Method, gradient: Gradient, output: Output
) -> tuple[Tensor, ...]:
    """The roots asked for of the caller's matrices: clean, evaluate, restore."""
    with autocast_disabled(A):
        cleaned = clean(A, ridge)
        found = _differentiable_roots(cleaned.matrix, cleaned.scale, method, gradient, output)
        return tuple(cleaned.restore(root, inverse) for root, inverse in zip(found, is_inverse(output), strict=True))


def _differentiable_roots(
    A: Tensor, scale: Tensor, method: Method, gradient: Gradient, output: Output
) -> tuple[Tensor, ...]:
    """The roots of a clean matrix, carrying the chosen derivative.

    ``scale`` is what the caller's matrix was divided by, for rules that are not scale-free.
    """
    traced = jit_tracing() and not exporting()
    if isinstance(gradient, Unrolled) or not (traced or needs_grad(A)):
        outputs = method.evaluate(A, output)
    elif traced or (compiling() and transforming()):
        # A trace records no Function, and is the same whether or not its input needs a gradient. torch.compile drops a
        # Function's backward inside torch.func up to torch 2.13.
        return _expanded_roots(A, scale, method, gradient, output)
    else:
        rule = _Roots if compiling() else _RootsWithForwardMode
        if isinstance(gradient, ImplicitGradient) and gradient.needs_both:
            return select(output, *rule.apply(A, scale, method, gradient, "both")[:2])
        outputs = rule.apply(A, scale, method, gradient, output)
    return outputs[: _count(output)]


def _count(output: Output) -> int:
    return len(is_inverse(output))


class _Roots(Function):
    """(A) -> roots, then the spectrum for spectral methods."""

    generate_vmap_rule = True

    @staticmethod
    def forward(A, scale, method, gradient, output):
        return method.evaluate(A, output)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, scale, _, ctx.gradient, ctx.output = inputs
        ctx.mark_non_differentiable(*output[_count(ctx.output) :])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(scale, *output)

    @staticmethod
    def backward(ctx, *cotangents):
        scale, *outputs = ctx.saved_tensors
        used = cotangents[: _count(ctx.output)]
        if all(g is None for g in used):
            return None, None, None, None, None
        with autocast_disabled(outputs[0]):
            symmetric = (None if g is None else torch_ops.hermitian(g) for g in used)
            return vjp(outputs, [*symmetric], scale, ctx.gradient, ctx.output), None, None, None, None


class _RootsWithForwardMode(_Roots):
    """The same with a jvp, which torch.compile cannot take."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        _Roots.setup_context(ctx, inputs, output)
        ctx.save_for_forward(inputs[1], *output)

    @staticmethod
    def jvp(ctx, tangent, *_):
        with autocast_disabled(tangent), inside_jvp(*ctx.saved_tensors) as (scale, *outputs):
            tangents = _jvp(outputs, torch_ops.hermitian(tangent), scale, ctx.gradient, ctx.output)
        return (*tangents, *(None for _ in outputs[_count(ctx.output) :]))


def vjp(outputs, cotangents, scale: Tensor, gradient: Gradient, output: Output) -> Tensor:
    """Upstream gradients of the roots (None: unused, but not all of them) to the gradient of A."""
    if isinstance(gradient, SpectralGradient):
        used = [(g, power) for g, power in zip(cotangents, _powers(output), strict=True) if g is not None]
        parts = [_couple(outputs, g, power, scale, gradient) for g, power in used]
        return _first_order(parts[0] if len(parts) == 1 else parts[0] + parts[1], outputs[0], gradient)
    assert isinstance(gradient, ImplicitGradient)
    known = _known(outputs, gradient, output)
    if output == "invsqrt":
        return inverse_lyapunov(outputs[0], cotangents[0], gradient, known)
    G, GR = by_kind(cotangents, output)
    del cotangents  # memory for the solver
    if GR is not None:
        GR = -torch_ops.sandwich(outputs[1], GR)
        G = GR if G is None else G + GR
        del GR
    assert G is not None  # no call is without cotangents
    return lyapunov(outputs[0], G, gradient, known)


def _jvp(outputs, tangent, scale, gradient: Gradient, output: Output) -> tuple[Tensor, ...]:
    """A perturbation of A to perturbations of the output roots."""
    if isinstance(gradient, SpectralGradient):
        return tuple(
            _first_order(_couple(outputs, tangent, power, scale, gradient), outputs[0], gradient)
            for power in _powers(output)
        )
    assert isinstance(gradient, ImplicitGradient)
    known = _known(outputs, gradient, output)
    if output == "invsqrt":
        return (inverse_lyapunov(outputs[0], tangent, gradient, known),)
    dS = lyapunov(outputs[0], tangent, gradient, known)
    return (dS,) if output == "sqrt" else (dS, -torch_ops.sandwich(outputs[1], dS))


def _expanded_roots(A, scale, method: Method, gradient: Gradient, output: Output) -> tuple[Tensor, ...]:
    """Roots whose ordinary automatic derivative is the rule's, without a Function.

    Expand around the constant A0 = A with D = A - A0 = 0 in value but not in derivative:
    S = S0 + E - L^-1[E^2], E = L^-1[D], has the right first and second derivatives. The inverse
    root alone is the root of A^-1 = N - N D N + N D N D N, N = R0^2.
    """
    order = derivative_order()
    if isinstance(gradient, SpectralGradient) and order > 1:
        raise RuntimeError(_first_order_message(gradient))
    if order > 2:
        raise RuntimeError("third derivatives inside torch.compile are not supported; differentiate without it")
    A0 = A.detach()
    D = A - A0
    outputs = method.evaluate(A0, output)
    if isinstance(gradient, SpectralGradient):
        tangents = [_couple(outputs, D, power, scale, gradient) for power in _powers(output)]
        return tuple(root + d for root, d in zip(outputs, tangents, strict=False))
    assert isinstance(gradient, ImplicitGradient)
    spectrum = _spectrum(outputs, output)
    B0 = outputs[0]
    if output == "invsqrt":
        N = torch_ops.product(B0, B0)
        D = torch_ops.sandwich(N, torch_ops.sandwich(D, N) - D)
    solver = gradient if gradient.linear and not gradient.needs_both else Exact()
    E = solver.solve(B0, D, spectrum)
    B = B0 + E - solver.solve(B0, torch_ops.product(E, E), spectrum)
    if output != "both":
        return (B,)
    # S^-1 = R0 - R0 F R0 + R0 F R0 F R0 with F = S - S0.
    R0, F = outputs[1], B - B0
    return B, R0 + torch_ops.sandwich(R0, torch_ops.sandwich(F, R0) - F)


def _known(outputs, gradient: ImplicitGradient, output: Output) -> tuple[Tensor, ...]:
    """What the solver of the first root's equation may be told: its inverse, its spectrum, or nothing."""
    return (outputs[1],) if gradient.needs_both else _spectrum(outputs, output)


def _spectrum(outputs, output: Output) -> tuple[Tensor, ...]:
    """Spectrum of the first root, if the method left that of A behind the roots."""
    count = _count(output)
    if len(outputs) == count:
        return ()
    values, vectors = outputs[count:]
    if output == "invsqrt":
        return torch.rsqrt(clamp_eigenvalues(values)), vectors
    return torch.sqrt(values.clamp_min(0)), vectors


def _powers(output: Output) -> tuple[float, ...]:
    return tuple(-0.5 if inverse else 0.5 for inverse in is_inverse(output))


def _couple(outputs, G: Tensor, power: float, scale: Tensor, gradient: SpectralGradient) -> Tensor:
    values, vectors = outputs[-2:]
    return apply_in_eigenbasis(gradient.coupling(values, power, scale), vectors, G)


def _first_order(derivative: Tensor, root: Tensor, gradient: Gradient) -> Tensor:
    """Mark a derivative that must not be differentiated again."""
    if compiling() or not needs_grad(derivative, root):
        return derivative
    return _FirstOrder.apply(derivative, root, gradient)


class _FirstOrder(Function):
    """Identity on the derivative, tied to the root so that a second derivative fails aloud."""

    generate_vmap_rule = True

    @staticmethod
    def forward(derivative, root, gradient):
        return derivative.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.gradient = inputs[2]

    @staticmethod
    def backward(ctx, upstream):
        raise RuntimeError(_first_order_message(ctx.gradient))

    @staticmethod
    def jvp(ctx, *tangents):
        raise RuntimeError(_first_order_message(ctx.gradient))


def _first_order_message(gradient: Gradient) -> str:
    return (
        f"gradient '{gradient.name}' is a baseline that defines a first derivative only; "
        "use gradient='exact' for higher derivatives"
    )
