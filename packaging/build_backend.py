"""Build backend of the distribution: setuptools, with native libraries, compiled translations, a bill of materials and
fixed dates.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # the hooks of PEP 517 that need no change

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import native_libraries  # noqa: E402  # the root has to be on the path first
from bill_of_materials import NATIVE_FOLDER, native_files, wheel_bill  # noqa: E402
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


def get_requires_for_build_wheel(config_settings: dict[str, object] | None = None) -> list[str]:
    """Return the compiler of the native libraries, unless they are not wanted, or pip says that it cannot be had."""
    required = build_meta.get_requires_for_build_wheel(config_settings)
    if not native_libraries.is_wanted() or native_libraries.target_of_this_machine() is None:
        return required
    return [*required, native_libraries.REQUIREMENT] if _can_be_had(native_libraries.REQUIREMENT) else required


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel for this machine; without native libraries, for all machines, if they cannot be compiled."""
    target, zig = native_libraries.target_of_this_machine(), native_libraries.own_ziglang()
    chosen = None
    if not native_libraries.is_wanted():
        print(f"{native_libraries.SWITCH_VARIABLE}=0: the wheel has no native libraries.")
    elif target is None:
        print("There are no native libraries for this kind of computer: the wheel has none.")
    elif zig is None:
        print(f"The wheel has no native libraries, because {native_libraries.REQUIREMENT} is not installed.")
    else:
        chosen = target
    with tempfile.TemporaryDirectory() as folder:
        wheel = _build_pure_wheel(folder, config_settings, metadata_directory)
        if chosen is not None and zig is not None:
            wheel = _add_libraries(wheel, chosen, zig, Path(folder, "cache"))
        shutil.copy(wheel, os.path.abspath(wheel_directory))
        return wheel.name


def build_wheels(wheel_directory: str, targets: Iterable[str]) -> list[str]:
    """Build the wheel without native libraries, and one for each of the targets; return their names.

    Raises NativeLibraryError.
    """
    pure = _build_pure_wheel(wheel_directory)
    names = [pure.name]
    chosen = [native_libraries.TARGETS[name] for name in targets]
    if chosen:
        with native_libraries.ziglang() as zig, tempfile.TemporaryDirectory() as cache:
            names += [_add_libraries(pure, target, zig, Path(cache)).name for target in chosen]
    return names


def _build_pure_wheel(
    folder: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> Path:
    """Compile the catalogues, build the wheel, and write it again with its bill of materials, the same every time."""
    compile_catalogs()
    with arranged_sources():
        name = build_meta.build_wheel(os.path.abspath(folder), config_settings, metadata_directory)
    epoch = source_date(ROOT)
    return rewrite_wheel(Path(folder, name), {BILL: wheel_bill(ROOT, epoch)}, epoch, documentation_files(ROOT))


def _add_libraries(pure: Path, target: native_libraries.BuildTarget, zig: Path, cache: Path) -> Path:
    """Write a wheel for a target beside the one for all machines, with the native libraries; return its path."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = native_libraries.build_target(zig, target, Path(folder), cache)
        contents = {f"{NATIVE_FOLDER}/{path.name}": path.read_bytes() for path in Path(folder).iterdir()}
    epoch = source_date(ROOT)
    bill = wheel_bill(ROOT, epoch, *native_files(manifest))
    return rewrite_wheel(pure, {BILL: bill}, epoch, contents, target.tag)


def _can_be_had(requirement: str) -> bool:
    """Return whether pip finds a package, and print what follows if it does not. A front end without pip finds out
    itself.
    """
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
    python = [sys.executable, "-m", "pip"]
    if subprocess.run([*python, "--version"], env=variables, capture_output=True).returncode:
        return True
    with tempfile.TemporaryDirectory() as folder:
        options = ["--dry-run", "--no-deps", "--only-binary", ":all:", "--retries", "1", "--timeout", "10"]
        answer = subprocess.run(
            [*python, "install", "--quiet", *options, "--ignore-installed", "--target", folder, requirement],
            env=variables, capture_output=True,
        )  # fmt: skip
    if answer.returncode:
        print(f"The wheel will have no native libraries, because pip does not find {requirement}.")
    return answer.returncode == 0


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
    """Compile the catalogues, then build the editable wheel. The native code of a checkout is compiled when the program
    runs, or by packaging/bootstrap.py.
    """
    compile_catalogs()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
