"""How large the parts of the code may become before they are split by subject."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_METHODS = 20
MOST_LINES_OF_FUNCTION = 45
MOST_LINES_OF_FILE = 500
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def _files() -> Iterator[tuple[str, str]]:
    for folder in ("app", "core"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def too_large(name: str, code: str) -> Iterator[str]:
    """What of a file is larger than it may be, properties and dunder methods counted as methods."""
    if (lines := len(code.splitlines())) > MOST_LINES_OF_FILE:
        yield f"{name}: {lines} lines"
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(member, _FUNCTION) for member in node.body)
            if methods > MOST_METHODS:
                yield f"{name}: {node.name} has {methods} methods"
        elif isinstance(node, _FUNCTION) and node.end_lineno is not None:
            if (lines := node.end_lineno - node.lineno + 1) > MOST_LINES_OF_FUNCTION:
                yield f"{name}: {node.name} has {lines} lines"


def test_nothing_is_too_large() -> None:
    assert [found for name, code in _files() for found in too_large(name, code)] == []


def test_what_is_too_large_is_found() -> None:
    methods = "\n".join(f"    def m{n}(self): ..." for n in range(MOST_METHODS + 1))
    body = "    pass\n" * MOST_LINES_OF_FUNCTION
    code = f"class A:\n{methods}\nasync def f():\n{body}" + "\n" * MOST_LINES_OF_FILE
    found = [one.split()[1] for one in too_large("x.py", code)]
    assert found == [str(len(code.splitlines())), "A", "f"]
