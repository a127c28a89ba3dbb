"""Licences of the compiled libraries inside wheels: every file has an entry, and the overview names what it must."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from decodescope import resources
from decodescope.app.state import bundled_libraries, licences

LISTED = tomllib.loads(resources.path("licences", "libraries.toml").read_text(encoding="utf-8"))["library"]


def test_each_compiled_library_of_the_installed_distributions_has_a_licence() -> None:
    files = licences.native_files()
    assert any(name.startswith("torch/lib/libtorch_cpu.") for name in files)
    assert bundled_libraries.unlisted_files(files) == []


def test_compiled_library_without_an_entry_is_reported() -> None:
    names = [
        "new.libs/libnew-1.so.2", "new/_new.cpython-311-x86_64-linux-gnu.so", "new/new.py", "torch/lib/libnew.so",
        "torch/lib/libtorch_cpu.so", "new/_new.abi3.so", "new/new.pyd", "new/.dylibs/libnew.dylib", "new/new.dll",
    ]  # fmt: skip
    assert bundled_libraries.unlisted_files(names) == [
        "new.libs/libnew-1.so.2", "new/.dylibs/libnew.dylib", "new/new.dll", "torch/lib/libnew.so",
    ]  # fmt: skip


@pytest.mark.parametrize("row", LISTED, ids=[f"{row['name']}-{number}" for number, row in enumerate(LISTED)])
def test_entry_has_a_licence_or_an_owner_and_sources_if_the_licence_requires_them(row: dict[str, str]) -> None:
    assert ("licence" in row) != ("owner" in row)
    assert row["files"]
    re.compile(row.get("version", ""))
    if "GPL" in row.get("licence", ""):
        assert row["sources"].startswith("https://")


def test_versions_are_read_from_the_files_or_their_names(tmp_path: Path) -> None:
    library = tmp_path / "libsndfile.so"
    library.write_bytes(b"\0libsndfile-1.2.2\0reference libFLAC 1.4.3 20230623\0libopus 1.4\0001.32.3\0")
    tiff = tmp_path / "libopenjp2-ab.so.2.5.4"
    tiff.write_bytes(b"\0")
    files = {"_soundfile_data/libsndfile_x86_64.so": library, "pillow.libs/libopenjp2-ab.so.2.5.4": tiff}
    titles = {found.title: found for found in bundled_libraries.libraries_in(files)}
    assert set(titles) == {
        "FLAC 1.4.3", "LAME", "Ogg", "OpenJPEG 2.5.4", "Opus 1.4", "Vorbis", "libsndfile 1.2.2", "mpg123 1.32.3",
    }  # fmt: skip
    assert titles["libsndfile 1.2.2"].sources.endswith("/1.2.2")


def test_overview_names_the_libraries_with_their_licences_and_sources() -> None:
    text = licences.third_party_text()
    for name, licence in {
        "libsndfile": "LGPL-2.1-or-later", "FLAC": "BSD-3-Clause", "Opus": "BSD-3-Clause", "Vorbis": "BSD-3-Clause",
        "mpg123": "LGPL-2.1-only", "LAME": "LGPL-2.0-or-later", "Qt": "LGPL-3.0-only OR GPL-2.0-only OR GPL-3.0-only",
        "HarfBuzz": "MIT", "PCRE2": "BSD-3-Clause", "ICU": "Unicode-3.0", "libsoxr": "LGPL-2.1-or-later",
    }.items():  # fmt: skip
        assert re.search(rf"^{name}( [\d.]+)?: {re.escape(licence)}\n    in ", text, re.MULTILINE), name
    version = re.search(r"^Qt (6\.\d+\.\d+):", text, re.MULTILINE)
    assert version is not None
    series = ".".join(version[1].split(".")[:2])
    assert f"https://download.qt.io/official_releases/qt/{series}/{version[1]}/submodules/" in text
    offer = text[text.index("Under the GNU Lesser General Public License are") :][:1000]
    for name in ("Qt 6", "libsndfile", "mpg123", "LAME", "libsoxr", "PySide6"):
        assert name in offer
    for title in ("GNU LESSER GENERAL PUBLIC LICENSE\n                       Version 3", "Version 2.1, February 1999",
                  "GNU GENERAL PUBLIC LICENSE\n                       Version 3"):  # fmt: skip
        assert title in text
