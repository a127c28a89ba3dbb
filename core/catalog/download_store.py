"""Where downloads are stored: in huggingface_hub's own cache and layout, so that all programs on this machine find the
model.

    models--owner--name/blobs/DIGEST                 a file's bytes; DIGEST.incomplete while downloading
    models--owner--name/snapshots/COMMIT/config.json links to those
    models--owner--name/refs/main                    COMMIT
    models--owner--name/decodescope.json              manifest of an unfinished download; other programs ignore it
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from core.catalog import hub_errors
from core.catalog.hub_model import HubFile, HubModel, is_digest
from core.catalog.hub_requests import check_name
from core.common.former_name import FORMER_NAME, NAME
from core.errors import HubError, ModelFileError
from core.models.catalog import hub_cache
from core.models.model_files import Json, read_json, size_of
from resources.language import tr

MANIFEST = f"{NAME}.json"
_MANIFESTS = (MANIFEST, f"{FORMER_NAME}.json")
"""Names of the download manifest: the current and the former one."""
RESERVED_BYTES = 64 * 2**20
"""Disk space that a download leaves free, in bytes."""


class DownloadStore:
    """The cache folder of one model."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = hub_cache() / f"models--{name.replace('/', '--')}"
        self._blobs = self.folder / "blobs"

    def snapshot(self, commit: str) -> Path:
        """Return the folder that the model is loaded from."""
        return self.folder / "snapshots" / commit

    def blob(self, file: HubFile) -> Path:
        """Return the path of the complete file."""
        return self._blobs / file.digest

    def part(self, file: HubFile) -> Path:
        """Return the path of the file while it is downloading."""
        return self._blobs / f"{file.digest}.incomplete"

    def has_file(self, file: HubFile) -> bool:
        """Return whether the file is present with its full size."""
        return size_of(self.blob(file)) == file.size and self.blob(file).is_file()

    def bytes_present(self, file: HubFile) -> int:
        """Return how many bytes of the file are present."""
        return file.size if self.has_file(file) else min(size_of(self.part(file)), file.size)

    def is_complete(self, model: HubModel) -> bool:
        """Return whether the snapshot contains every file of the download."""
        snapshot = self.snapshot(model.commit)
        return all(
            size_of(snapshot / file.path) == file.size and (snapshot / file.path).is_file() for file in model.files
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock that prevents a second download of this model. Raises HubError, FileNotWrittenError."""
        from huggingface_hub.utils import WeakFileLock

        lock = hub_cache() / ".locks" / self.folder.name / "decodescope.lock"
        with self._translate_disk_errors():
            lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            waiting = WeakFileLock(lock, timeout=0.1)
            waiting.__enter__()
        except TimeoutError:
            raise HubError(
                tr("Another window is already downloading “{name}”.").format(name=self.name),
                tr("Wait for it, or stop it there."),
            ) from None
        try:
            yield
        finally:
            waiting.__exit__(None, None, None)

    def begin(self, model: HubModel) -> None:
        """Write the manifest of the download, so that it can be resumed. Raises FileNotWrittenError, DiskFullError."""
        self.check_free_space(model)
        with self._translate_disk_errors():
            self._blobs.mkdir(parents=True, exist_ok=True)
            (self.folder / "snapshots").mkdir(exist_ok=True)
            manifest = {"name": model.name, "commit": model.commit, "files": [asdict(file) for file in model.files]}
            (self.folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")

    def check_free_space(self, model: HubModel) -> None:
        """Check that the disk has room for the remaining bytes. Raises DiskFullError."""
        missing_bytes = sum(file.size - self.bytes_present(file) for file in model.files)
        free = free_bytes(self.folder)
        if missing_bytes and missing_bytes + RESERVED_BYTES > free:
            raise hub_errors.disk_full(hub_cache(), missing_bytes, free)

    def finish(self, model: HubModel) -> Path:
        """Link the complete files into the snapshot and remove partial ones. Raises FileNotWrittenError."""
        snapshot = self.snapshot(model.commit)
        with self._translate_disk_errors():
            for file in model.files:
                _link_blob(self.blob(file), snapshot / file.path)
            main = self.folder / "refs" / "main"
            main.parent.mkdir(exist_ok=True)
            main.write_text(model.commit, encoding="ascii")
            self.clear()
        return snapshot

    def clear(self) -> None:
        """Remove incomplete files and the manifest. Raises OSError."""
        for part in self._blobs.glob("*.incomplete"):
            part.unlink(missing_ok=True)
        for name in _MANIFESTS:
            (self.folder / name).unlink(missing_ok=True)

    def files_in_manifest(self) -> tuple[HubFile, ...] | None:
        """Return the files of the unfinished download, or None if there is none or its manifest is unreadable."""
        try:
            name = next((name for name in _MANIFESTS if (self.folder / name).exists()), MANIFEST)
            listed = read_json(self.folder / name).get("files")
        except (FileNotFoundError, ModelFileError):
            return None
        files = [_parse_manifest_entry(file) for file in listed] if isinstance(listed, list) else [None]
        return None if None in files else tuple(file for file in files if file is not None)

    @contextmanager
    def _translate_disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise hub_errors.from_disk(error, hub_cache()) from error


def _parse_manifest_entry(entry: Json) -> HubFile | None:
    """Parse one file of the manifest; None if it is invalid."""
    match entry:
        case {"path": str(path), "size": int(size), "digest": str(digest)} if is_digest(digest):
            return HubFile(path, size, digest)
    return None


def free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk that contains, or will contain, the folder."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 2**63


def _link_blob(blob: Path, pointer: Path) -> None:
    """Link the blob as huggingface_hub does: relative, so that the cache can be moved; a copy where links are not
    permitted.
    """
    pointer.parent.mkdir(parents=True, exist_ok=True)
    if pointer.exists() and os.path.samefile(pointer, blob):
        return
    pointer.unlink(missing_ok=True)
    try:
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except OSError:
        shutil.copyfile(blob, pointer)


@dataclass(frozen=True, slots=True)
class UnfinishedDownload:
    """A download that was paused or interrupted."""

    name: str
    done: int
    """Bytes that are already downloaded."""
    total: int


def unfinished() -> tuple[UnfinishedDownload, ...]:
    """Return every download that can be resumed, by name. Sends no request to the hub and never raises."""
    return tuple(sorted(_iter_unfinished(), key=lambda one: one.name))


def _iter_unfinished() -> Iterator[UnfinishedDownload]:
    try:
        notes = list(hub_cache().glob(f"models--*/{MANIFEST}"))
    except OSError:
        return
    for note in notes:
        name = note.parent.name.removeprefix("models--").replace("--", "/")
        store = DownloadStore(name)
        if (files := store.files_in_manifest()) is not None:
            yield UnfinishedDownload(name, sum(map(store.bytes_present, files)), sum(file.size for file in files))


def discard(name: str) -> int:
    """Delete the remains of an unfinished download and return the bytes freed; a complete model called `name` stays.

    Raises FileNotWrittenError.
    """
    check_name(name)
    store = DownloadStore(name)
    if not any((store.folder / "snapshots").glob("*/*")):
        return delete(name)
    linked_blobs = _linked_blobs(store.folder)
    lost = [file for file in (store.folder / "blobs").glob("*") if file.resolve() not in linked_blobs]
    freed = sum(map(size_of, lost))
    try:
        for file in lost:
            file.unlink()
        store.clear()
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache()) from error
    return freed


def delete(name: str) -> int:
    """Delete a model from the hub's cache, complete or not, and return the bytes freed. Raises FileNotWrittenError."""
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
    """Return the blobs that snapshots link to."""
    return {pointer.resolve() for pointer in (folder / "snapshots").rglob("*") if not pointer.is_dir()}
