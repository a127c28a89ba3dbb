"""How many parts a controller may be handed: one assembly builds them, and each gets the few that it works on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_PARTS = 4
PLACES = ("app/control", "app/window", "app/session")


def too_many(name: str, code: str) -> Iterator[str]:
    """The classes of a file whose `__init__` takes more than it may, a parent and what has a default counted too.

    Dataclasses and named tuples write no `__init__`: they are plain values, and are not meant.
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                    count = _taken(member.args)
                    if count > MOST_PARTS:
                        yield f"{name}: {node.name} takes {count}"


def _taken(given: ast.arguments) -> int:
    """How many arguments, beside `self`; `*these` and `**those` are one each."""
    named = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) - 1
    return named + (given.vararg is not None) + (given.kwarg is not None)


def test_no_controller_is_handed_more_parts_than_it_can_keep_in_step() -> None:
    files = (path for place in PLACES for path in sorted((ROOT / place).rglob("*.py")))
    found = (one for path in files for one in too_many(str(path.relative_to(ROOT)), path.read_text("utf-8")))
    assert list(found) == []


def test_one_that_takes_too_many_is_found() -> None:
    code = (
        "class Few:\n    def __init__(self, a, b, c, d): ...\n"
        "class Many:\n    def __init__(self, a, b, *, c, d, e=None): ...\n"
        "class Hidden:\n    def __init__(self, a, b, c, *d, **e): ...\n"
    )
    assert list(too_many("x.py", code)) == ["x.py: Many takes 5", "x.py: Hidden takes 5"]
