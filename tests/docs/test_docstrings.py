"""Public docstrings: every parameter is documented, every example runs; and how they become reStructuredText."""

import doctest
import importlib.util
import inspect
import re
from pathlib import Path

import pytest
import torch

pytest.importorskip("matroot.models", reason="needs torchvision, which only the training extra has")
pytest.importorskip("matroot.style", reason="needs safetensors, which only the style and training extras have")

import matroot
from matroot.gradients import Gradient
from matroot.methods import Method

from .public import public_callables

PUBLIC = public_callables()


def members() -> dict[str, object]:
    """Methods with docstrings of their own; overriding ones without any inherit that of their base."""
    return {
        f"{name}.{member}": getattr(value, member)
        for name, value in PUBLIC.items()
        if inspect.isclass(value)
        for member, own in vars(value).items()
        if not member.startswith("_") and callable(getattr(value, member)) and (getattr(own, "__doc__", None) or "")
    }


DOCUMENTED = {**PUBLIC, **members()}


def parameters(value: object) -> list[str]:
    """Names of the signature, less ``self``."""
    if inspect.isclass(value) and issubclass(value, Exception):
        return []
    return [name for name in inspect.signature(value).parameters if name != "self"]  # pyright: ignore


def items(docstring: str, section: str) -> list[str]:
    """Names in a section of Google's convention."""
    _, _, rest = docstring.partition(f"\n{section}:\n")
    body = re.match(r"(?:(?: {4}.*)?\n)*", rest + "\n")
    return re.findall(r"^ {4}\*{0,2}(\w+): \S", body[0] if body else "", re.MULTILINE)


def docstring_of(value: object) -> str:
    """Empty for one that a dataclass makes up of its signature."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return "" if text.startswith(f"{getattr(value, '__name__', '')}(") else text


def is_for_use(value: object) -> bool:
    """Functions, methods, gradients and layers; not results, errors and base classes."""
    if not inspect.isclass(value):
        return True
    return issubclass(value, Method | Gradient | torch.nn.Module) and value not in (Method, Gradient)


NEED_EXAMPLES = [name for name, value in PUBLIC.items() if is_for_use(value)]
HAVE_EXAMPLES = [name for name, value in DOCUMENTED.items() if ">>>" in docstring_of(value)]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_parameter_is_documented(name):
    """In the order of the signature; fields of results are attributes."""
    value = DOCUMENTED[name]
    text = docstring_of(value)
    assert text
    assert (items(text, "Args") or items(text, "Attributes")) == parameters(value)


@pytest.mark.parametrize("name", dict.fromkeys((*NEED_EXAMPLES, *HAVE_EXAMPLES)))
def test_examples_run(name, tmp_path, monkeypatch):
    """Each in a folder of its own, with ``torch`` and ``matroot`` imported, as the reference says."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    given = {"torch": torch, "matroot": matroot}
    example = doctest.DocTestParser().get_doctest(docstring_of(DOCUMENTED[name]), given, name, None, 0)
    assert example.examples, "no example"
    said: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(example, out=said.append)
    assert not said, "".join(said)


def test_what_is_gone_through():
    """The tables above are not empty, and hold every kind."""
    assert {"matroot.sqrtm", "matroot.Pade", "matroot.nn.CovariancePool", "matroot.models.so_vit_7"} <= PUBLIC.keys()
    assert {"matroot.Roots", "matroot.models.WeightsError", "matroot.methods.Method.evaluate"} <= DOCUMENTED.keys()
    assert parameters(matroot.sqrtm) == ["A", "method", "gradient", "ridge", "check", "backend"]


def test_items_of_a_section():
    text = "Sum.\n\nx: before.\n\nArgs:\n    a: one,\n        b: more.\n\n    **c: two.\n\nReturns:\n    d: three.\n"
    assert items(text, "Args") == ["a", "c"]
    assert items(text, "Raises") == []


@pytest.fixture(scope="module")
def extension():
    pytest.importorskip("sphinx")
    path = Path(__file__).parents[2] / "docs/_ext/docstrings.py"
    spec = importlib.util.spec_from_file_location("docstrings", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_no_markup_is_escaped(extension):
    given = ["(*, n, n) of ||A||_F and x_, see :func:`f` and ``a * b``."]
    assert list(extension.escaped(given)) == [r"(\*, n, n) of \|\|A\|\|_F and x\_, see :func:`f` and ``a * b``."]


def test_formulas_and_examples_stay(extension):
    given = ["That is::", "", "    y = a * x", "", "and *.", "", ">>> a * b", "c * d", "", "e * f"]
    assert list(extension.escaped(given)) == [*given[:4], r"and \*.", *given[5:9], r"e \* f"]


def test_a_literal_block_ends_where_its_paragraph_stands(extension):
    given = ["Args:", "    x: as in::", "", "            * x", "", "    y: * y"]
    assert list(extension.escaped(given)) == [*given[:5], r"    y: \* y"]
