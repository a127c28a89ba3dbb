"""Downloads that were not finished, and models that are not wanted any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.catalog import hub_errors
from core.catalog.download_store import MANIFEST, DownloadStore
from core.catalog.hub_requests import check_name
from core.models.hub import hub_cache
from core.models.model_files import size_of


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A download that was paused, or that ended with the program."""

    name: str
    done: int
    """Bytes that are there."""
    total: int


def unfinished() -> tuple[Unfinished, ...]:
    """Every download that can be gone on with, by name; asks nothing of the hub. Never raises."""
    return tuple(sorted(_iter_unfinished(), key=lambda one: one.name))


def _iter_unfinished() -> Iterator[Unfinished]:
    try:
        notes = list(hub_cache().glob(f"models--*/{MANIFEST}"))
    except OSError:
        return
    for note in notes:
        name = note.parent.name.removeprefix("models--").replace("--", "/")
        store = DownloadStore(name)
        if (files := store.files_in_manifest()) is not None:
            yield Unfinished(name, sum(map(store.bytes_present, files)), sum(file.size for file in files))


def discard(name: str) -> int:
    """Delete what an unfinished download has left; a whole model of that name stays. Gives back the bytes freed.

    Raises FileNotWrittenError.
    """
    check_name(name)
    store = DownloadStore(name)
    if not any((store.folder / "snapshots").glob("*/*")):
        return delete(name)
    wanted = _linked_blobs(store.folder)
    lost = [file for file in (store.folder / "blobs").glob("*") if file.resolve() not in wanted]
    freed = sum(map(size_of, lost))
    try:
        for file in lost:
            file.unlink()
        store.clear()
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache()) from error
    return freed


def delete(name: str) -> int:
    """Delete a model of the hub's cache, whole or not. Gives back the bytes freed. Raises FileNotWrittenError."""
    check_name(name)
    folder = DownloadStore(name).folder
    freed = sum(size_of(file) for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    try:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache()) from error
    return freed


def _linked_blobs(folder: Path) -> set[Path]:
    """What snapshots show."""
    return {pointer.resolve() for pointer in (folder / "snapshots").rglob("*") if not pointer.is_dir()}
