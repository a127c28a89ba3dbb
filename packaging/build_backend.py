"""Build backend of the distribution: setuptools, after compiling the translation catalogues."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # the hooks of PEP 517 that need no change

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from resources.catalogs import compile_catalogs  # the root has to be on the path first


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Compile the catalogues, then build the wheel."""
    compile_catalogs()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Compile the catalogues, then build the editable wheel."""
    compile_catalogs()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
