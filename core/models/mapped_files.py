"""Files of weights that stay open, and mapped into memory, while a model uses them.

Weights in a GGUF file, and float weights that are used as their safetensors files store them, are not copied: the
system reads pages of the file when they are first touched, and shares them with other processes. If another program
shortens such a file, a read of a page that is gone raises SIGBUS, which ends the process and cannot be turned into an
exception. Therefore:

- headers, and weights that are converted while they are loaded, are read, not mapped;
- pages that weights are used from are mapped only under the guard of the native library, which puts zeros in the place
  of lost pages (`core/native/source/page_guard.h`), or on Windows, which does not let a mapped file be shortened;
- without the guard, the weights are copied into memory, unless they are larger than the free memory;
- before and after each pass, the open files are compared with what they were, and the guard is asked: a result that
  was computed from other weights is never emitted.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path

from decodescope.core.errors import CorruptWeightsError
from decodescope.core.native import native_library
from decodescope.core.native.native_library import PageGuard
from decodescope.core.system.main_memory import free_memory
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_PORTION = 2**24
"""Bytes that are read at a time where the system cannot read into a buffer."""


class MappedFile:
    """A regular file that is open as long as this object lives, with its size and its time of change.

    The open file is read, not the one that the path names now: a file that is replaced by a rename or deleted keeps its
    content for those that have it open. Raises OSError or ValueError if it cannot be opened, or is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, _OPEN_FLAGS)
        weakref.finalize(self, os.close, self._descriptor)
        about = os.fstat(self._descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(tr("it is not a regular file"))
        self.size, self._modified = about.st_size, about.st_mtime_ns
        self._map: _FileMap | None = None
        self._cause = ""
        """Why the weights are not what they were; empty as long as they are."""
        self._lock = threading.Lock()

    def read(self, start: int, buffer: memoryview) -> None:
        """Fill a buffer with the bytes from `start` on. Raises CorruptWeightsError if the file is too short now."""
        done = 0
        while done < len(buffer):
            count = self._read_some(start + done, buffer[done:])
            if not count:
                self.check()
                raise self._changed_error(tr("{file} cannot be read to its end.").format(file=self.path.name))
            done += count

    def _read_some(self, start: int, buffer: memoryview) -> int:
        try:
            if hasattr(os, "preadv"):
                return os.preadv(self._descriptor, [buffer], start)
            with self._lock:
                os.lseek(self._descriptor, start, os.SEEK_SET)
                found = os.read(self._descriptor, min(len(buffer), _PORTION))
                buffer[: len(found)] = found
                return len(found)
        except OSError as error:  # a disk or a connection that fails
            raise self._changed_error(
                tr("{file} cannot be read: {reason}.").format(file=self.path.name, reason=system_error_reason(error))
            ) from error

    def map(self, start: int, count: int) -> memoryview:
        """Return a view of mapped bytes, which keeps them mapped. Raises CorruptWeightsError if the file changed."""
        self.check()
        with self._lock:
            if self._map is None:
                self._map = _map_file(self._descriptor, self.size)
        return memoryview(self._map)[start : start + count]

    def check(self) -> None:
        """Raise CorruptWeightsError if the file was shortened or written to since it was opened. Takes microseconds."""
        if not self._cause:
            self._cause = self._find_change()
        if self._cause:
            raise self._changed_error(self._cause)

    def _find_change(self) -> str:
        about = os.fstat(self._descriptor)
        if about.st_size < self.size:
            return tr("{file} was shortened to {now:,} of {before:,} bytes while its weights were in use.").format(
                file=self.path.name, now=about.st_size, before=self.size
            )
        if about.st_size != self.size or about.st_mtime_ns != self._modified:
            return tr("{file} was written to while its weights were in use.").format(file=self.path.name)
        if self._map is not None and self._map.has_lost_pages():
            return tr("Parts of {file} could not be read while its weights were in use.").format(file=self.path.name)
        return ""

    def _changed_error(self, cause: str) -> CorruptWeightsError:
        return CorruptWeightsError(cause, tr("Load the model again; if that fails, copy or download the file again."))


class _FileMap(mmap.mmap):
    """A private mapping of a whole file under the guard of lost pages, if there is one."""

    guard: PageGuard | None = None
    guarded = 0

    def has_lost_pages(self) -> bool:
        """Return whether pages were lost and read as zeros."""
        return self.guard is not None and self.guard.has_lost_pages(self.guarded)

    def __del__(self) -> None:
        """End the guard; the base class unmaps the pages afterwards."""
        if self.guard is not None:
            self.guard.release(self.guarded)


def _map_file(descriptor: int, size: int) -> _FileMap:
    made = _FileMap(descriptor, size, access=mmap.ACCESS_COPY)
    guard = _page_guard()
    if guard is not None:
        anchor = ctypes.c_char.from_buffer(made)
        length = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        made.guarded = guard.guard(ctypes.addressof(anchor), length)
        made.guard = guard if made.guarded else None
    return made


def _page_guard() -> PageGuard | None:
    library = native_library.library()
    return library.page_guard if library is not None else None


class MappedFiles:
    """The files of a model that stay open while its weights are in use."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open the files. Raises OSError or ValueError, with the path as `filename`, for one that cannot be opened."""
        self.files: dict[Path, MappedFile] = {}
        for path in paths:
            try:
                self.files[path] = MappedFile(path)
            except OSError as error:
                error.filename = path
                raise
        self._copies: weakref.WeakValueDictionary[tuple[Path, int, int], mmap.mmap] = weakref.WeakValueDictionary()
        self._is_mapped: bool | None = None

    def __deepcopy__(self, memo: object) -> MappedFiles:
        return self  # open files are shared

    @property
    def is_mapped(self) -> bool:
        """Whether weights are used from pages of the files, decided at the first question; else from copies."""
        if self._is_mapped is None:
            total = sum(file.size for file in self.files.values())
            self._is_mapped = os.name == "nt" or _page_guard() is not None or total > free_memory()
        return self._is_mapped

    def view(self, path: Path, start: int, count: int) -> memoryview:
        """Return bytes of a file: a view of its pages, or a copy, which is the same as long as one is in use.

        Raises CorruptWeightsError if the file has changed.
        """
        if self.is_mapped:
            return self.files[path].map(start, count)
        found = self._copies.get((path, start, count))
        if found is None:
            found = self._copies[path, start, count] = map_pages(count)
            self.read(path, start, memoryview(found))
        return memoryview(found)[:count]

    def read(self, path: Path, start: int, buffer: memoryview) -> None:
        """Fill a buffer with bytes of a file. Raises CorruptWeightsError if it has changed."""
        self.files[path].read(start, buffer[:])
        self.files[path].check()

    def check(self) -> None:
        """Raise CorruptWeightsError if a file was shortened, or written to, since it was opened. Takes microseconds."""
        for file in self.files.values():
            file.check()


def map_pages(size: int) -> mmap.mmap:
    """Return private anonymous memory, whose pages go back to the system when it is freed."""
    private = getattr(mmap, "MAP_PRIVATE", None)
    size = max(1, size)
    return mmap.mmap(-1, size) if private is None else mmap.mmap(-1, size, private | mmap.MAP_ANONYMOUS)
