"""What several tests of the core share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import core
from core.native import building, library, place


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the quick step is built for a module's tests, hardly optimised: in a second."""
    path, before = tmp_path_factory.mktemp("built"), library._SHELF
    library._SHELF = library._Shelf()  # another module may have opened its own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(path))
        patch.delenv(place.SWITCH, raising=False)
        patch.setattr(building, "FLAGS", tuple("-O0" if flag == "-O3" else flag for flag in building.FLAGS))
        assert core.quicken().state == "built"
        yield path
    library._SHELF = before


@pytest.fixture
def built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The built step, found by this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv(place.SWITCH, raising=False)
    monkeypatch.setattr(library, "_SHELF", library._Shelf())
