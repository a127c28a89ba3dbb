"""Files that stay mapped into memory while a model uses them.

Weights in a GGUF file, and float weights that are used as their safetensors files store them, are not copied: the
system reads pages of the file when they are first touched. If another program shortens such a file, a page that is no
longer there ends the process by a signal (SIGBUS on Linux and macOS), which cannot be turned into an exception. Files
are therefore checked before their pages are touched. Windows does not let a mapped file be shortened.
"""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from decodescope.core.errors import CorruptWeightsError
from decodescope.resources.language import tr


class _OpenFile(NamedTuple):
    path: Path
    descriptor: int
    size: int
    modified: int
    """Time of its last change, in nanoseconds."""


class MappedFiles:
    """Files that are open as long as this object lives, with their sizes and times.

    The open file is compared, not the one that the path names now: a file that is replaced by a rename or deleted keeps
    its pages for those that have it mapped.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open the files; those that cannot be opened are left out, because reading them reports that."""
        self._files: list[_OpenFile] = []
        if os.name == "nt":
            return
        for path in paths:
            with suppress(OSError, ValueError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                weakref.finalize(self, os.close, descriptor)
                about = os.fstat(descriptor)
                if stat.S_ISREG(about.st_mode):
                    self._files.append(_OpenFile(path, descriptor, about.st_size, about.st_mtime_ns))

    def check(self) -> None:
        """Raise CorruptWeightsError if a file was shortened, or written to, since it was opened. Takes microseconds."""
        for file in self._files:
            about = os.fstat(file.descriptor)
            if about.st_size < file.size:
                cause = tr("{file} was shortened to {now:,} of {before:,} bytes while its weights were in use.").format(
                    file=file.path.name, now=about.st_size, before=file.size
                )
            elif about.st_size != file.size or about.st_mtime_ns != file.modified:
                cause = tr("{file} was written to while its weights were in use.").format(file=file.path.name)
            else:
                continue
            raise CorruptWeightsError(
                cause, tr("Load the model again; if that fails, copy or download the file again.")
            )
