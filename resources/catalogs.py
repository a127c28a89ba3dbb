"""Compile the translation catalogues: a `.mo` file beside each `.po` file, which is the form that gettext reads.

The compiled files are build products and are not in the repository. The wheel build, `packaging/bootstrap.py` and the
test suite compile them; a program started from a checkout compiles what is missing, if Babel is installed.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope import resources

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

FOLDER = resources.path("translations")
_DATE = datetime(2000, 1, 1, tzinfo=UTC)
"""The date in every compiled catalogue, so that compiling the same sentences again gives the same bytes."""


def compiled_catalogs(code: str) -> list[Path]:
    """Return the compiled catalogues of a language. Compile outdated ones first if Babel is installed and the folder is
    writable; otherwise use those that exist.
    """
    with suppress(ImportError, OSError, ValueError):
        compile_catalogs(FOLDER / code)
    return sorted((FOLDER / code).glob("*.mo"))


def compile_catalogs(folder: Path = FOLDER) -> list[Path]:
    """Compile the outdated catalogues in `folder` and below; return the files written.

    Raises ImportError without Babel, OSError if a file cannot be written, ValueError for an invalid .po file.
    """
    return [_compile(source) for source in outdated_catalogs(folder)]


def recompile(compiled: Path) -> bool:
    """Compile one catalogue again, whatever its age; return whether that was possible."""
    try:
        _compile(compiled.with_suffix(".po"))
    except (ImportError, OSError, ValueError):
        return False
    return True


def outdated_catalogs(folder: Path = FOLDER) -> list[Path]:
    """Return the .po files in `folder` and below whose .mo file is missing or older."""
    return [source for source in sorted(folder.rglob("*.po")) if _is_outdated(source)]


def as_mo(catalogue: Catalog) -> bytes:
    """Return a catalogue in compiled form, without plurals that lack a form: the English rule chooses theirs."""
    from babel.messages.mofile import write_mo

    file = io.BytesIO()
    catalogue.creation_date = _DATE
    for message in list(catalogue):
        if isinstance(message.id, tuple) and not all(message.string or ("",)):
            catalogue.delete(message.id, message.context)
    write_mo(file, catalogue)
    return file.getvalue()


def _is_outdated(source: Path) -> bool:
    try:
        return source.with_suffix(".mo").stat().st_mtime_ns < source.stat().st_mtime_ns
    except FileNotFoundError:
        return True


def _compile(source: Path) -> Path:
    """Write one compiled catalogue in a single step: another process may be reading or writing it."""
    from babel.messages.pofile import read_po

    target, partial = source.with_suffix(".mo"), source.with_suffix(f".mo-{os.getpid()}")
    with source.open("rb") as file:
        data = as_mo(read_po(file, locale=source.parent.name))
    try:
        partial.write_bytes(data)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target
