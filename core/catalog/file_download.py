"""Download one file from the hub with progress, resume and retries, and verify the digests of downloaded files."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from core.catalog import hub_errors, hub_requests
from core.catalog.download_store import RESERVED_BYTES, DownloadStore, free_bytes
from core.catalog.hub_model import HubFile, is_digest
from core.catalog.hub_requests import check_name
from core.errors import HubError, NoNetworkError, TransferError
from core.models.catalog import hub_cache, locate
from core.models.model_files import size_of
from resources.language import tr

if TYPE_CHECKING:
    from httpx2 import Response

WINDOW_SECONDS = 5.0
"""Speed is that of the last so many seconds."""
_REPORT_INTERVAL = 0.1

DOWNLOADING, VERIFYING, WAITING, FINISHED = "downloading", "verifying", "waiting", "finished"


@dataclass(frozen=True, slots=True)
class Progress:
    """One moment of a download."""

    name: str
    """Of the model."""
    file: str
    """The one under way; empty when all are there."""
    done: int
    """Bytes that are there, of all files; what an earlier download has left counts."""
    total: int
    speed: float = 0.0
    """Bytes a second, of late; 0 while that is not known."""
    left: float | None = None
    """Seconds until the end at that speed, or until the hub may be asked again while waiting; None if unknown."""
    state: str = DOWNLOADING
    """downloading, verifying, waiting (the hub asked for that) or finished."""


class DownloadMeter:
    """Counts bytes and tells `listener` now and then, ten times a second at most."""

    def __init__(
        self,
        name: str,
        total: int,
        listener: Callable[[Progress], object] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._total, self._listener, self._clock = name, total, listener, clock
        self._file = ""
        self._done = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._last_report = float("-inf")

    def begin_file(self, file: str, existing_bytes: int) -> None:
        """From now on it is this file; so many of its bytes are there already."""
        self._file = file
        self._done += existing_bytes
        self.report(DOWNLOADING)

    def add(self, count: int) -> None:
        """So many bytes more; fewer, where a file begins anew."""
        now = self._clock()
        self._done += count
        self._recent.append((now, count))
        while self._recent and self._recent[0][0] < now - WINDOW_SECONDS:
            self._recent.popleft()
        if now - self._last_report >= _REPORT_INTERVAL:
            self.report(DOWNLOADING)

    def report(self, state: str, seconds_left: float | None = None) -> None:
        """Say how it stands, whenever it was said last."""
        self._last_report = self._clock()
        if self._listener is None:
            return
        speed = self._speed() if state == DOWNLOADING else 0.0
        if speed:
            seconds_left = (self._total - self._done) / speed
        file = "" if state == FINISHED else self._file
        self._listener(Progress(self._name, file, self._done, self._total, speed, seconds_left, state))

    def _speed(self) -> float:
        """Bytes a second; 0 until there is something to measure by."""
        took = self._last_report - self._recent[0][0] if self._recent else 0.0
        return max(0.0, sum(count for _, count in self._recent) / took) if took > _REPORT_INTERVAL else 0.0


RETRY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt, while not one byte comes; the count begins anew with every byte."""
_SPACE_CHECK_BYTES = 32 * 2**20
"""After so many, the room on the disk is looked at again."""
_CHUNK = 2**20


class DownloadContext(NamedTuple):
    """What a download's files have in common."""

    name: str
    commit: str
    store: DownloadStore
    meter: DownloadMeter
    stop: threading.Event


def fetch(file: HubFile, context: DownloadContext) -> None:
    """Have the file on the shelf, whole and checked; at once when it is there.

    Raises HubError and its subclasses, FileNotWrittenError; what came by then is kept.
    """
    context.meter.begin_file(file.path, context.store.bytes_present(file))
    if context.store.has_file(file):
        return
    part = context.store.part(file)
    try:
        _fill(part, file, context)
        context.meter.report(VERIFYING)
        _verify_digest(part, file, context.stop)
        part.replace(context.store.blob(file))
    except OSError as error:
        raise hub_errors.from_disk(error, hub_cache(), file.size - size_of(part)) from error


def _fill(part: Path, file: HubFile, context: DownloadContext) -> None:
    """Append to the part until it has the file's size."""
    if size_of(part) > file.size:
        part.unlink()
    part.touch()
    failures = 0
    while (there := size_of(part)) < file.size:
        if context.stop.is_set():
            raise hub_requests.download_stopped_error()
        try:
            hub_requests.retry_when_rate_limited(
                lambda: _request_rest(part, file, context), context.stop, lambda s: context.meter.report(WAITING, s)
            )
        except (NoNetworkError, _Unavailable) as error:
            failures = 0 if size_of(part) > there else failures + 1
            if failures > len(RETRY_DELAYS):
                raise _retries_exhausted_error(file, context, size_of(part), error) from error
            context.stop.wait(RETRY_DELAYS[max(0, failures - 1)])


class _Unavailable(HubError):
    """The hub has trouble of its own, or the connection ended early: worth another attempt."""


def _request_rest(part: Path, file: HubFile, context: DownloadContext) -> None:
    """One request; what comes is appended, or begins the part anew where the hub does not go on from the middle."""
    start = size_of(part)
    try:
        with (
            hub_requests.stream_file(context.name, context.commit, file.path, start) as answer,
            part.open("ab", buffering=0) as stream,
        ):
            if start and not _continues_at(answer, start):
                stream.truncate(0)
                context.meter.add(-start)
                start = 0
            _append(answer, stream.write, file, context, start)
    except HubError as error:
        if type(error) is HubError:  # an error of the hub's own, which may be over in a moment
            raise _Unavailable(error.cause, error.remedy) from error
        raise
    if size_of(part) < file.size:
        raise _Unavailable(tr("The connection ended early."))


def _continues_at(answer: Response, start: int) -> bool:
    """Whether the answer begins where it was asked to."""
    return answer.status_code == 206 and str(answer.headers.get("Content-Range", "")).startswith(f"bytes {start}-")


def _append(
    answer: Response, write: Callable[[bytes], object], file: HubFile, context: DownloadContext, received: int
) -> None:
    looked = received
    for chunk in answer.iter_bytes():
        received += len(chunk)
        if received > file.size:
            raise _mismatch_error(
                file, tr("more came than the {size:,} bytes that it should have").format(size=file.size)
            )
        write(chunk)
        context.meter.add(len(chunk))
        if context.stop.is_set():
            raise hub_requests.download_stopped_error()
        if received - looked > _SPACE_CHECK_BYTES:
            looked = received
            _check_free_space(file.size - received)


def _check_free_space(needed: int) -> None:
    if (free := free_bytes(hub_cache())) < min(needed, RESERVED_BYTES):
        raise hub_errors.disk_full(hub_cache(), needed, free)


def _verify_digest(part: Path, file: HubFile, stop: threading.Event) -> None:
    """That it is what the hub lists; a part that is not is of no use."""
    if digest_of(part, file.digest, stop) == file.digest:
        return
    part.unlink()
    raise _mismatch_error(file, tr("its digest is not the one that the hub lists"))


def digest_of(file: Path, expected: str, stop: threading.Event) -> str:
    """SHA-256 where `expected` is one, else git's SHA-1. Raises OSError, DownloadStoppedError."""
    if len(expected) == 64:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(b"blob %d\0" % size_of(file), usedforsecurity=False)
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            if stop.is_set():
                raise hub_requests.download_stopped_error()
    return digest.hexdigest()


def _mismatch_error(file: HubFile, reason: str) -> TransferError:
    return TransferError(
        tr("{file} did not come as the hub lists it: {reason}.").format(file=file.path, reason=reason),
        tr("Try again. If it stays so, the file on the hub is damaged, or something on the way changes it."),
    )


def _retries_exhausted_error(file: HubFile, context: DownloadContext, received: int, error: HubError) -> HubError:
    if isinstance(error, NoNetworkError) and not received:
        return error
    context.meter.report(DOWNLOADING)
    return TransferError(
        tr("The connection was cut again and again: {there:,} of {size:,} bytes of {file} are there.").format(
            there=received, size=file.size, file=file.path
        ),
        tr("Go on with it later: what is downloaded already is kept."),
        error.cause,
    )


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
