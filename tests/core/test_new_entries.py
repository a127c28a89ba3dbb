"""Missing parts of a new strategy, processor or cache are named, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from decodescope.core import caches, processors, strategies

ROOT = Path(__file__).resolve().parents[2]
TESTS = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests" / "core").glob("*.py")))
ENTRIES = {
    f"core/{folder}/{entry.name}.py": entry
    for folder, registry in (
        ("strategies", strategies.registry), ("processors", processors.registry), ("caches", caches.registry)
    )
    for entry in registry.values()
}  # fmt: skip


@pytest.mark.parametrize("file", ENTRIES)
def test_every_entry_has_a_test_of_its_own(file: str) -> None:
    name = ENTRIES[file].name
    assert f'"{name}"' in TESTS or f"{name}=" in TESTS, (
        f"No test names {file}. Add tests/core/test_{name}.py, which compares what it does with a reference."
    )


@pytest.mark.parametrize("name", processors.registry)
def test_every_processor_has_a_plain_name(name: str) -> None:
    assert processors.registry[name].plain_phrase, (
        f"core/processors/{name}.py: add plain_phrase=mark(…), the stage's name in plain words."
    )


def test_every_new_entry_is_in_the_changelog() -> None:
    """The entries of the first version have their terms in resources/glossary, and need no line each."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    missing = [entry.name for entry in ENTRIES.values() if entry.description is not None and entry.name not in text]
    assert not missing, f"Add a line to CHANGELOG.md that names {', '.join(missing)}."
