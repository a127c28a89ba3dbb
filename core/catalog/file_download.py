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

from decodescope.core.catalog import hub_errors, hub_requests
from decodescope.core.catalog.download_store import RESERVED_BYTES, DownloadStore, free_bytes
from decodescope.core.catalog.hub_model import HubFile, is_digest
from decodescope.core.catalog.hub_requests import check_download_name
from decodescope.core.errors import HubError, NoNetworkError, TransferError
from decodescope.core.models.catalog import cached_model, hub_cache, hub_gguf_files, locate
from decodescope.core.models.gguf.file_names import SEPARATOR, split_name
from decodescope.core.models.model_files import size_of
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from httpx2 import Response

WINDOW_SECONDS = 5.0
"""Window of the speed average, in seconds."""
_REPORT_INTERVAL = 0.1

DOWNLOADING, VERIFYING, WAITING, FINISHED = "downloading", "verifying", "waiting", "finished"


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """The progress of a download at one moment."""

    name: str
    """Name of the model."""
    file: str
    """The current file; empty when all files are complete."""
    done: int
    """Bytes present in all files, including those from an earlier download."""
    total: int
    speed: float = 0.0
    """Recent speed in bytes per second; 0 while unknown."""
    left: float | None = None
    """Seconds left at that speed, or until the next request is allowed while waiting; None if unknown."""
    state: str = DOWNLOADING
    """downloading, verifying, waiting (rate-limited by the hub) or finished."""


class DownloadMeter:
    """Counts bytes and reports progress to `listener`, at most ten times per second."""

    def __init__(
        self,
        name: str,
        total: int,
        listener: Callable[[DownloadProgress], object] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._total, self._listener, self._clock = name, total, listener, clock
        self._file = ""
        self._done = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._last_report = float("-inf")

    def begin_file(self, file: str, existing_bytes: int) -> None:
        """Start a new file, of which some bytes may already be present."""
        self._file = file
        self._done += existing_bytes
        self.report(DOWNLOADING)

    def add(self, count: int) -> None:
        """Add `count` bytes; negative when a file restarts."""
        now = self._clock()
        self._done += count
        self._recent.append((now, count))
        while self._recent and self._recent[0][0] < now - WINDOW_SECONDS:
            self._recent.popleft()
        if now - self._last_report >= _REPORT_INTERVAL:
            self.report(DOWNLOADING)

    def report(self, state: str, seconds_left: float | None = None) -> None:
        """Report the state immediately, regardless of the last report."""
        self._last_report = self._clock()
        if self._listener is None:
            return
        speed = self._speed() if state == DOWNLOADING else 0.0
        if speed:
            seconds_left = (self._total - self._done) / speed
        file = "" if state == FINISHED else self._file
        self._listener(DownloadProgress(self._name, file, self._done, self._total, speed, seconds_left, state))

    def _speed(self) -> float:
        """Return the speed in bytes per second, or 0 until it can be measured."""
        took = self._last_report - self._recent[0][0] if self._recent else 0.0
        return max(0.0, sum(count for _, count in self._recent) / took) if took > _REPORT_INTERVAL else 0.0


RETRY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each retry while no data arrives; every received byte resets the count."""
_SPACE_CHECK_BYTES = 32 * 2**20
"""Bytes after which the free disk space is checked again."""
_CHUNK = 2**20


class DownloadContext(NamedTuple):
    """Shared state of the files of one download."""

    name: str
    commit: str
    store: DownloadStore
    meter: DownloadMeter
    stop: threading.Event


def fetch(file: HubFile, context: DownloadContext) -> None:
    """Download and verify one file; return at once if it is already present.

    Raises HubError and its subclasses, FileNotWrittenError; the bytes received so far are kept.
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
    """Append to the partial file until it has its full size."""
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
    """The hub failed or the connection ended early: worth a retry."""


def _request_rest(part: Path, file: HubFile, context: DownloadContext) -> None:
    """Send one request and append the response, or restart the file if the hub ignores the range."""
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
        if type(error) is HubError:  # an error of the hub itself, which may be temporary
            raise _Unavailable(error.cause, error.remedy) from error
        raise
    if size_of(part) < file.size:
        raise _Unavailable(tr("The connection was closed early."))


def _continues_at(answer: Response, start: int) -> bool:
    """Return whether the response starts at the requested offset."""
    return answer.status_code == 206 and str(answer.headers.get("Content-Range", "")).startswith(f"bytes {start}-")


def _append(
    answer: Response, write: Callable[[bytes], object], file: HubFile, context: DownloadContext, received: int
) -> None:
    looked = received
    for chunk in answer.iter_bytes():
        received += len(chunk)
        if received > file.size:
            raise _mismatch_error(file, tr("more than the expected {size:,} bytes arrived").format(size=file.size))
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
    """Compare the digest with the one the hub lists; delete the file if it differs."""
    if digest_of(part, file.digest, stop) == file.digest:
        return
    part.unlink()
    raise _mismatch_error(file, tr("its digest differs from the one listed by the hub"))


def digest_of(file: Path, expected: str, stop: threading.Event) -> str:
    """Return the SHA-256 if `expected` is one, else git's SHA-1. Raises OSError, DownloadStoppedError."""
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
        tr("The downloaded {file} does not match the hub's listing: {reason}.").format(file=file.path, reason=reason),
        tr("Try again. If this happens again, the file on the hub is damaged or is changed in transit."),
    )


def _retries_exhausted_error(file: HubFile, context: DownloadContext, received: int, error: HubError) -> HubError:
    if isinstance(error, NoNetworkError) and not received:
        return error
    context.meter.report(DOWNLOADING)
    return TransferError(
        tr("The connection was dropped repeatedly: {there:,} of {size:,} bytes of {file} are downloaded.").format(
            there=received, size=file.size, file=file.path
        ),
        tr("Resume later; the downloaded part is kept."),
        error.cause,
    )


def verify(
    name: str, progress: Callable[[DownloadProgress], object] | None = None, *, stop: threading.Event | None = None
) -> tuple[str, ...]:
    """Return the paths of damaged files; `download(name, again=…)` downloads them again.

    The cache names each file by its digest, so the hub is not needed. Files without that name (some Windows systems
    have no links) are skipped. Raises ModelNotFoundError, NotOnHubError, DownloadStoppedError.
    """
    check_download_name(name)
    files = list(_gguf_files(name) if SEPARATOR in name else _snapshot_files(locate(name)))
    meter = DownloadMeter(name, sum(size_of(blob) for _, blob in files), progress)
    damaged = []
    for path, blob in files:
        meter.report(VERIFYING)
        if not _is_intact(blob, stop or threading.Event()):
            damaged.append(path)
        meter.begin_file(path, size_of(blob))
    meter.report(FINISHED)
    return tuple(damaged)


def _gguf_files(name: str) -> Iterator[tuple[str, Path]]:
    """Yield the repository path and the blob of each file of a GGUF model. Raises ModelNotFoundError."""
    files = hub_gguf_files(name)
    cached = cached_model(split_name(name)[0])
    snapshot = cached.path if files and cached is not None else locate(name)
    for file in files:
        if is_digest(file.resolve().name):
            yield file.relative_to(snapshot).as_posix(), file.resolve()


def _snapshot_files(snapshot: Path) -> Iterator[tuple[str, Path]]:
    """Yield the repository path and the blob of each file, including broken links."""
    for pointer in sorted(snapshot.rglob("*")):
        blob = pointer.resolve()
        if not pointer.is_dir() and is_digest(blob.name):
            yield pointer.relative_to(snapshot).as_posix(), blob


def _is_intact(blob: Path, stop: threading.Event) -> bool:
    try:
        return digest_of(blob, blob.name, stop) == blob.name
    except OSError:
        return False
