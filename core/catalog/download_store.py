"""Where a downloaded model lies: the hub library's own cache, laid out as that lays it out, so that it and everything
else on this machine find the model there.

    models--owner--name/blobs/DIGEST                 a file's bytes; DIGEST.incomplete while they are coming
    models--owner--name/snapshots/COMMIT/config.json links to those
    models--owner--name/refs/main                    COMMIT
    models--owner--name/decodescope.json              a download under way; other programs look past it
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
"""Where the note of a download is read: under the current and the former name."""
RESERVED_BYTES = 64 * 2**20
"""That a download leaves free on the disk."""


class DownloadStore:
    """The place of one model in the cache."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = hub_cache() / f"models--{name.replace('/', '--')}"
        self._blobs = self.folder / "blobs"

    def snapshot(self, commit: str) -> Path:
        """The folder that is loaded from."""
        return self.folder / "snapshots" / commit

    def blob(self, file: HubFile) -> Path:
        """Its bytes once they are whole."""
        return self._blobs / file.digest

    def part(self, file: HubFile) -> Path:
        """Its bytes while they are coming."""
        return self._blobs / f"{file.digest}.incomplete"

    def has_file(self, file: HubFile) -> bool:
        """Whether it is there, as long as it should be."""
        return size_of(self.blob(file)) == file.size and self.blob(file).is_file()

    def bytes_present(self, file: HubFile) -> int:
        """Bytes of it that are there."""
        return file.size if self.has_file(file) else min(size_of(self.part(file)), file.size)

    def is_complete(self, model: HubModel) -> bool:
        """Whether everything a download would take lies in the snapshot."""
        snapshot = self.snapshot(model.commit)
        return all(
            size_of(snapshot / file.path) == file.size and (snapshot / file.path).is_file() for file in model.files
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else downloads this model meanwhile. Raises HubError, FileNotWrittenError."""
        from huggingface_hub.utils import WeakFileLock

        lock = hub_cache() / ".locks" / self.folder.name / "decodescope.lock"
        with self._translate_disk_errors():
            lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            waiting = WeakFileLock(lock, timeout=0.1)
            waiting.__enter__()
        except TimeoutError:
            raise HubError(
                tr("Another window is downloading “{name}” already.").format(name=self.name),
                tr("Wait for it, or stop it there."),
            ) from None
        try:
            yield
        finally:
            waiting.__exit__(None, None, None)

    def begin(self, model: HubModel) -> None:
        """Note what is to come, so that it can be gone on with. Raises FileNotWrittenError, DiskFullError."""
        self.check_free_space(model)
        with self._translate_disk_errors():
            self._blobs.mkdir(parents=True, exist_ok=True)
            (self.folder / "snapshots").mkdir(exist_ok=True)
            kept = {"name": model.name, "commit": model.commit, "files": [asdict(file) for file in model.files]}
            (self.folder / MANIFEST).write_text(json.dumps(kept, indent=1), encoding="utf-8")

    def check_free_space(self, model: HubModel) -> None:
        """That the disk has room for what is still to come. Raises DiskFullError."""
        wanted = sum(file.size - self.bytes_present(file) for file in model.files)
        free = free_bytes(self.folder)
        if wanted and wanted + RESERVED_BYTES > free:
            raise hub_errors.disk_full(hub_cache(), wanted, free)

    def finish(self, model: HubModel) -> Path:
        """Lay the snapshot out of whole files, and forget what else was begun. Raises FileNotWrittenError."""
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
        """Forget the download: what is not whole goes, and the note of it. Raises OSError."""
        for part in self._blobs.glob("*.incomplete"):
            part.unlink(missing_ok=True)
        for name in _MANIFESTS:
            (self.folder / name).unlink(missing_ok=True)

    def files_in_manifest(self) -> tuple[HubFile, ...] | None:
        """The files of the download under way; None when there is none, or its note cannot be read."""
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
    """A file as it was noted; None for anything else."""
    match entry:
        case {"path": str(path), "size": int(size), "digest": str(digest)} if is_digest(digest):
            return HubFile(path, size, digest)
    return None


def free_bytes(folder: Path) -> int:
    """Of the disk that a folder is on, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 2**63


def _link_blob(blob: Path, pointer: Path) -> None:
    """As the hub's library does: a link that holds wherever the cache is moved, or the file itself where links may
    not be made."""
    pointer.parent.mkdir(parents=True, exist_ok=True)
    if pointer.exists() and os.path.samefile(pointer, blob):
        return
    pointer.unlink(missing_ok=True)
    try:
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except OSError:
        shutil.copyfile(blob, pointer)


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
