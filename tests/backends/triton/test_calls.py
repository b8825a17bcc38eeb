"""Functions that kernels call, so that a kernel does not hold a copy of them for each place."""

import ast
import re

import pytest

pytest.importorskip("triton")
from triton import knobs

from .test_compiles import compile_kernel, kernels
from .unhashed import functions

pytestmark = pytest.mark.skipif(knobs.runtime.interpret, reason="the interpreter compiles nothing")

BARRIER = "tl.debug_barrier()"
MAX_OPERATIONS = 1300
"""Of one function of a kernel. Compile time grows faster than that: a pass looks at what depends on each access of
memory."""
PRODUCTS = {
    "fast_roots_cooperative_kernel": 1 * 3 + 2,
    "fast_gradient_cooperative_kernel": 3 * 3 + 1 + 4 + 2,
    "robust_roots_kernel": 3,
    "robust_gradient_kernel": 3,
}
"""Half-precision products in the code of a kernel: three for one of FP16X3."""


def called():
    return [pytest.param(function, id=function.__name__) for function in functions() if function.noinline]


@pytest.mark.parametrize("function", called())
def test_calls_begin_and_end_with_barriers(function):
    """Triton synchronises shared memory within functions, but not between what a caller and a function do."""
    (definition,) = ast.parse(function.src).body
    statements = [ast.unparse(statement) for statement in definition.body]
    if ast.get_docstring(definition):
        del statements[0]
    if isinstance(definition.body[-1], ast.Return):
        assert not any(isinstance(node, ast.Call) for node in ast.walk(definition.body[-1]))
        del statements[-1]
    assert statements[0] == statements[-1] == BARRIER
    assert sum(isinstance(node, ast.Return) for node in ast.walk(definition)) <= 1


@pytest.mark.parametrize(
    ("kernel", "on", "phase"), [case for case in kernels() if getattr(case.values[0], "__name__", None) in PRODUCTS]
)
def test_kernels_of_all_phases_are_quick_to_compile(kernel, on, phase):
    """A product in a loop is most of what compiles: there are few of them, and no long functions."""
    ttir = compile_kernel(kernel, on, phase).asm["ttir"]
    assert ttir.count(" tt.dot ") == PRODUCTS[kernel.__name__]
    texts = ttir.split(" tt.func ")
    found = [len(re.findall(r"^ +%\S+ = ", text, re.MULTILINE)) for text in texts]
    assert max(found) < MAX_OPERATIONS
    # Where it calls a function with one, ptxas lets all products of tensor cores wait for one another.
    assert not any(" tt.dot " in text for text in texts if text.startswith("private"))
