"""Whether a downloaded model is what the hub had: every file's digest, read from this disk alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from core.catalog.download_progress import FINISHED, VERIFYING, DownloadMeter, Progress
from core.catalog.file_download import digest_of
from core.catalog.hub_model import is_digest
from core.catalog.hub_requests import check_name
from core.models.catalog import locate
from core.models.model_files import size_of


def verify(
    name: str, progress: Callable[[Progress], object] | None = None, *, stop: threading.Event | None = None
) -> tuple[str, ...]:
    """Files of the model that are damaged, by their paths; `download(name, anew=…)` fetches them again.

    The cache calls a file by its digest, so nothing is asked of the hub. Where links may not be made (some Windows)
    files have lost that name, and are passed over. Raises ModelNotFoundError, NotOnHubError, DownloadStoppedError.
    """
    check_name(name)
    files = list(_snapshot_files(locate(name)))
    meter = DownloadMeter(name, sum(size_of(blob) for _, blob in files), progress)
    damaged = []
    for path, blob in files:
        meter.report(VERIFYING)
        if not _is_intact(blob, stop or threading.Event()):
            damaged.append(path)
        meter.begin_file(path, size_of(blob))
    meter.report(FINISHED)
    return tuple(damaged)


def _snapshot_files(snapshot: Path) -> Iterator[tuple[str, Path]]:
    """Path in the repository, and where its bytes are; a link to nowhere too."""
    for pointer in sorted(snapshot.rglob("*")):
        blob = pointer.resolve()
        if not pointer.is_dir() and is_digest(blob.name):
            yield pointer.relative_to(snapshot).as_posix(), blob


def _is_intact(blob: Path, stop: threading.Event) -> bool:
    try:
        return digest_of(blob, blob.name, stop) == blob.name
    except OSError:
        return False
