"""A strategy, stage or cache backend is not special-cased by name: its own file declares its properties."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import Path

from decodescope.core import caches, processors, strategies

ROOT = Path(__file__).resolve().parents[2]
NAMES = {name for entry in strategies.registry.values() for name in (entry.name, *entry.aliases)}
ENTRIES = {
    f"decodescope.core.{room}.{name}"
    for room, registry in (
        ("strategies", strategies.registry), ("processors", processors.registry), ("caches", caches.registry)
    )
    for name in registry
}  # fmt: skip
OTHER_WORDS = {
    ("core/decoding/speculation/speculation_factory.py", "greedy"): "a value of the setting `verifier`",
    ("core/decoding/speculation/speculation_factory.py", "sampling"): "a value of the setting `verifier`",
    ("core/generate_recording/run_writer.py", "assisted_generation"): "a name of transformers",
    ("core/models/prediction_heads.py", "mtp"): "a key of what is kept of a model",
    ("core/explain/settings.py", "beam"): "a value of the event's `method`",
    ("core/explain/settings.py", "greedy"): "a value of the event's `method`",
}
"""Words that are spelled like a strategy and are not one."""


def compared(code: str, names: Set[str] = NAMES) -> Iterator[str]:
    """The names that something is compared with, `match` included."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Compare):
            sides: list[ast.expr] = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        else:
            continue
        texts = (each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant))
        yield from (text for text in texts if text in names)


def imported(code: str) -> Iterator[str]:
    """The modules that are imported, whole or in part, wherever in the file."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def _sources(*folders: str, but: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(but):
                yield name, path.read_text("utf-8")


def test_strategies_are_not_special_cased_by_name() -> None:
    """The labs compare strategies, which they name."""
    found = {
        (file, name)
        for file, code in _sources("core", but=("core/strategies/", "core/labs/"))
        for name in compared(code)
    }
    assert found == set(OTHER_WORDS)


def test_registry_entries_are_not_imported_from_outside() -> None:
    found = [
        (file, module)
        for file, code in _sources("core", "app")
        for module in imported(code)
        if module in ENTRIES
        and not file.startswith(f"{module.removeprefix('decodescope.').rpartition('.')[0].replace('.', '/')}/")
    ]
    assert found == []


def test_name_comparisons_and_entry_imports_are_detected() -> None:
    code = (
        "def f(run):\n    from decodescope.core.strategies.sampling import SEED_EACH\n"
        "    import decodescope.core.caches.sink\n"
        "    if run.name == 'contrastive' or run.name in ('dola', 'x'):\n"
        "        match run.name:\n            case 'greedy': pass\n"
        "    return run.name == 'other'\n"
    )
    assert sorted(compared(code)) == ["contrastive", "dola", "greedy"]
    assert ENTRIES & set(imported(code)) == {"decodescope.core.strategies.sampling", "decodescope.core.caches.sink"}
