"""Missing system libraries are named with their packages."""

import sys

import pytest
from bootstrap_parts import qt_libraries
from bootstrap_parts.errors import SetupError

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibEGL.so.1 => not found
\tlibxcb-cursor.so.0 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)
"""
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n'
MINT = 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'
MANJARO = "ID=manjaro\nID_LIKE=arch\n"

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux leaves them to the system")


def test_missing_libraries_are_read_from_the_loader():
    assert qt_libraries.not_found_in(LDD) == {"libEGL.so.1", "libxcb-cursor.so.0"}


@pytest.fixture(autouse=True)
def plain_user(monkeypatch):
    monkeypatch.setattr(qt_libraries.os, "geteuid", lambda: 1000, raising=False)


@pytest.mark.parametrize(
    ("system", "command"),
    [
        (DEBIAN, "sudo apt install libegl1 libxcb-cursor0"),
        (MINT, "sudo apt install libegl1 libxcb-cursor0"),
        (ROCKY, "sudo dnf install libglvnd-egl xcb-util-cursor"),
        (MANJARO, "sudo pacman -S libglvnd xcb-util-cursor"),
    ],
)
def test_remedy_speaks_the_systems_language(system, command):
    assert qt_libraries.remedy(qt_libraries.not_found_in(LDD), system) == command


def test_unknown_system_gets_all_three():
    remedy = qt_libraries.remedy({"libEGL.so.1"}, "ID=plan9\n")
    assert remedy == "sudo apt install libegl1 | sudo dnf install libglvnd-egl | sudo pacman -S libglvnd"


def test_root_needs_no_sudo(monkeypatch):
    monkeypatch.setattr(qt_libraries.os, "geteuid", lambda: 0)
    assert qt_libraries.remedy({"libEGL.so.1"}, DEBIAN) == "apt install libegl1"


def test_unknown_library_is_named_itself():
    assert qt_libraries.remedy({"libnew.so.7"}, DEBIAN).startswith("find the packages that hold libnew.so.7")


@pytest.fixture
def wheels(tmp_path):
    """An installed Qt: its libraries are empty files, for the loader is played."""
    qt = tmp_path / "PySide6" / "Qt"
    for name in ("lib/libQt6Widgets.so.6", *(f"plugins/platforms/libq{n}.so" for n in ("xcb", "wayland", "offscreen"))):
        (qt / name).parent.mkdir(parents=True, exist_ok=True)
        (qt / name).touch()
    return tmp_path


@pytest.fixture
def lacks(monkeypatch):
    """lacks(xcb={…}): what each binary is missing."""
    missing: dict[str, set[str]] = {}

    def played(binaries) -> set[str]:
        return {name for path in binaries for part, names in missing.items() if part in path.name for name in names}

    monkeypatch.setattr(qt_libraries, "missing_of", played)
    return lambda **names: missing.update(names)


@linux_only
def test_all_there_is_silent(wheels, lacks):
    assert qt_libraries.check(wheels, {"DISPLAY": ":0"}) is None


@linux_only
def test_library_of_every_platform_stops(wheels, lacks):
    lacks(Qt6Widgets={"libEGL.so.1"})
    with pytest.raises(SetupError, match=r"libEGL\.so\.1"):
        qt_libraries.check(wheels, {"QT_QPA_PLATFORM": "offscreen"})


@linux_only
def test_only_the_platform_in_use_matters(wheels, lacks):
    lacks(xcb={"libxcb-cursor.so.0"})
    assert qt_libraries.check(wheels, {"QT_QPA_PLATFORM": "offscreen"}) is None
    with pytest.raises(SetupError, match=r"libxcb-cursor\.so\.0"):
        qt_libraries.check(wheels, {"DISPLAY": ":0"})


@linux_only
def test_one_working_platform_is_enough(wheels, lacks):
    lacks(xcb={"libxcb-cursor.so.0"})
    assert qt_libraries.check(wheels, {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}) is None


@linux_only
def test_no_screen_says_what_helps(wheels, lacks):
    with pytest.raises(SetupError) as caught:
        qt_libraries.check(wheels, {})
    assert "DISPLAY" in caught.value.cause
    assert "--screenshot" in caught.value.remedy


@linux_only
def test_installed_qt_finds_its_libraries():
    pyside = pytest.importorskip("PySide6")
    site_packages = qt_libraries.Path(pyside.__file__).parents[1]
    assert qt_libraries.check(site_packages, {"QT_QPA_PLATFORM": "offscreen"}) is None
