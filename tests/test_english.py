"""The rules on docstrings, comments and names that a test can check (CONTRIBUTING)."""

import ast
import re
from pathlib import Path

from tests.conftest import ROOT

PROGRAM = [path for folder in ("linkmgr", "deploy", "bench") for path in (ROOT / folder).rglob("*.py")]
OPENING = re.compile(r"(what|whether|of|which|where|who|whose|how|whoever|nobody|somebody)\b", re.IGNORECASE)
FILLERS = {"all", "and", "any", "for", "from", "has", "its", "raise", "return", "that", "the", "this", "with", "yield"}
VAGUE = {"each", "found", "known", "asked", "given", "wanted", "told"}


def texts(path: Path) -> list[tuple[int, str]]:
    """Return the docstrings and comments with their lines, without continuation lines and comments behind code."""
    text = path.read_text()
    nodes, lines = ast.walk(ast.parse(text)), text.splitlines()
    documented = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = [(node.body[0].lineno, found) for node in documented if (found := ast.get_docstring(node))]
    is_comment = [line.lstrip().startswith("#") for line in lines]
    first = [n for n, found in enumerate(is_comment) if found and not is_comment[n - 1]]
    return docstrings + [(n + 1, lines[n].lstrip("# ")) for n in first]


def variables(path: Path) -> list[tuple[int, str]]:
    """Return the assigned names and the parameters with their lines."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    assigned = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return [(node.lineno, node.id) for node in assigned] + [
        (node.lineno, node.arg) for node in nodes if isinstance(node, ast.arg)
    ]


def test_no_docstring_or_comment_begins_with_a_question_word() -> None:
    paths = [*PROGRAM, *(ROOT / "tests").rglob("*.py")]
    failures = [f"{path}:{line}: {text}" for path in paths for line, text in texts(path) if OPENING.match(text)]
    assert not failures, "\n".join(failures)


def stems(text: str) -> set[str]:
    words = {word for word in re.findall("[a-z]{3,}", text.lower()) if word not in FILLERS}
    return {re.sub("(ies|es|s|ed|ing|d)$", "", word) for word in words}


def repeats(path: Path) -> list[str]:
    """Return the docstrings that have at most one word, the verb, beside those of the names. Decorators may show theirs
    to users."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    documented = [(node, ast.get_docstring(node)) for node in functions if not node.decorator_list]
    named = [(text, [path.stem, node.name, *(arg.arg for arg in node.args.args)]) for node, text in documented if text]
    return [text for text, names in named if len(stems(text) - stems(" ".join(names))) <= 1]


def test_no_docstring_repeats_the_name_of_its_function() -> None:
    failures = [f"{path}: {text}" for path in PROGRAM for text in repeats(path)]
    assert not failures, "\n".join(failures)


def test_no_variable_has_a_vague_name() -> None:
    failures = [f"{path}:{line}: {name}" for path in PROGRAM for line, name in variables(path) if name in VAGUE]
    assert not failures, "\n".join(failures)
