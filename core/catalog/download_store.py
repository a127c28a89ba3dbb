"""The store of downloads: in huggingface_hub's own cache and layout, so that all programs on this machine find the
model.

    models--owner--name/blobs/DIGEST                 a file's bytes; DIGEST.incomplete while downloading
    models--owner--name/snapshots/COMMIT/config.json links to those
    models--owner--name/refs/main                    COMMIT
    models--owner--name/decodescope.json              manifest of an unfinished download; other programs ignore it
    models--owner--name/decodescope-Q8_0.json         the same for one of several GGUF models
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from decodescope.core.catalog import hub_errors
from decodescope.core.catalog.hub_model import HubFile, HubModel, is_digest
from decodescope.core.catalog.hub_requests import check_download_name
from decodescope.core.common.program_name import NAME
from decodescope.core.errors import HubError, ModelFileError
from decodescope.core.models.catalog import hub_cache, hub_gguf_files
from decodescope.core.models.gguf.file_names import SEPARATOR, split_name
from decodescope.core.models.model_files import Json, read_json, size_of
from decodescope.resources.language import tr

MANIFEST = f"{NAME}.json"
RESERVED_BYTES = 64 * 2**20
"""Disk space that a download leaves free, in bytes."""


class DownloadStore:
    """The cache folder of one model; several GGUF models of one repository share it."""

    def __init__(self, name: str) -> None:
        self.name = name
        repository, self.variant = split_name(name)
        self.folder = hub_cache() / f"models--{repository.replace('/', '--')}"
        self.manifest = f"{NAME}-{self.variant}.json" if self.variant else MANIFEST
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

        lock = hub_cache() / ".locks" / self.folder.name / self.manifest.replace(".json", ".lock")
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
            manifest = {"name": self.name, "commit": model.commit, "files": [asdict(file) for file in model.files]}
            (self.folder / self.manifest).write_text(json.dumps(manifest, indent=1), encoding="utf-8")

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
        own = map(self.part, self.files_in_manifest() or ()) if self.variant else self._blobs.glob("*.incomplete")
        for part in list(own):
            part.unlink(missing_ok=True)
        (self.folder / self.manifest).unlink(missing_ok=True)

    def files_in_manifest(self) -> tuple[HubFile, ...] | None:
        """Return the files of the unfinished download, or None if there is none or its manifest is unreadable."""
        try:
            listed = read_json(self.folder / self.manifest).get("files")
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
        notes = [*hub_cache().glob(f"models--*/{MANIFEST}"), *hub_cache().glob(f"models--*/{NAME}-*.json")]
    except OSError:
        return
    for note in notes:
        variant = note.stem.removeprefix(NAME).removeprefix("-")
        name = note.parent.name.removeprefix("models--").replace("--", "/") + (variant and f"{SEPARATOR}{variant}")
        store = DownloadStore(name)
        if (files := store.files_in_manifest()) is not None:
            yield UnfinishedDownload(name, sum(map(store.bytes_present, files)), sum(file.size for file in files))


def discard(name: str) -> int:
    """Delete the remains of an unfinished download and return the bytes freed; a complete model called `name` stays.

    Raises FileNotWrittenError.
    """
    check_download_name(name)
    store = DownloadStore(name)
    others = [note for note in store.folder.glob(f"{NAME}*.json") if note.name != store.manifest]
    if not others and not any((store.folder / "snapshots").glob("*/*")):
        return delete(split_name(name)[0])
    linked_blobs = _linked_blobs(store.folder)
    there = (store.folder / "blobs").glob("*")
    if store.variant:
        there = (path for file in store.files_in_manifest() or () for path in (store.part(file), store.blob(file)))
    lost = [file for file in there if file.exists() and file.resolve() not in linked_blobs]
    freed = sum(map(size_of, lost))
    try:
        for file in lost:
            file.unlink()
        store.clear()
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache()) from error
    return freed


def delete(name: str) -> int:
    """Delete a model from the hub's cache, complete or not, and return the bytes freed; of a GGUF model among others
    only its own files. Raises FileNotWrittenError.
    """
    check_download_name(name)
    folder = DownloadStore(name).folder
    files = hub_gguf_files(name)
    if len([path for path in (folder / "snapshots").rglob("*.gguf") if path not in files]) and SEPARATOR in name:
        return _delete_files(folder, files)
    freed = sum(size_of(file) for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    try:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache()) from error
    return freed


def _delete_files(folder: Path, files: Sequence[Path]) -> int:
    """Delete files of a snapshot with their blobs, unless another file has the same content; return the bytes freed."""
    blobs = {file.resolve() for file in files}
    try:
        for file in files:
            file.unlink()
        lost = [blob for blob in blobs - _linked_blobs(folder) if blob.exists()]
        freed = sum(map(size_of, lost))
        for blob in lost:
            blob.unlink()
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache()) from error
    return freed


def _linked_blobs(folder: Path) -> set[Path]:
    """Return the blobs that snapshots link to."""
    return {pointer.resolve() for pointer in (folder / "snapshots").rglob("*") if not pointer.is_dir()}
