"""The rules on docstrings, comments and names that a test can check (CONTRIBUTING)."""

import ast
import re
import tokenize
from pathlib import Path

from tests.conftest import ROOT

PROGRAM = [path for folder in ("linkmgr", "deploy", "bench") for path in (ROOT / folder).rglob("*.py")]
OPENING = re.compile(r"(what|whether|of|which|where|who|whose|how|whoever|nobody|somebody)\b", re.IGNORECASE)
VAGUE = {"each", "found", "known", "asked", "given", "wanted", "told"}


def texts(path: Path) -> list[tuple[int, str]]:
    """Return the docstrings and comments with their lines, without continuation lines and comments behind code."""
    nodes = ast.walk(ast.parse(path.read_text()))
    documented = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = [(node.body[0].lineno, text) for node in documented if (text := ast.get_docstring(node))]
    with path.open("rb") as file:
        comments = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    starts = {token.start for token in comments}
    alone = [token for token in comments if token.line.lstrip().startswith("#")]
    first = [token for token in alone if (token.start[0] - 1, token.start[1]) not in starts]
    return docstrings + [(token.start[0], token.string.lstrip("# ")) for token in first]


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


def test_no_variable_has_a_vague_name() -> None:
    failures = [f"{path}:{line}: {name}" for path in PROGRAM for line, name in variables(path) if name in VAGUE]
    assert not failures, "\n".join(failures)
