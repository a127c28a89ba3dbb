"""Compiled libraries inside the distributions that the program uses: names, versions, licences, sources.

Wheels contain libraries of other projects, such as libsndfile in soundfile. `resources/licences/libraries.toml` lists
them by the files that they are in.
"""

from __future__ import annotations

import mmap
import re
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from decodescope import resources

_NATIVE = re.compile(r"(?:\.so(?:\.\d+)*|\.dylib|\.dll|\.pyd)$")
_EXTENSION_MODULE = re.compile(r"\.(?:cpython-|abi3\.|cp\d+)[^/]*$|\.pyd$")
"""A module of Python: the distribution's own code."""
_TEXTS = ("LGPL-2.1", "LGPL-3.0", "GPL-3.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "OFL-1.1")
"""Licences whose texts are in resources/licences."""
_COPYLEFT = re.compile(r"\bLGPL")


class BundledLibrary(NamedTuple):
    """A library and the files that it is in; the version is empty if the files do not name it."""

    name: str
    version: str
    licence: str
    files: tuple[str, ...]
    sources: str
    notice: str

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}".rstrip()


def is_native(name: str) -> bool:
    """Return whether a file is a compiled library, by its name."""
    return _NATIVE.search(name) is not None


def libraries_in(files: Mapping[str, Path]) -> list[BundledLibrary]:
    """Return the libraries in files by name; keys are paths relative to the folder of packages. Rows that only name the
    owner of a file are left out.
    """
    found = []
    for row, pattern in _rows():
        names = tuple(sorted(name for name in files if is_native(name) and pattern.match(name)))
        if names and "owner" not in row:
            version = _version(row, files, names)
            series = ".".join(version.split(".")[:2])
            sources = row.get("sources", "").replace("{version}", version).replace("{series}", series)
            found.append(BundledLibrary(row["name"], version, row["licence"], names, sources, row.get("notice", "")))
    return sorted(found, key=lambda library: library.name.lower())


@cache
def bundled_fonts() -> tuple[BundledLibrary, ...]:
    """Return the fonts that the files in `resources/fonts` are cut from, by name."""
    folder = resources.path("fonts")
    return tuple(
        BundledLibrary(
            row["name"],
            row["version"],
            row["licence"],
            tuple(sorted(path.name for pattern in row["files"] for path in folder.glob(pattern))),
            row["sources"],
            row["notice"],
        )
        for row in sorted(_table()["font"], key=lambda row: row["name"].lower())
    )


def unlisted_files(names: Iterable[str]) -> list[str]:
    """Return the compiled libraries without an entry; modules of Python are covered by their distribution's."""
    return sorted(
        name
        for name in names
        if is_native(name) and not _EXTENSION_MODULE.search(name) and not any(row.match(name) for _, row in _rows())
    )


def licence_texts(libraries: Iterable[BundledLibrary]) -> dict[str, str]:
    """Return the texts of the licences of these libraries, by their SPDX names without "only" and "or later"."""
    licences = " ".join(library.licence for library in libraries)
    folder = resources.path("licences")
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in _TEXTS if name in licences}


def overview(libraries: Iterable[BundledLibrary]) -> list[str]:
    """Return the lines about these libraries in the overview of licences: their files and their sources."""
    listed = list(libraries)
    lines = ["Libraries that are compiled into files of these packages:", ""]
    for library in listed:
        more = f" and {len(library.files) - 1} more" if library.files[1:] else ""
        lines += [f"{library.title}: {library.licence}", f"    in {library.files[0]}{more}"]
        lines += [f"    sources: {library.sources}"] if library.sources else []
        lines += [f"    {library.notice}"] if library.notice else []
    names = [library.title for library in listed if _COPYLEFT.search(library.licence)]
    return [
        *lines,
        "",
        f"Under the GNU Lesser General Public License are {', '.join([*names, 'PySide6', 'shiboken6'])}.",
        "Each is in shared libraries of its own, which you may replace by your own builds of changed sources. The",
        "sources of the versions used are at the addresses above and, for PySide6 and shiboken6, at",
        "https://download.qt.io/official_releases/QtForPython/. For three years after the last copy, the publisher of",
        "your copy of this program also sends you these sources on request, for no more than the cost of sending them.",
    ]


def _version(row: Mapping[str, Any], files: Mapping[str, Path], names: tuple[str, ...]) -> str:
    """Return the versions that a row's expression finds in the names or the contents of its files, mostly one."""
    expression = row.get("version", "")
    if not expression:
        return ""
    if "version_file" in row:
        chosen = re.compile(translate(row["version_file"]))
        names = tuple(name for name in names if chosen.match(name))
    found = {version: None for name in names if (version := _version_in(expression, name, files[name]))}
    return " and ".join(found)


def _version_in(expression: str, name: str, path: Path) -> str:
    if match := re.search(expression, name):
        return match[1]
    if not path.stat().st_size:
        return ""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        inside = re.search(expression.encode(), content)
        return inside[1].decode() if inside else ""


@cache
def _rows() -> tuple[tuple[dict[str, Any], re.Pattern[str]], ...]:
    return tuple((row, re.compile("|".join(map(translate, row["files"])))) for row in _table()["library"])


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(resources.path("licences", "libraries.toml").read_text(encoding="utf-8"))
