"""One file from the hub: on from where an earlier attempt ended, through cut connections, until its digest is right."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from core.catalog import hub_errors, hub_requests
from core.catalog.download_progress import DOWNLOADING, VERIFYING, WAITING, DownloadMeter
from core.catalog.download_store import SPARE_BYTES, DownloadStore, free_bytes
from core.catalog.hub_model import HubFile
from core.errors import HubError, NoNetworkError, TransferError
from core.models.hub import hub_cache
from core.models.model_files import size_of
from resources.language import tr

if TYPE_CHECKING:
    from httpx2 import Response

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt, while not one byte comes; the count begins anew with every byte."""
_LOOK_BYTES = 32 * 2**20
"""After so many, the room on the disk is looked at again."""
_CHUNK = 2**20


class DownloadContext(NamedTuple):
    """What a download's files have in common."""

    name: str
    commit: str
    shelf: DownloadStore
    meter: DownloadMeter
    stop: threading.Event


def fetch(file: HubFile, way: DownloadContext) -> None:
    """Have the file on the shelf, whole and checked; at once when it is there.

    Raises HubError and its subclasses, FileNotWrittenError; what came by then is kept.
    """
    way.meter.begin(file.path, way.shelf.held(file))
    if way.shelf.has(file):
        return
    part = way.shelf.part(file)
    try:
        _fill(part, file, way)
        way.meter.tell(VERIFYING)
        _check(part, file, way.stop)
        part.replace(way.shelf.blob(file))
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache(), file.size - size_of(part)) from error


def _fill(part: Path, file: HubFile, way: DownloadContext) -> None:
    """Append to the part until it has the file's size."""
    if size_of(part) > file.size:
        part.unlink()
    part.touch()
    failures = 0
    while (there := size_of(part)) < file.size:
        if way.stop.is_set():
            raise hub_requests.stopped()
        try:
            hub_requests.patiently(lambda: _read_on(part, file, way), way.stop, lambda s: way.meter.tell(WAITING, s))
        except (NoNetworkError, _Unavailable) as error:
            failures = 0 if size_of(part) > there else failures + 1
            if failures > len(PAUSES):
                raise _gave_up(file, way, size_of(part), error) from error
            way.stop.wait(PAUSES[max(0, failures - 1)])


class _Unavailable(HubError):
    """The hub has trouble of its own, or the connection ended early: worth another attempt."""


def _read_on(part: Path, file: HubFile, way: DownloadContext) -> None:
    """One request; what comes is appended, or begins the part anew where the hub does not go on from the middle."""
    start = size_of(part)
    try:
        with (
            hub_requests.file(way.name, way.commit, file.path, start) as answer,
            part.open("ab", buffering=0) as stream,
        ):
            if start and not _goes_on(answer, start):
                stream.truncate(0)
                way.meter.add(-start)
                start = 0
            _append(answer, stream.write, file, way, start)
    except HubError as error:
        if type(error) is HubError:  # an error of the hub's own, which may be over in a moment
            raise _Unavailable(error.cause, error.remedy) from error
        raise
    if size_of(part) < file.size:
        raise _Unavailable(tr("The connection ended early."))


def _goes_on(answer: Response, start: int) -> bool:
    """Whether the answer begins where it was asked to."""
    return answer.status_code == 206 and str(answer.headers.get("Content-Range", "")).startswith(f"bytes {start}-")


def _append(
    answer: Response, write: Callable[[bytes], object], file: HubFile, way: DownloadContext, there: int
) -> None:
    looked = there
    for chunk in answer.iter_bytes():
        there += len(chunk)
        if there > file.size:
            raise _wrong(file, tr("more came than the {size:,} bytes that it should have").format(size=file.size))
        write(chunk)
        way.meter.add(len(chunk))
        if way.stop.is_set():
            raise hub_requests.stopped()
        if there - looked > _LOOK_BYTES:
            looked = there
            _look_for_room(file.size - there)


def _look_for_room(wanted: int) -> None:
    if (free := free_bytes(hub_cache())) < min(wanted, SPARE_BYTES):
        raise hub_errors.disk_full(hub_cache(), wanted, free)


def _check(part: Path, file: HubFile, stop: threading.Event) -> None:
    """That it is what the hub lists; a part that is not is of no use."""
    if digest_of(part, file.digest, stop) == file.digest:
        return
    part.unlink()
    raise _wrong(file, tr("its digest is not the one that the hub lists"))


def digest_of(file: Path, like: str, stop: threading.Event) -> str:
    """SHA-256 where `like` is one, else git's SHA-1. Raises OSError, DownloadStoppedError."""
    if len(like) == 64:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(b"blob %d\0" % size_of(file), usedforsecurity=False)
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            if stop.is_set():
                raise hub_requests.stopped()
    return digest.hexdigest()


def _wrong(file: HubFile, reason: str) -> TransferError:
    return TransferError(
        tr("{file} did not come as the hub lists it: {reason}.").format(file=file.path, reason=reason),
        tr("Try again. If it stays so, the file on the hub is damaged, or something on the way changes it."),
    )


def _gave_up(file: HubFile, way: DownloadContext, there: int, error: HubError) -> HubError:
    if isinstance(error, NoNetworkError) and not there:
        return error
    way.meter.tell(DOWNLOADING)
    return TransferError(
        tr("The connection was cut again and again: {there:,} of {size:,} bytes of {file} are there.").format(
            there=there, size=file.size, file=file.path
        ),
        tr("Go on with it later: what is downloaded already is kept."),
        error.cause,
    )
