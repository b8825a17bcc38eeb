"""What importing costs, and the public names."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import matroot
from matroot._tracing import constant_in_traces


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_library_adds_little_to_torch():
    """Neither the compiler of torch nor what only commands need."""
    code = "import torch, sys; before = set(sys.modules); import matroot; matroot.sqrtm, matroot.nn; "
    added = run(code + "print(*sorted(set(sys.modules) - before))").split()
    packages = {name.partition(".")[0] for name in added if not name.startswith("torch.")}
    assert not [name for name in added if name.startswith(("torch._dynamo", "torch._inductor", "matroot.bench"))]
    assert not packages & {"triton", "rich", "scipy", "sympy"}
    assert len(added) < 150


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["bench", "--help"], ["report", "--help"]])
def test_help_does_not_wait_for_torch(arguments):
    code = f"""
import sys
from matroot._cli.main import main
try:
    main({arguments!r})
except SystemExit as end:
    assert not end.code, end.code
assert "torch" not in sys.modules
"""
    assert "matroot" in run(code)


def test_public_names():
    stub = ast.parse(Path(matroot.__file__).with_suffix(".pyi").read_text())
    names = {alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    with_extras = {"models", "style"}
    assert (names | {"__version__"}) - with_extras == set(dir(matroot)) == set(matroot.__all__)
    for name in names:
        assert getattr(matroot, name) is not None
    with pytest.raises(AttributeError, match="module 'matroot' has no attribute 'sqrt'"):
        matroot.sqrt  # noqa: B018


@pytest.mark.parametrize(
    ("module", "package", "extra"), [("models", "torchvision", "training"), ("style", "safetensors", "style")]
)
def test_submodules_that_need_more_than_torch_name_the_extra(module, package, extra):
    code = f"""
import sys
sys.modules[{package!r}] = None
from matroot import *
import matroot
try:
    matroot.{module}
except ModuleNotFoundError as missing:
    print(missing)
"""
    assert run(code) == f'{package} is not installed: pip install "matroot[{extra}]"\n'


def test_the_first_use_of_a_name_may_be_inside_torch_compile():
    code = """
import torch, matroot
root = torch.compile(lambda A: matroot.sqrtm(A), backend="eager", fullgraph=True)
print(root(torch.eye(3)).trace().item())
"""
    assert float(run(code)) == pytest.approx(3)


def test_constants_of_traces_are_marked_as_torch_marks_them():
    def ours():
        return 1

    def theirs():
        return 1

    assert vars(constant_in_traces(ours)) == vars(torch.compiler.assume_constant_result(theirs))
