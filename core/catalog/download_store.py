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
from dataclasses import asdict
from pathlib import Path

from core.catalog import hub_errors
from core.catalog.hub_model import HubFile, HubModel, is_digest
from core.errors import HubError, ModelFileError
from core.former_name import FORMER_NAME, NAME
from core.models.hub import hub_cache
from core.models.json_types import Json
from core.models.model_files import read_json, size_of
from resources.language import tr

NOTE = f"{NAME}.json"
_NOTES = (NOTE, f"{FORMER_NAME}.json")
"""Where the note of a download is read: under the current and the former name."""
SPARE_BYTES = 64 * 2**20
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

    def has(self, file: HubFile) -> bool:
        """Whether it is there, as long as it should be."""
        return size_of(self.blob(file)) == file.size and self.blob(file).is_file()

    def held(self, file: HubFile) -> int:
        """Bytes of it that are there."""
        return file.size if self.has(file) else min(size_of(self.part(file)), file.size)

    def is_whole(self, model: HubModel) -> bool:
        """Whether everything a download would take lies in the snapshot."""
        place = self.snapshot(model.commit)
        return all(size_of(place / file.path) == file.size and (place / file.path).is_file() for file in model.files)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Nobody else downloads this model meanwhile. Raises HubError, FileNotWrittenError."""
        from huggingface_hub.utils import WeakFileLock

        lock = hub_cache() / ".locks" / self.folder.name / "decodescope.lock"
        with self._written():
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
        self.check_room(model)
        with self._written():
            self._blobs.mkdir(parents=True, exist_ok=True)
            (self.folder / "snapshots").mkdir(exist_ok=True)
            kept = {"name": model.name, "commit": model.commit, "files": [asdict(file) for file in model.files]}
            (self.folder / NOTE).write_text(json.dumps(kept, indent=1), encoding="utf-8")

    def check_room(self, model: HubModel) -> None:
        """That the disk has room for what is still to come. Raises DiskFullError."""
        wanted = sum(file.size - self.held(file) for file in model.files)
        free = free_bytes(self.folder)
        if wanted and wanted + SPARE_BYTES > free:
            raise hub_errors.disk_full(hub_cache(), wanted, free)

    def finish(self, model: HubModel) -> Path:
        """Lay the snapshot out of whole files, and forget what else was begun. Raises FileNotWrittenError."""
        place = self.snapshot(model.commit)
        with self._written():
            for file in model.files:
                _link(self.blob(file), place / file.path)
            main = self.folder / "refs" / "main"
            main.parent.mkdir(exist_ok=True)
            main.write_text(model.commit, encoding="ascii")
            self.clear()
        return place

    def clear(self) -> None:
        """Forget the download: what is not whole goes, and the note of it. Raises OSError."""
        for part in self._blobs.glob("*.incomplete"):
            part.unlink(missing_ok=True)
        for name in _NOTES:
            (self.folder / name).unlink(missing_ok=True)

    def noted(self) -> tuple[HubFile, ...] | None:
        """The files of the download under way; None when there is none, or its note cannot be read."""
        try:
            name = next((name for name in _NOTES if (self.folder / name).exists()), NOTE)
            listed = read_json(self.folder / name).get("files")
        except (FileNotFoundError, ModelFileError):
            return None
        files = [_noted(file) for file in listed] if isinstance(listed, list) else [None]
        return None if None in files else tuple(file for file in files if file is not None)

    @contextmanager
    def _written(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise hub_errors.from_disk(error, hub_cache()) from error


def _noted(kept: Json) -> HubFile | None:
    """A file as it was noted; None for anything else."""
    match kept:
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


def _link(blob: Path, pointer: Path) -> None:
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
