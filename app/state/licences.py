"""Licences of the libraries that the program uses, read from the metadata of the installed distributions."""

from __future__ import annotations

import platform
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from decodescope import resources
from decodescope.app.state.bundled_libraries import (
    BundledLibrary,
    bundled_fonts,
    is_native,
    libraries_in,
    licence_texts,
    overview,
)

OWN_NAME = "decodescope"
DEVELOPER_EXTRAS = frozenset({"dev", "docs", "translations"})
"""Extras of pyproject.toml whose packages the program itself never imports."""
_LICENCE_FILE = re.compile(r"(licen[cs]es?/|(^|/)(licen[cs]e|copying|notice|authors)[^/]*$)", re.IGNORECASE)
_MAX_LINE = 80
"""Characters of a License field above which it is the licence's text, not its name."""

_STATED_ELSEWHERE = {"cuda-toolkit": "LicenseRef-NVIDIA-Proprietary"}
"""Licences that metadata leaves out. This package has no files; it requires CUDA's libraries, which are under
https://docs.nvidia.com/cuda/eula/.
"""


class ThirdPartyPart(NamedTuple):
    """A library, with the name of its licence; "unknown" if its metadata does not give one."""

    name: str
    version: str
    licence: str


@cache
def third_party_parts() -> tuple[ThirdPartyPart, ...]:
    """Return Python and every installed distribution that the program depends on, directly or not, by name."""
    parts = [
        ThirdPartyPart(found.metadata["Name"], found.version, licence_name(found.metadata))
        for found in _required_distributions()
    ]
    parts.sort(key=lambda part: part.name.lower())
    return (ThirdPartyPart("Python", platform.python_version(), "PSF-2.0"), *parts)


def licence_name(fields: metadata.PackageMetadata) -> str:
    """Return a distribution's licence: its SPDX expression, or else what older metadata fields say."""
    for expression in fields.get_all("License-Expression") or ():
        return str(expression)
    classified = [
        str(line).rpartition(" :: ")[2]
        for line in fields.get_all("Classifier") or ()
        if str(line).startswith("License ::") and not str(line).endswith("OSI Approved")
    ]
    if classified:
        return ", ".join(classified)
    text = "".join(map(str, fields.get_all("License") or ())).strip()
    if 0 < len(text) <= _MAX_LINE and "\n" not in text:
        return text
    name = "".join(map(str, fields.get_all("Name") or ())).lower().replace("_", "-")
    return _STATED_ELSEWHERE.get(name, "unknown")


def native_files() -> dict[str, Path]:
    """Return the compiled libraries of the distributions that the program depends on, by their paths relative to the
    folder of packages.
    """
    return {
        file.as_posix(): path
        for found in _required_distributions()
        for file in found.files or ()
        if is_native(file.name) and (path := Path(str(file.locate()))).is_file()
    }


@cache
def bundled_libraries() -> tuple[BundledLibrary, ...]:
    """Return the libraries that are compiled into files of the distributions that the program depends on."""
    return tuple(libraries_in(native_files()))


def third_party_text(native: Mapping[str, Path] | None = None) -> str:
    """Return names, versions and licences of all parts as text, followed by the licences' own texts. `native` are the
    compiled libraries by their paths relative to the folder of packages, by default those of the distributions.
    """
    libraries = bundled_libraries() if native is None else libraries_in(native)
    lines = ["Decodescope uses the following libraries. Each is under its own licence.", ""]
    lines += [f"{part.name} {part.version}: {part.licence}" for part in third_party_parts()]
    lines += ["", *overview(libraries), "", "Fonts, cut to the characters of the program and renamed:", ""]
    for font in bundled_fonts():
        lines += [f"{font.title}: {font.licence}", f"    in {', '.join(font.files)}"]
        lines += [f"    sources: {font.sources}", f"    {font.notice}"]
    texts: dict[str, dict[str, None]] = {}
    for found in _required_distributions():
        for text in _licence_texts(found):
            texts.setdefault(text, {})[f"{found.metadata['Name']} {found.version}"] = None
    for name, text in licence_texts((*libraries, *bundled_fonts())).items():
        texts.setdefault(text.strip(), {})[f"{name}, of libraries and fonts named above"] = None
    for text, names in texts.items():
        lines += ["", "-" * _MAX_LINE, ", ".join(names), "-" * _MAX_LINE, "", text]
    return "\n".join(lines) + "\n"


@cache
def _required_distributions() -> tuple[metadata.Distribution, ...]:
    """Return installed distributions, following requirements from the program's own."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, metadata.Distribution] = {}
    followed: set[tuple[str, str]] = set()
    waiting = list(_own_requirements())
    while waiting:
        line, extra = waiting.pop()
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            distribution = found.get(name) or metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # optional
        found[name] = distribution
        for wanted in ("", *sorted(requirement.extras)):
            if (name, wanted) not in followed:
                followed.add((name, wanted))
                waiting += [(needed, wanted) for needed in distribution.requires or ()]
    return tuple(found[name] for name in sorted(found))


def _own_requirements() -> Iterator[tuple[str, str]]:
    """Yield the program's requirements with the extra that each belongs to, from the checkout or as installed."""
    project = Path(resources.__file__).parents[1] / "pyproject.toml"
    try:
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        yield from ((line, "") for line in table["dependencies"])
        for extra in sorted(table["optional-dependencies"].keys() - DEVELOPER_EXTRAS):
            yield from ((line, extra) for line in table["optional-dependencies"][extra])
    except (OSError, ValueError, KeyError):
        try:
            own = metadata.distribution(OWN_NAME)
        except metadata.PackageNotFoundError:
            return
        extras = {*(own.metadata.get_all("Provides-Extra") or ())} - DEVELOPER_EXTRAS
        yield from ((line, extra) for line in own.requires or () for extra in ("", *sorted(extras)))


def _licence_texts(distribution: metadata.Distribution) -> Iterator[str]:
    """Yield the texts of the licence files in a distribution's metadata folder and beside its compiled libraries."""
    for file in distribution.files or ():
        inside = file.as_posix()
        if (".dist-info/" in inside and _LICENCE_FILE.search(inside.partition(".dist-info/")[2])) or (
            file.name == "COPYING"
        ):
            path = Path(str(file.locate()))
            if path.is_file():
                yield path.read_text(encoding="utf-8", errors="replace").strip()
