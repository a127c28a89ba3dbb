"""Writing to a disk that may be full: files that take their place once they are whole, and folders for a while."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.errors import FileNotWrittenError
from resources.language import tr

DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What a system says of a disk that takes nothing more."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Where to write what is to become `path`, with its suffix: beside it, or at once to what is no file (a device).
    A full disk, or a kill, leaves what stood there before; who may read that may read this. Raises OSError."""
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not target.is_file():
        yield target
        return
    part = target.with_name(f".{os.urandom(8).hex()}{target.suffix}")
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone afterwards. Raises FileNotWrittenError where there is no room for one, or in it."""
    try:
        made = tempfile.TemporaryDirectory(prefix="decodescope-", ignore_cleanup_errors=True)
    except OSError as error:
        raise _no_space_error(error) from error
    with made as folder:
        try:
            yield Path(folder)
        except OSError as error:
            if error.errno in DISK_FULL_ERRORS:
                raise _no_space_error(error) from error
            raise


def _no_space_error(error: OSError) -> FileNotWrittenError:
    return FileNotWrittenError(
        tr("No temporary files can be written: {reason}.").format(reason=error.strerror or error),
        tr("Make room on the disk, or set TMPDIR to a folder with room."),
    )
