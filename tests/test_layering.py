"""Imports point one way: core <- nn <- models <- train, style; bench beside them; ``_cli`` on top."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src/matroot"

# The lowest first. A module imports from its own layer and from those below.
LAYERS = (
    (
        "_checkpoint",
        "_exif",
        "_extras",
        "_files",
        "_lock",
        "_page",
        "_png",
        "_safetensors",
        "_symbolic",
        "_terminal",
        "_timer",
    ),
    ("_names", "_tracing", "coefficients", "backends._base"),
    ("backends.torch_ops", "backends.constants", "_counting"),
    ("methods", "gradients", "_registry"),
    ("backends",),
    ("_inputs", "_autograd"),
    ("_dispatch",),
    ("_sharding", "_api", "_residual", "metrics"),
    ("nn",),
    ("matroot",),  # the package itself, as ``import matroot`` gives it
    ("_environment", "models"),
    ("train", "style", "bench"),
    ("_cli", "__main__"),
)
# Folders that do not know of each other, whatever their layers.
APART = {frozenset(pair) for pair in (("bench", "train"), ("bench", "style"), ("train", "style"))}


def name_of(path: Path, root: Path = PACKAGE) -> str:
    """Of a module without the package's own: ``nn.zca``, ``nn`` for its ``__init__``, ``matroot`` for that of all."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "matroot"


def imports_of(path: Path, modules: set[str], root: Path = PACKAGE) -> Iterator[tuple[str, int, bool]]:
    """What a file imports of the package: the module, the line, and whether that happens when it is imported.

    Not what annotations alone name: types may be those of a layer above.
    """
    folder = path.relative_to(root).parent.parts
    tree = ast.parse(path.read_text())
    for_types = _within(tree, _only_for_types)
    deferred = _within(tree, lambda node: isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))
    for node in ast.walk(tree):
        if node not in for_types:
            for name in _imported(node, folder, modules):
                yield name, node.lineno, node not in deferred


def _within(tree: ast.AST, condition: Callable[[ast.AST], bool]) -> set[ast.AST]:
    """All that lies within nodes that meet a condition."""
    return {inner for node in ast.walk(tree) if condition(node) for inner in ast.walk(node)}


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _imported(node: ast.AST, folder: tuple[str, ...], modules: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] == "matroot":
                yield alias.name.partition(".")[2] or "matroot"
    elif isinstance(node, ast.ImportFrom):
        base = (node.module or "").split(".") if node.module else []
        if node.level:
            base = [*folder[: len(folder) - node.level + 1], *base]
        elif base[:1] == ["matroot"]:
            base = base[1:]
        else:
            return
        for alias in node.names:
            whole = ".".join([*base, alias.name])
            yield whole if whole in modules else ".".join(base) or "matroot"


def layer_of(module: str) -> int | None:
    """Of the longest entry of ``LAYERS`` that the module is or lies in."""
    fitting = [
        (len(entry), height)
        for height, layer in enumerate(LAYERS)
        for entry in layer
        if module == entry or module.startswith(f"{entry}.")
    ]
    return max(fitting)[1] if fitting else None


def wrong_imports(files: dict[str, Path], root: Path = PACKAGE) -> list[str]:
    """A sentence for each import that points upwards or between folders that are apart."""
    found = []
    for module, path in files.items():
        for target, line, _ in imports_of(path, set(files), root):
            own, other = layer_of(module), layer_of(target)
            assert own is not None, f"{module} has no layer: add it to LAYERS"
            assert other is not None, f"{target}, imported by {module}, has no layer: add it to LAYERS"
            folders = frozenset((module.partition(".")[0], target.partition(".")[0]))
            if other > own or folders in APART:
                found.append(f"{path.relative_to(root)}:{line}: {module} must not import {target}")
    return found


def cycle(files: dict[str, Path], root: Path = PACKAGE) -> list[str]:
    """Modules that import one another when they are imported, first and last the same; empty if there are none.

    Who imports a module imports the folders it lies in first, except those it lies in itself.
    """
    edges: dict[str, set[str]] = {}
    for module, path in files.items():
        targets = {target for target, _, at_once in imports_of(path, set(files), root) if at_once}
        parents = {target[:i] for target in targets for i, c in enumerate(target) if c == "."}
        edges[module] = {t for t in targets | parents if t != module and not module.startswith(f"{t}.")}
    done: set[str] = set()

    def visit(module: str, above: list[str]) -> list[str]:
        if module in above:
            return [*above[above.index(module) :], module]
        if module not in done:
            for target in sorted(edges.get(module, ())):
                if found := visit(target, [*above, module]):
                    return found
            done.add(module)
        return []

    return next(filter(None, (visit(module, []) for module in files)), [])


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def test_imports_point_downwards():
    wrong = wrong_imports(FILES)
    assert not wrong, "\n".join(["imports that point upwards:", *wrong])


def test_no_modules_import_one_another():
    found = cycle(FILES)
    assert not found, "modules import one another: " + " -> ".join(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from ..nn import zca", "gradients/new.py:1: gradients.new must not import nn.zca"),
        ("def f():\n    from .. import nn", "gradients/new.py:2: gradients.new must not import nn"),
        ("import matroot", "gradients/new.py:1: gradients.new must not import matroot"),
        ("import matroot.bench.cases", "gradients/new.py:1: gradients.new must not import bench.cases"),
        ("from .._tracing import compiling\nimport torch\nfrom torch import nn", None),
    ],
)
def test_an_import_upwards_is_found(text, message, tmp_path):
    new = tmp_path / "gradients/new.py"
    new.parent.mkdir()
    new.write_text(text)
    for other in ("nn", "nn/zca", "bench/cases", "_tracing"):
        path = tmp_path / f"{other}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    files = {name_of(path, tmp_path): path for path in tmp_path.rglob("*.py")}
    assert wrong_imports(files, tmp_path) == ([] if message is None else [message])


def test_a_cycle_is_found(tmp_path):
    (tmp_path / "a.py").write_text("from .b import x")
    (tmp_path / "b.py").write_text("def f():\n    from .a import y")
    files = {path.stem: path for path in tmp_path.iterdir()}
    assert cycle(files, tmp_path) == []
    (tmp_path / "b.py").write_text("from . import a")
    assert cycle(files, tmp_path) in (["a", "b", "a"], ["b", "a", "b"])
