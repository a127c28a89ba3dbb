"""Remove the symbol tables of the packed libraries, which only debuggers read: an eighth of the program's folder."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from installer_parts.contents import is_elf
from installer_parts.tools import InstallerError, require, run

_LOAD = 1
_SYMBOLS = 2
"""Types of a segment that is loaded, and of a section with symbols."""


def strip_folder(folder: Path) -> int:
    """Strip the libraries in a folder and return how many bytes that saved. Raises InstallerError.

    A library whose segments lie elsewhere afterwards stays as it was: the loader refuses what `strip` makes of some
    files that wheels have patched. Programs are left alone, because PyInstaller keeps its archive in them.
    """
    saved = 0
    strip = require("strip", "binutils")
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or not is_library(path) or not has_symbols(path):
            continue
        partial = path.with_name(f"{path.name}.partial")
        try:
            run([strip, "--strip-unneeded", "-o", partial, path], quiet=True)
            if is_loadable(partial):
                saved += path.stat().st_size - partial.stat().st_size
                partial.chmod(path.stat().st_mode)
                os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    return saved


def is_library(path: Path) -> bool:
    """Return whether a file is a shared library for 64-bit Linux."""
    return (path.suffix == ".so" or ".so." in path.name) and is_elf(path)


def has_symbols(path: Path) -> bool:
    """Return whether an ELF file has a table of symbols that the loader does not need. Raises InstallerError."""
    return any(kind == _SYMBOLS for kind, *_ in _table(path, 40, 58, "<4xI56x"))


def is_loadable(path: Path) -> bool:
    """Return whether the loaded segments of an ELF file lie in it as in memory, modulo their alignment. Raises
    InstallerError.
    """
    segments = _table(path, 32, 54, "<I4xQQ24xQ")
    return all((address - offset) % max(align, 1) == 0 for kind, offset, address, align in segments if kind == _LOAD)


def _table(path: Path, start: int, shape: int, entry: str) -> list[tuple[int, ...]]:
    """Return the entries of one of an ELF file's two tables; `start` and `shape` are where its header names them."""
    with path.open("rb") as file:
        header = file.read(64)
        try:
            (position,), (size, count) = (
                struct.unpack_from("<Q", header, start),
                struct.unpack_from("<HH", header, shape),
            )
            file.seek(position)
            return [struct.unpack(entry, file.read(size)) for _ in range(count)]
        except struct.error as error:
            raise InstallerError(f"{path} is not a whole ELF file ({error}). Build the folder again.") from error
