"""Tensors that live in a temporary file mapped into memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs
import torch

from core.errors import CacheError
from resources.language import tr


def temporary_folder(requested: str) -> Path:
    """The folder asked for, or the user's cache folder (the system's temporary one is often kept in memory).

    Raises CacheError when it cannot be used.
    """
    folder = Path(requested).expanduser() if requested else platformdirs.user_cache_path("decodescope") / "offloaded"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise CacheError(
            tr("The folder {folder} cannot be written to ({reason}).").format(folder=folder, reason=error.strerror),
            tr("Choose another folder for the file."),
        ) from error


class MappedTensor:
    """A tensor of `shape` in a file of its own, which is gone when nothing refers to the tensor any more.

    Raises CacheError when the disk has no room: the space is taken at once, for a full disk would otherwise end the
    whole program at some later write.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, folder: Path) -> None:
        numbers = 1
        for side in shape:
            numbers *= side
        size = numbers * torch.empty((), dtype=dtype).element_size()
        handle, name = tempfile.mkstemp(prefix="decodescope-", suffix=".cache", dir=folder)
        self._path = Path(name)
        try:
            _reserve(handle, size, folder)
            self.tensor = torch.from_file(name, shared=True, size=numbers, dtype=dtype).view(*shape)
        except BaseException:
            self.remove()
            raise
        finally:
            os.close(handle)
        # Where the system allows it the name goes at once: the space is then freed however the program ends.
        if os.name == "posix":
            self.remove()

    def remove(self) -> None:
        """Delete the file's name."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def __del__(self) -> None:
        if hasattr(self, "tensor"):
            del self.tensor
        self.remove()


def _reserve(handle: int, size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    try:
        if size > free:
            raise OSError(tr("no space left"))
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, max(size, 1))
        else:
            os.truncate(handle, size)
    except OSError as error:
        raise CacheError(
            tr("The cache needs {size:,.1f} MB more on the disk of {folder}, where {free:,.1f} MB are free.").format(
                size=size / 1e6, folder=folder, free=free / 1e6
            ),
            tr("Free some space, choose another folder, or write fewer tokens."),
        ) from error
