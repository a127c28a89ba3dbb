"""Write files atomically, and use cache and temporary folders, on disks that may be full."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from decodescope.core.errors import FileNotWrittenError
from decodescope.core.system.user_folders import folder_variable, user_cache
from decodescope.resources.language import tr

DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error codes of a full disk."""


def cache_folder() -> Path:
    """Return this program's folder in the user's cache, for results that can be computed again."""
    local = folder_variable("LOCALAPPDATA") if os.name == "nt" and not os.environ.get("XDG_CACHE_HOME") else None
    return (local or user_cache()) / "decodescope"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path to write the new content of `path` to, with the same suffix: a temporary file that replaces it at
    the end, or the path itself if it is not a regular file (a device). A full disk or a kill leaves the old content;
    permissions are preserved. Raises OSError.
    """
    target = Path(os.path.realpath(path))  # preserve symbolic links
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
    """Create a temporary folder that is deleted at the end. Raises FileNotWrittenError if there is no space."""
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
        tr("Free up space on the disk, or set TMPDIR to a folder with free space."),
    )
