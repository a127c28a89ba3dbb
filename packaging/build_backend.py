"""Build backend of the distribution: setuptools, with compiled translations, a bill of materials and fixed dates."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # the hooks of PEP 517 that need no change

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bill_of_materials import wheel_bill  # noqa: E402  # the root has to be on the path first
from distribution_files import (  # noqa: E402
    arrange_package,
    copy,
    documentation_files,
    rewrite_wheel,
    source_date,
    write_sdist,
)

from decodescope.resources.catalogs import compile_catalogs  # noqa: E402

BILL = "sboms/decodescope.cdx.json"
"""Folder required by PEP 770, in .dist-info."""


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Compile the catalogues, build the wheel, and write it again with its bill of materials, the same every time."""
    compile_catalogs()
    with arranged_sources():
        name = build_meta.build_wheel(os.path.abspath(wheel_directory), config_settings, metadata_directory)
    epoch = source_date(ROOT)
    rewrite_wheel(Path(wheel_directory, name), {BILL: wheel_bill(ROOT, epoch)}, epoch, documentation_files(ROOT))
    return name


@contextmanager
def arranged_sources() -> Iterator[None]:
    """Work in a folder that contains the package as it will be installed, and what its metadata need."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            copy(ROOT / name, Path(folder, name))
        arrange_package(ROOT, Path(folder), copy)
        before = os.getcwd()
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def build_sdist(sdist_directory: str, config_settings: dict[str, object] | None = None) -> str:
    """Pack the sources. setuptools would leave out this backend, the tests and the documents."""
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder, build_meta.prepare_metadata_for_build_wheel(folder, config_settings))
        metadata = (info / "METADATA").read_text(encoding="utf-8")
    top = info.name.removesuffix(".dist-info")
    write_sdist(Path(sdist_directory, f"{top}.tar.gz"), ROOT, top, metadata, source_date(ROOT))
    return f"{top}.tar.gz"


def build_editable(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Compile the catalogues, then build the editable wheel."""
    compile_catalogs()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
