"""Imports run downward through the packages, without cycles (CONTRIBUTING, "Layout")."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FunctionType, MethodType

from flask import Flask

import linkmgr
from linkmgr.core.hooks import Hooks
from tests.conftest import ROOT

PACKAGE = Path(linkmgr.__file__).parent
# A package imports only itself and the packages above it in this list.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("visits", "qr"),
    ("repository",),
    ("schemas",),
    ("api", "public", "cli"),
    ("features",),
    ("console",),
    ("document",),
    ("demo",),
    ("__init__",),
    ("__main__", "launch", "serving"),
)
# The features that a feature imports, and why.
NEEDED = {
    ("exports", "conversions"): "the zip of an account has its conversions",
    ("exports", "public_statistics"): "the zip of an account has its pages",
    ("exports", "statistics"): "visits are exported",
    ("exports", "utm"): "the zip of an account has its templates",
    ("imports", "conversions"): "the zip of an account has its conversions",
    ("imports", "public_statistics"): "the zip of an account has its pages",
    ("imports", "exports"): "it reads the zip of an account",
    ("mail", "statistics"): "the weekly report has its figures",
    ("public_statistics", "statistics"): "its page has the periods of statistics",
    ("activity", "webhooks"): "the activity of an account is made of its events",
    ("webhooks", "imports"): "an event has the record of an import",
    ("webhooks", "utm"): "templates have events",
}
MAX_KEYS = 12  # of objects that modules keep of an application
MAX_HOOKS = 8
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def layer_of(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its dotted name below linkmgr."""
    trees = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        trees[name.removesuffix(".__init__")] = ast.parse(path.read_text())
    return trees


def imports(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the modules that a module imports, inside functions and under TYPE_CHECKING too."""
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] != "linkmgr" for alias in node.names), "write: from linkmgr import ..."
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "write absolute imports"
            path = (node.module or "").split(".")
            if path[0] == "linkmgr":
                base = ".".join(path[1:])
                members = [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
                used |= {member if member in names else base or "__init__" for member in members}
    return used


@cache
def graph() -> dict[str, set[str]]:
    trees = modules()
    return {name: imports(tree, set(trees)) for name, tree in trees.items()}


def test_every_module_belongs_to_a_layer() -> None:
    assert set(map(layer_of, graph())) == set(LEVEL)


def test_imports_run_downward() -> None:
    wrong = [
        f"{module} imports {used}"
        for module, all_used in graph().items()
        for used in sorted(all_used)
        if layer_of(module) != layer_of(used) and LEVEL[layer_of(module)] <= LEVEL[layer_of(used)]
    ]
    assert wrong == []


def test_a_feature_imports_only_the_features_that_it_needs() -> None:
    used = {
        (module.split(".")[1], other.split(".")[1])
        for module, all_used in graph().items()
        for other in all_used
        if module.startswith("features.") and other.startswith("features.")
    }
    assert {pair for pair in used if pair[0] != pair[1]} == NEEDED.keys()


def test_no_module_imports_itself_through_others() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        raise AssertionError(f"cycle: {' <- '.join(error.args[1])}") from None


EXTENSION = re.compile(r'extensions\["(linkmgr_\w+)"\]')


def test_an_object_of_an_application_belongs_to_one_module() -> None:
    """Calls run downward too: what a package needs of one above it is a hook (core/hooks.py)."""
    found: dict[str, set[Path]] = {}
    for path in PACKAGE.rglob("*.py"):
        for key in EXTENSION.findall(path.read_text()):
            found.setdefault(key, set()).add(path)
    assert {key: paths for key, paths in found.items() if len(paths) > 1} == {}
    assert len(found) <= MAX_KEYS
    assert len(Hooks._fields) <= MAX_HOOKS


def test_the_objects_of_an_application_are_no_functions(app: Flask) -> None:
    kept = {key: value for key, value in app.extensions.items() if key.startswith("linkmgr_")}
    assert {key for key, value in kept.items() if isinstance(value, FunctionType | MethodType)} == set()


def changed_constants(tree: ast.Module) -> set[str]:
    """Return the names behind which assignments change a constant, such as `loops` of `loops.HOPS["x"] = 1`."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AugAssign)]
    targets = [target for node in nodes for target in getattr(node, "targets", [getattr(node, "target", None)])]
    texts = [ast.unparse(target) for target in targets if target]
    return {text.partition(".")[0].partition("[")[0] for text in texts if re.match(r"(\w+\.)?[A-Z_]{2,}\b", text)}


def test_no_module_fills_a_variable_of_another() -> None:
    wrong = []
    for name, tree in modules().items():
        statements = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        ours = [node for node in statements if (node.module or "").startswith("linkmgr")]
        imported = {alias.asname or alias.name for node in ours for alias in node.names}
        wrong += [f"{name} changes {changed}" for changed in changed_constants(tree) & imported]
    assert wrong == []


def test_the_layout_of_the_documents_has_the_same_order() -> None:
    layout = (ROOT / ".github/CONTRIBUTING.md").read_text().partition("## Layout")[2].partition("\n## ")[0]
    rows = re.findall(r"^      (\w+(?: \w+)*) {2}", layout, re.MULTILINE)
    names = [name for row in rows for name in row.split()]
    assert sorted([*names, "__main__"]) == sorted(LEVEL)
    assert [LEVEL[name] for name in names] == sorted((LEVEL[name] for name in names), reverse=True)


def test_no_test_file_imports_from_another() -> None:
    statement = "from tests." + "test_"
    assert [path.name for path in ROOT.glob("tests/**/*.py") if statement in path.read_text()] == []
