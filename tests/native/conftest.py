"""Stored cases and tools of the tests of native code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.native import compilers
from tests.native.kernel_cases import write_cases


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of all cases for the host."""
    path = tmp_path_factory.mktemp("cases") / "cases"
    assert write_cases(path) > 1000
    return path


@pytest.fixture(scope="session")
def needs_zig() -> list[str]:
    """The command of zig's C++ compiler."""
    program = compilers.zig()
    if program is None:
        pytest.skip("the package ziglang is not installed")
    return [program, "c++"]


@pytest.fixture(scope="session")
def needs_qemu() -> str:
    """The path of QEMU for programs of 64-bit ARM processors."""
    path = shutil.which("qemu-aarch64")
    if path is None:
        pytest.skip("qemu-aarch64 (Debian: qemu-user) is not installed")
    return path


@pytest.fixture(scope="session")
def needs_wine() -> str:
    """The path of Wine."""
    path = shutil.which("wine") or shutil.which("wine64")
    if path is None:
        pytest.skip("Wine (Debian: wine64) is not installed")
    return path
