"""The derivative rule.

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

The right-hand sides are solved by functions that can be differentiated again (``_lyapunov``), and
they are written in terms of the *outputs* S and R, so that a second derivative reaches A through
them: any order follows.

Truncated methods return an S whose square is only near A. The rule still applies the equations
above to that S: the gradient of an exact root, evaluated at an approximate one.
"""

import torch
from torch import Tensor
from torch.autograd import Function

from ._lyapunov import inverse_lyapunov, lyapunov, sandwich
from ._tracing import compiling, derivative_order, full_precision, inside_jvp, recording, transforming
from .backends import eager
from .gradients import Exact, Gradient, Unrolled
from .gradients._base import ImplicitGradient, SpectralGradient, weigh
from .methods import Method
from .methods._base import Wanted, inverses, select
from .methods.eigen import floored


def differentiable_roots(
    A: Tensor, scale: Tensor, method: Method, gradient: Gradient, wanted: Wanted
) -> tuple[Tensor, ...]:
    """The wanted roots of a clean matrix, carrying the chosen derivative.

    ``scale`` is what the caller's matrix was divided by, for rules that are not scale-free.
    """
    if isinstance(gradient, Unrolled) or not recording(A):
        outputs = method.evaluate(A, wanted)
    elif compiling() and transforming():
        # torch.compile drops a Function's backward inside torch.func up to torch 2.13.
        return _expanded_roots(A, scale, method, gradient, wanted)
    else:
        rule = _Roots if compiling() else _RootsWithForwardMode
        if isinstance(gradient, ImplicitGradient) and gradient.needs_both:
            return select(wanted, *rule.apply(A, scale, method, gradient, "both")[:2])
        outputs = rule.apply(A, scale, method, gradient, wanted)
    return outputs[: _count(wanted)]


def _count(wanted: Wanted) -> int:
    return len(inverses(wanted))


class _Roots(Function):
    """(A) -> roots, then the spectrum for spectral methods."""

    generate_vmap_rule = True

    @staticmethod
    def forward(A, scale, method, gradient, wanted):
        return method.evaluate(A, wanted)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, scale, _, ctx.gradient, ctx.wanted = inputs
        ctx.mark_non_differentiable(*output[_count(ctx.wanted) :])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(scale, *output)

    @staticmethod
    def backward(ctx, *cotangents):
        scale, *outputs = ctx.saved_tensors
        with full_precision(outputs[0]):
            cotangents = [None if g is None else eager.hermitian(g) for g in cotangents[: _count(ctx.wanted)]]
            unused = all(g is None for g in cotangents)
            dA = None if unused else pull_back(outputs, cotangents, scale, ctx.gradient, ctx.wanted)
            return dA, None, None, None, None


class _RootsWithForwardMode(_Roots):
    """The same with a jvp, which torch.compile cannot take."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        _Roots.setup_context(ctx, inputs, output)
        ctx.save_for_forward(inputs[1], *output)

    @staticmethod
    def jvp(ctx, tangent, *_):
        with full_precision(tangent), inside_jvp(*ctx.saved_tensors) as (scale, *outputs):
            tangents = _push_forward(outputs, eager.hermitian(tangent), scale, ctx.gradient, ctx.wanted)
        return (*tangents, *(None for _ in outputs[_count(ctx.wanted) :]))


def pull_back(outputs, cotangents, scale: Tensor, gradient: Gradient, wanted: Wanted) -> Tensor:
    """Upstream gradients of the roots (None: unused, but not all of them) to the gradient of A."""
    if isinstance(gradient, SpectralGradient):
        used = [(g, power) for g, power in zip(cotangents, _powers(wanted), strict=True) if g is not None]
        parts = [_couple(outputs, g, power, scale, gradient) for g, power in used]
        return _first_order(parts[0] if len(parts) == 1 else parts[0] + parts[1], outputs[0], gradient)
    assert isinstance(gradient, ImplicitGradient)
    if wanted == "invsqrt":
        return inverse_lyapunov(outputs[0], cotangents[0], gradient, _known(outputs, gradient, wanted))
    S, G = outputs[0], cotangents[0]
    if wanted == "both" and cotangents[1] is not None:
        from_inverse = -sandwich(outputs[1], cotangents[1])
        G = from_inverse if G is None else G + from_inverse
    return lyapunov(S, G, gradient, _known(outputs, gradient, wanted))


def _push_forward(outputs, tangent, scale, gradient: Gradient, wanted: Wanted) -> tuple[Tensor, ...]:
    """A perturbation of A to perturbations of the wanted roots."""
    if isinstance(gradient, SpectralGradient):
        return tuple(
            _first_order(_couple(outputs, tangent, power, scale, gradient), outputs[0], gradient)
            for power in _powers(wanted)
        )
    assert isinstance(gradient, ImplicitGradient)
    known = _known(outputs, gradient, wanted)
    if wanted == "invsqrt":
        return (inverse_lyapunov(outputs[0], tangent, gradient, known),)
    dS = lyapunov(outputs[0], tangent, gradient, known)
    return (dS,) if wanted == "sqrt" else (dS, -sandwich(outputs[1], dS))


def _expanded_roots(A, scale, method: Method, gradient: Gradient, wanted: Wanted) -> tuple[Tensor, ...]:
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
    outputs = method.evaluate(A0, wanted)
    if isinstance(gradient, SpectralGradient):
        tangents = [_couple(outputs, D, power, scale, gradient) for power in _powers(wanted)]
        return tuple(root + d for root, d in zip(outputs, tangents, strict=False))
    assert isinstance(gradient, ImplicitGradient)
    spectrum = _spectrum(outputs, wanted)
    B0 = outputs[0]
    if wanted == "invsqrt":
        N = eager.product(B0, B0)
        D = sandwich(N, sandwich(D, N) - D)
    solver = gradient if gradient.linear else Exact()
    E = solver.solve(B0, D, spectrum)
    B = B0 + E - solver.solve(B0, eager.product(E, E), spectrum)
    if wanted != "both":
        return (B,)
    # S^-1 = R0 - R0 F R0 + R0 F R0 F R0 with F = S - S0.
    R0, F = outputs[1], B - B0
    return B, R0 + sandwich(R0, sandwich(F, R0) - F)


def _known(outputs, gradient: ImplicitGradient, wanted: Wanted) -> tuple[Tensor, ...]:
    """What the solver of the first root's equation may be told: its inverse, its spectrum, or nothing."""
    return (outputs[1],) if gradient.needs_both else _spectrum(outputs, wanted)


def _spectrum(outputs, wanted: Wanted) -> tuple[Tensor, ...]:
    """Spectrum of the first root, if the method left that of A behind the roots."""
    count = _count(wanted)
    if len(outputs) == count:
        return ()
    values, vectors = outputs[count:]
    if wanted == "invsqrt":
        return torch.rsqrt(floored(values)), vectors
    return torch.sqrt(values.clamp_min(0)), vectors


def _powers(wanted: Wanted) -> tuple[float, ...]:
    return tuple(-0.5 if inverse else 0.5 for inverse in inverses(wanted))


def _couple(outputs, G: Tensor, power: float, scale: Tensor, gradient: SpectralGradient) -> Tensor:
    values, vectors = outputs[-2:]
    return weigh(gradient.coupling(values, power, scale), vectors, G)


def _first_order(derivative: Tensor, root: Tensor, gradient: Gradient) -> Tensor:
    """Mark a derivative that must not be differentiated again."""
    if compiling() or not recording(derivative, root):
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
