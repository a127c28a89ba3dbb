"""Missing system libraries are named with their packages."""

import os
import platform
import struct
import subprocess
import sys

import pytest
from bootstrap_parts import qt_libraries
from bootstrap_parts.errors import SetupError

TWO = {"libEGL.so.1", "libxcb-cursor.so.0"}
ABSENT = "libdecodescope-test-absent.so.7"
"""A library that no machine has."""
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n'
MINT = 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'
MANJARO = "ID=manjaro\nID_LIKE=arch\n"

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
shared = qt_libraries._shared

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux leaves them to the system")


@pytest.mark.parametrize(
    ("message", "library"),
    [
        ("libxcb-cursor.so.0: cannot open shared object file: No such file or directory", {"libxcb-cursor.so.0"}),
        ("Error loading shared library libEGL.so.1: No such file or directory (needed by x)", {"libEGL.so.1"}),
        ("/lib/libc.so.6: version `GLIBC_2.99' not found", set()),
    ],
)
def test_missing_library_is_read_from_the_loaders_message(message, library):
    assert shared.library_in(message) == library


def elf(needed: list[str], folder: str = "$ORIGIN") -> bytes:
    """Build the smallest ELF file that names libraries: one loadable segment, and the dynamic section in it."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in (*needed, folder))
    places = [strings.index(name.encode() + b"\0") for name in (*needed, folder)]
    start = 64 + 2 * 56
    entries = [*((1, place) for place in places[:-1]), (29, places[-1])]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in (*entries, (5, start + 16 * (len(entries) + 2)), (0, 0)))
    whole = start + len(dynamic) + len(strings)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, whole, whole, 4096)
    section = struct.pack("<IIQQQQQQ", 2, 6, start, start, start, len(dynamic), len(dynamic), 8)
    return header + load + section + dynamic + strings


@linux_only
def test_missing_libraries_are_found_through_dependencies(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "lib").mkdir()
    plugin, beside = tmp_path / "plugins" / "libqxcb.so", tmp_path / "lib" / "libQt6XcbQpa.so.6"
    plugin.write_bytes(elf(["libQt6XcbQpa.so.6", "libc.so.6"], "$ORIGIN/../lib"))
    beside.write_bytes(elf(["libc.so.6", ABSENT]))
    assert shared.missing_libraries([plugin]) == {ABSENT}
    beside.write_bytes(elf(["libc.so.6"]))
    assert shared.missing_libraries([plugin]) == set()


@pytest.mark.parametrize("size", [0, 3, 64, 120, 180, 200, 260])
def test_damaged_binary_reports_no_missing_library(tmp_path, size):
    damaged = tmp_path / "libqxcb.so"
    damaged.write_bytes(elf([ABSENT])[:size])
    assert shared.missing_libraries([damaged, tmp_path / "not there"]) == set()


@linux_only
@pytest.mark.parametrize("platform", ["xcb", "wayland"])
def test_program_names_a_missing_platform_library(root, tmp_path, platform):
    """`python -m app` with a platform plugin that needs a library which is not installed."""
    pytest.importorskip("PySide6")
    (tmp_path / f"libq{platform}.so").write_bytes(elf([ABSENT]))
    variables = {name: value for name, value in os.environ.items() if name not in ("QT_QPA_PLATFORM", *SCREENS)}
    variables.update({shared.PLUGIN_FOLDER: str(tmp_path), SCREENS[platform == "wayland"]: "decodescope-test"})
    answer = subprocess.run([sys.executable, "-m", "app"], cwd=root, env=variables, capture_output=True, text=True)
    assert answer.returncode == 1
    assert f"missing: {ABSENT}." in answer.stderr
    assert "To install them" in answer.stderr
    assert "Traceback" not in answer.stderr


@linux_only
def test_program_names_a_missing_library_of_qt(root, tmp_path):
    """The import of Qt fails with the loader's message; here a package of that name raises it."""
    (tmp_path / "PySide6").mkdir()
    message = "libEGL.so.1: cannot open shared object file: No such file or directory"
    (tmp_path / "PySide6" / "__init__.py").write_text(f"raise ImportError({message!r})")
    variables = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}
    answer = subprocess.run([sys.executable, "-m", "app"], cwd=root, env=variables, capture_output=True, text=True)
    assert answer.returncode == 1
    assert "missing: libEGL.so.1." in answer.stderr
    assert shared.remedy({"libEGL.so.1"}).removeprefix("sudo ") in answer.stderr
    assert "Traceback" not in answer.stderr


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
def test_remedy_uses_the_package_manager_of_the_system(system, command):
    assert qt_libraries.remedy(TWO, system) == command


def test_unknown_system_gets_the_commands_of_all_three():
    remedy = qt_libraries.remedy({"libEGL.so.1"}, "ID=plan9\n")
    assert remedy == "sudo apt install libegl1 | sudo dnf install libglvnd-egl | sudo pacman -S libglvnd"


def test_root_needs_no_sudo(monkeypatch):
    monkeypatch.setattr(qt_libraries.os, "geteuid", lambda: 0)
    assert qt_libraries.remedy({"libEGL.so.1"}, DEBIAN) == "apt install libegl1"


def test_unknown_library_is_named_in_the_remedy():
    assert qt_libraries.remedy({"libnew.so.7"}, DEBIAN).startswith("find the packages that hold libnew.so.7")


@pytest.fixture
def wheels(tmp_path):
    """An installed Qt whose libraries are empty files, because the loader is faked."""
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
def test_complete_libraries_cause_no_error(wheels, lacks):
    assert qt_libraries.check(wheels, {"DISPLAY": ":0"}) is None


@linux_only
def test_library_missing_for_every_platform_raises_an_error(wheels, lacks):
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
def test_missing_screen_raises_an_error_with_a_remedy(wheels, lacks):
    with pytest.raises(SetupError) as caught:
        qt_libraries.check(wheels, {})
    assert "DISPLAY" in caught.value.cause
    assert "--screenshot" in caught.value.remedy


@linux_only
def test_installed_qt_finds_its_libraries():
    pyside = pytest.importorskip("PySide6")
    site_packages = qt_libraries.Path(pyside.__file__).parents[1]
    assert qt_libraries.check(site_packages, {"QT_QPA_PLATFORM": "offscreen"}) is None


def test_list_has_a_package_for_every_library_of_the_platforms():
    """Every system library that Qt's own binaries name is listed, except those of the C library."""
    pyside = pytest.importorskip("PySide6")
    qt = qt_libraries.Path(pyside.__file__).parent / "Qt"
    binaries = [*(qt / "plugins" / "platforms").glob("libq[wx]*.so"), *(qt / "lib").glob("libQt6[GWX]*.so.6")]
    named = {name for binary in binaries for name in shared.dynamic_section(binary)[0]}
    own = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
    assert {name for name in named - own if not name.startswith(("libQt6", "libicu", "ld-"))} <= set(shared.PACKAGES)


def system_needs(binary) -> set[str]:
    """The libraries of the system that a file of Qt needs, through Qt's own libraries, except those of glibc."""
    pending, seen, found = [binary], set(), set()
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            needed, folders = shared.dynamic_section(one)
            for name in needed:
                bundled = [folder / name for folder in folders if (folder / name).exists()]
                pending += [bundled[0].resolve()] if bundled else []
                found |= set() if bundled else {name}
    return {name for name in found if not name.startswith(("libc.", "libm.", "libpthread.", "libdl.", "librt.", "ld-"))}


@pytest.mark.skipif(platform.machine() != "x86_64" or not sys.platform.startswith("linux"), reason="needs Qt's files")
def test_lists_for_an_environment_without_qt_are_those_of_the_installed_qt():
    pyside = pytest.importorskip("PySide6")
    qt = qt_libraries.Path(pyside.__file__).parent / "Qt"
    widgets = system_needs(qt / "lib" / "libQt6Widgets.so.6")
    assert widgets == set(shared.QT_NEEDS)
    for name, needs in shared.PLATFORM_NEEDS.items():
        assert system_needs(qt / "plugins" / "platforms" / f"libq{name}.so") - widgets == set(needs), name
    assert {*shared.QT_NEEDS, *(n for needs in shared.PLATFORM_NEEDS.values() for n in needs)} <= set(shared.PACKAGES)


@linux_only
@pytest.mark.parametrize(
    ("lacking", "variables", "reported"),
    [
        ({"libEGL.so.1"}, {"QT_QPA_PLATFORM": "offscreen"}, {"libEGL.so.1"}),
        ({"libxcb-cursor.so.0"}, {"DISPLAY": ":0"}, {"libxcb-cursor.so.0"}),
        ({"libxcb-cursor.so.0"}, {"QT_QPA_PLATFORM": "offscreen"}, set()),
        ({"libxcb-cursor.so.0"}, {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, set()),
        ({"libEGL.so.1", "libxcb-shm.so.0"}, {"DISPLAY": ":0"}, {"libEGL.so.1", "libxcb-shm.so.0"}),
    ],
)
def test_libraries_are_checked_before_qt_is_installed(tmp_path, monkeypatch, lacking, variables, reported):
    monkeypatch.setattr(shared, "missing_when_loaded", lambda name: {name} & lacking)
    if not reported:
        assert qt_libraries.check(tmp_path, variables) is None
        return
    with pytest.raises(SetupError) as caught:
        qt_libraries.check(tmp_path, variables)
    assert {name for name in shared.PACKAGES if name in caught.value.cause} == reported


def test_lists_of_commands_and_options_are_those_of_the_program():
    from decodescope.app.start.cli.commands import COMMANDS
    from decodescope.app.start.cli.information import OPTIONS
    from decodescope.app.start.cli.parser import CommandLineOptions, make_parser

    assert set(qt_libraries.COMMANDS_WITHOUT_QT) == set(COMMANDS)
    assert set(qt_libraries.INFORMATION) == OPTIONS
    destinations = {
        option: action.dest for action in make_parser()._actions for option in action.option_strings if action.dest
    }
    writing = {
        option
        for option, name in destinations.items()
        if name in CommandLineOptions.__dataclass_fields__
        and (name == "pictures" or CommandLineOptions(**{name: qt_libraries.Path("x")}).writes_files)
    }
    assert set(qt_libraries.FILE_OPTIONS) == writing


@pytest.mark.parametrize(
    ("arguments", "need"),
    [
        ([], "screen"), (["--run"], "screen"), (["run.decodescope"], "screen"), (["--model", "show"], "screen"),
        (["--screenshot", "a.png"], "offscreen"), (["--run", "--export=a.csv"], "offscreen"),
        (["--record-demo", "a.gif"], "offscreen"), (["--pictures=a.toml"], "offscreen"),
        (["--help"], "nothing"), (["--version"], "nothing"), (["-h"], "nothing"), (["generate", "a.jsonl"], "nothing"),
        (["show", "a.decodescope"], "nothing"), (["watch", "a.py"], "nothing"),
    ],
)  # fmt: skip
def test_command_line_decides_what_is_needed_of_qt(arguments, need):
    assert qt_libraries.needs(arguments) == need
