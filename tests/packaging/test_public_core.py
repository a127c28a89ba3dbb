"""What the application may know of the core: an allow-list, which import-linter's contracts cannot say."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import core

ROOT = Path(__file__).parents[2]
PUBLIC = {"core", "core.events", "core.errors", "core.strategies", "core.caches"}
SOURCES = sorted((ROOT / "app").rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Modules named in a file, those in functions and for type checkers too; `from core import x` names `core.x`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "core":
            yield from (f"core.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def is_public(module: str) -> bool:
    """Whether it is one of the few, or a name that the core itself hands out."""
    return module in PUBLIC or module.removeprefix("core.") in core.__all__


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_application_knows_the_public_core_only(path: Path) -> None:
    of_core = {module for module in imported(path) if module.split(".")[0] == "core"}
    assert sorted(module for module in of_core if not is_public(module)) == []


def test_a_name_from_within_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "sly.py"
    path.write_text("def f():\n    from core.decoding.run import DecodingRun\n    import core.models.catalog\n")
    assert [is_public(module) for module in imported(path)] == [False, False]
