"""Installers: their contents, the Debian package, the scripts for Windows and macOS, and how the program starts."""

import ctypes
import importlib.util
import json
import os
import plistlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import installer
import pytest
from installer_parts import contents, entry_point, icons, linux, macos, manual_page, stripping, tools, windows

from decodescope.app.start.qt_libraries import PACKAGES
from decodescope.app.state import licences
from decodescope.core.native.library_choice import find_compiler

EPOCH = 1_700_000_000
TOOLCHAIN = pytest.mark.usefixtures("needs_packing_tools")
USED = """
import json, pathlib, sys
from decodescope.app.__main__ import main
code = main(["--model", "storyteller", "--prompt", "Once upon a time", "--run", "--screenshot", sys.argv[1]])
files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
maps = pathlib.Path("/proc/self/maps")
if maps.exists():
    files |= {line.rsplit(" ", 1)[-1] for line in maps.read_text().splitlines() if "/" in line}
print(json.dumps({"code": code, "files": sorted(files)}))
"""


@pytest.fixture(autouse=True)
def this_checkout(root, monkeypatch) -> None:
    """Let programs that are started import this checkout, whatever is installed."""
    monkeypatch.setenv("PYTHONPATH", str(root))


@pytest.fixture
def needs_packing_tools() -> None:
    if not all(map(shutil.which, ("dpkg-deb", "xz"))):
        pytest.skip("dpkg-deb and xz make packages, and are not installed")


def folder_of(package: str) -> Path:
    """Return the folder of packages that has this one."""
    return Path(importlib.util.find_spec(package).origin).parents[1]


def test_exclusion_patterns_have_reasons_and_match_exactly():
    assert all(contents.LEFT_OUT.values())
    left_out = [
        "torch/test/a.so", "torch\\include\\ATen\\a.h", "torch/lib/libtorchbind_test.so", "triton/__init__.py",
        "transformers/models/llama/modular_llama.py", "nvidia/cublas/lib/libcublas.so.12",
        "PySide6/Qt/lib/libQt6Quick.so.6", "PySide6/Qt/plugins/platforms/libqeglfs.so",
        "PySide6/Qt/translations/qtbase_sv.qm", "PySide6/translations/qt_help_zh_CN.qm",
    ]  # fmt: skip
    kept = [
        "torch/lib/libtorch_cpu.so", "torch/bin/torch_shm_manager",
        "torch/testing/__init__.py", "torch/testing/_internal/common_utils.py",
        "transformers/models/llama/modeling_llama.py", "transformers/modeling_utils.py",
        "transformers/convert_slow_tokenizer.py", "PySide6/Qt/plugins/platforms/libqxcb.so",
        "PySide6/Qt/plugins/platforms/libqoffscreen.so", "PySide6/Qt/translations/qtbase_zh_CN.qm",
        "PySide6\\translations\\qtbase_zh_CN.qm",
        "mytorch/test/a.so", "resources/models/storyteller/config.json",
    ]  # fmt: skip
    assert [path for path in left_out if not contents.is_left_out(path)] == []
    assert [path for path in kept if contents.is_left_out(path)] == []
    assert contents.is_left_out_module("transformers.cli")
    assert contents.is_left_out_module("transformers.cli.serve")
    assert not contents.is_left_out_module("transformers.models.llama.modeling_llama")


def test_running_a_model_uses_no_excluded_file():
    """In this process, with whatever other tests have loaded of these libraries."""
    from transformers import GenerationConfig

    from decodescope import core

    core.run(core.load("storyteller"), core.Request("Once", GenerationConfig(max_new_tokens=2)))
    root = folder_of("torch")
    loaded = [Path(found) for module in list(sys.modules.values()) if (found := getattr(module, "__file__", None))]
    names = [path.relative_to(root).as_posix() for path in loaded if path.is_relative_to(root)]
    program = [name for name in names if name.startswith(("torch/", "transformers/"))]
    assert "torch/__init__.py" in program
    assert "transformers/models/llama/modeling_llama.py" in program
    assert [name for name in program if contents.is_left_out(name)] == []


@pytest.mark.slow
def test_first_run_in_the_window_uses_no_excluded_file(root, tmp_path):
    """Modules, and on Linux also libraries and Qt's plug-ins."""
    variables = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", USED, str(tmp_path / "window.png")]
    answer = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    used = json.loads(answer.stdout.splitlines()[-1])
    assert used["code"] == 0
    tops = {folder_of("torch"), folder_of("PySide6")}
    files = [Path(file) for file in used["files"]]
    names = [path.relative_to(top).as_posix() for path in files for top in tops if path.is_relative_to(top)]
    assert any(name.startswith("PySide6/") for name in names)
    assert [name for name in names if contents.is_left_out(name)] == []
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names}
    excluded = re.compile("|".join(re.escape(name) + r"(\.|$)" for name in contents.EXCLUDED_MODULES))
    assert [name for name in modules if excluded.match(name)] == []


@pytest.mark.slow
@pytest.mark.parametrize("package", ["transformers", "torch"])
def test_included_files_import_no_excluded_file(package):
    """At the level of a module or in a class; a function may, as long as the program does not call it."""
    top = folder_of(package)
    statement = re.compile(r"^(?:from (\.*[\w.]*) import|import ([\w.]+))", re.MULTILINE)
    found = []
    for path in (top / package).rglob("*.py"):
        name = path.relative_to(top).as_posix()
        if contents.is_left_out(name):
            continue
        for relative, absolute in statement.findall(path.read_text(encoding="utf-8", errors="replace")):
            imported = absolute or resolve(relative, name)
            if imported.startswith(package) and contents.is_left_out_module(imported):
                found.append(f"{name}: {imported}")
    assert found == []


def resolve(relative: str, file: str) -> str:
    """Return the full name of the module that `from relative import …` means in a file."""
    dots = len(relative) - len(relative.lstrip("."))
    if not dots:
        return relative
    parents = Path(file).parent.parts[: len(Path(file).parent.parts) - dots + 1]
    return ".".join((*parents, *filter(None, [relative.lstrip(".")])))


def test_system_libraries_are_excluded_except_those_of_python():
    system = contents.is_left_to_the_system
    assert system("libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6")
    assert system("libxcb-cursor.so.0", "/lib/x86_64-linux-gnu/libxcb-cursor.so.0")
    assert not system("libssl.so.3", "/lib/x86_64-linux-gnu/libssl.so.3")
    assert not system("libpython3.11.so.1.0", "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0")
    assert not system("python3.11/lib-dynload/_ssl.so", "/usr/lib/python3.11/lib-dynload/_ssl.so")
    assert not system("torch/lib/libc10.so", "/venv/lib/python3.11/site-packages/torch/lib/libc10.so")


def test_library_without_a_known_package_raises_an_error(tmp_path, monkeypatch):
    (tmp_path / "a.so").write_bytes(b"\x7fELF with GLIBC_2.5 and GLIBC_2.34")
    (tmp_path / "libown.so.1").write_bytes(b"\x7fELF")
    needed = ["libc.so.6", "libown.so.1", "libEGL.so.1", "libglib-2.0.so.0"]
    monkeypatch.setattr(contents, "dynamic_section", lambda path: (needed, []))
    assert set(contents.system_libraries(tmp_path)) == {*needed[2:], *contents.LOADED_BY_NAME}
    depends = linux.dependencies(tmp_path).split(", ")
    assert depends[0] == "libc6 (>= 2.34)"
    assert {"libegl1", "libglib2.0-0t64 | libglib2.0-0", "libdbus-1-3"} <= set(depends)
    needed += ["libunknown.so.3", "libother.so.1"]
    with pytest.raises(tools.InstallerError, match=r"libother\.so\.1 \(needed by a\.so\), libunknown\.so\.3"):
        linux.dependencies(tmp_path)


def test_package_of_an_unlisted_library_is_the_one_that_dpkg_names(tmp_path, monkeypatch):
    for name, printed in {
        "ldconfig": "\tlibdb-5.3.so (libc6,x86-64) => /lib/x86_64-linux-gnu/libdb-5.3.so\n",
        "dpkg-query": "libdb5.3:amd64: /usr/lib/x86_64-linux-gnu/libdb-5.3.so\n",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{printed}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert contents.debian_package("libdb-5.3.so") == "libdb5.3"
    assert contents.debian_package("libunknown.so.3") is None
    assert contents.debian_package("libEGL.so.1") == "libegl1"


def test_optional_plugins_of_qt_require_no_package(tmp_path, monkeypatch):
    theme = tmp_path / "PySide6" / "Qt" / "plugins" / "platformthemes" / "libqgtk3.so"
    theme.parent.mkdir(parents=True)
    theme.write_bytes(b"\x7fELF")
    monkeypatch.setattr(contents, "dynamic_section", lambda path: (["libgtk-3.so.0"], []))
    assert set(contents.system_libraries(tmp_path)) == set(contents.LOADED_BY_NAME)


def test_libraries_loaded_by_name_have_a_package():
    assert set(contents.LOADED_BY_NAME) <= set(PACKAGES)


@pytest.mark.parametrize(
    ("python", "debian"),
    [("1.0.0rc1", "1.0.0~rc1"), ("1.0.0", "1.0.0"), ("1.1.0.dev3", "1.1.0~dev3"), ("2.0.0b2", "2.0.0~b2")],
)
def test_versions_sort_in_debian_as_in_python(python, debian):
    assert linux.debian_version(python) == debian


@pytest.fixture
def program(tmp_path) -> Path:
    """Create a small folder that replaces the program's."""
    folder = tmp_path / "work" / "decodescope"
    (folder / "_internal").mkdir(parents=True)
    (folder / "decodescope").write_text("#!/bin/sh\n")
    (folder / "decodescope").chmod(0o700)
    (folder / "_internal" / "THIRD_PARTY.txt").write_text("licences\n")
    (folder / "_internal" / "b.so").write_bytes(b"b")
    (folder / "_internal" / "b.so").chmod(0o664)
    (folder / "_internal" / "a.so").symlink_to("b.so")
    return folder


def build_of(program: Path, root: Path, output: Path, version: str = "1.0.0") -> tools.Build:
    output.mkdir(exist_ok=True)
    return tools.Build(program, version, "x86_64", root, Path(sys.executable), output, EPOCH, 0)


@TOOLCHAIN
def test_linux_packages_have_the_expected_content(program, root, tmp_path):
    output = tmp_path / "output"
    archive, package = linux.make_packages(build_of(program, root, output, "1.0.0rc1"))
    assert archive.name == "decodescope-1.0.0rc1-linux-x86_64.tar.xz"
    assert package.name == "decodescope_1.0.0~rc1_amd64.deb"
    with tarfile.open(archive) as packed:
        members = {member.name: member for member in packed}
    assert list(members) == ["decodescope", *(f"decodescope/{name}" for name in (
        "_internal", "_internal/THIRD_PARTY.txt", "_internal/a.so", "_internal/b.so", "decodescope",
    ))]  # fmt: skip
    assert members["decodescope/decodescope"].mode == 0o755
    assert members["decodescope/_internal/b.so"].mode == 0o644
    assert {(member.mtime, member.uid, member.uname) for member in members.values()} == {(EPOCH, 0, "")}

    control = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, text=True, check=True).stdout
    fields = dict(re.findall(r"^([\w-]+): (.*)$", control, re.MULTILINE))
    assert (fields["Version"], fields["Architecture"]) == ("1.0.0~rc1", "amd64")
    assert "libdbus-1-3" in fields["Depends"]
    unpacked = tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "--raw-extract", package, unpacked], check=True)
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if not path.is_dir()}
    assert files == {
        "DEBIAN/control", "DEBIAN/md5sums",
        "opt/decodescope/_internal/THIRD_PARTY.txt", "opt/decodescope/_internal/a.so", "opt/decodescope/_internal/b.so",
        "opt/decodescope/decodescope", "usr/bin/decodescope", "usr/share/applications/decodescope.desktop",
        "usr/share/doc/decodescope/THIRD_PARTY.txt", "usr/share/doc/decodescope/changelog.gz",
        "usr/share/doc/decodescope/copyright", "usr/share/icons/hicolor/256x256/apps/decodescope.png",
        "usr/share/icons/hicolor/scalable/apps/decodescope.svg",
        "usr/share/icons/hicolor/scalable/mimetypes/application-x-decodescope-run.svg",
        "usr/share/man/man1/decodescope.1.gz", "usr/share/metainfo/org.decodescope.Decodescope.metainfo.xml",
        "usr/share/mime/packages/decodescope.xml",
    }  # fmt: skip
    assert os.readlink(unpacked / "usr" / "bin" / "decodescope") == "/opt/decodescope/decodescope"
    assert "MIT" in (unpacked / "usr/share/doc/decodescope/copyright").read_text()
    sums = (unpacked / "DEBIAN" / "md5sums").read_text().splitlines()
    assert len(sums) == len(files) - 4, "control files and links have none"
    assert {path.name for path in output.iterdir()} == {archive.name, package.name}


@TOOLCHAIN
def test_packages_are_reproducible(program, root, tmp_path):
    contents_ = []
    for number in range(2):
        os.utime(program / "_internal" / "b.so", (number, number))
        (program / "decodescope").chmod((0o700, 0o775)[number])
        files = linux.make_packages(build_of(program, root, tmp_path / str(number)))
        contents_.append([file.read_bytes() for file in files])
    assert contents_[0] == contents_[1]


@TOOLCHAIN
def test_machine_that_cannot_build_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(linux.sysconfig, "get_config_var", lambda _: 1)
    linux.check_machine("x86_64")
    with pytest.raises(tools.InstallerError, match="riscv64"):
        linux.check_machine("riscv64")
    monkeypatch.setattr(linux.sysconfig, "get_config_var", lambda _: 0)
    with pytest.raises(tools.InstallerError, match="no shared library"):
        linux.check_machine("x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tools.InstallerError, match="Install dpkg"):
        linux.check_machine("x86_64")


def test_failed_build_leaves_the_output_folder_as_it_was(program, root, tmp_path, monkeypatch):
    """Package, bill of materials and checksums of an earlier build still belong together."""
    output, work = tmp_path / "output", tmp_path / "work"
    output.mkdir()
    before = {"decodescope_1.deb": "old", "decodescope-1-linux-installer.cdx.json": "{}", "SHA256SUMS-linux": "sums"}
    for name, text in before.items():
        (output / name).write_text(text)
    wheel = tmp_path / "decodescope-1.0.0-py3-none-any.whl"
    wheel.touch()
    (work / "dist").mkdir(parents=True)

    def pack(build: tools.Build) -> list[Path]:
        archive = build.output / "decodescope-1.0.0-linux-x86_64.tar.xz"
        archive.write_bytes(b"packed")
        if fails:
            raise tools.InstallerError("The disk is full.")
        return [archive]

    monkeypatch.setattr(installer.sys, "platform", "linux")
    for name, value in {
        "commit_date": lambda _: EPOCH, "make_environment": lambda *_: Path(sys.executable), "sizes": lambda _: "",
        "build_program": lambda *_: program, "strip_folder": lambda _: 0, "check_program": lambda *_: None,
        "check_licences": lambda *_: None, "update_check": lambda _: "", "run": lambda *_, **__: "{}",
    }.items():  # fmt: skip
        monkeypatch.setattr(installer, name, value)
    monkeypatch.setattr(linux, "check_machine", lambda _: None)
    monkeypatch.setattr(linux, "make_packages", pack)
    fails = True
    with pytest.raises(tools.InstallerError, match="The disk is full"):
        installer.make_installers(wheel, output, work)
    assert {path.name: path.read_text() for path in output.iterdir()} == before
    fails = False
    placed = installer.make_installers(wheel, output, work)
    assert [path.name for path in placed] == [
        "decodescope-1.0.0-linux-x86_64.tar.xz", "decodescope-1.0.0-linux-installer.cdx.json", "SHA256SUMS-linux",
    ]  # fmt: skip
    summed = {line.split()[1].lstrip("*") for line in placed[-1].read_text().splitlines()}
    assert summed == {path.name for path in placed[:-1]}
    assert {path.name for path in output.iterdir()} == {*before, *(path.name for path in placed)}


@pytest.mark.usefixtures("needs_compiler")
@pytest.mark.skipif(not sys.platform.startswith("linux") or sys.maxsize < 2**32, reason="reads ELF files")
def test_stripped_library_is_kept_only_if_it_loads(tmp_path, monkeypatch):
    source = tmp_path / "a.cpp"
    source.write_text('static int hidden(int a) { return a + 1; } extern "C" int shown(int a) { return hidden(a); }')
    library = tmp_path / "folder" / "liba.so.1"
    library.parent.mkdir()
    subprocess.run([find_compiler(), "-shared", "-fPIC", "-g", "-o", library, source], check=True)
    (library.parent / "text.so").write_text("INPUT(liba.so.1)")
    whole = library.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(stripping, "is_loadable", lambda _: False)
        assert stripping.strip_folder(library.parent) == 0
        assert library.read_bytes() == whole
    assert stripping.has_symbols(library)
    assert stripping.strip_folder(library.parent) == len(whole) - library.stat().st_size > 0
    assert not stripping.has_symbols(library)
    loaded = shutil.copy(library, tmp_path / "loaded.so")  # `library` is overwritten below
    assert ctypes.CDLL(loaded).shown(2) == 3
    assert sorted(path.name for path in library.parent.iterdir()) == ["liba.so.1", "text.so"]
    content = bytearray(library.read_bytes())
    (table,) = struct.unpack_from("<Q", content, 32)
    content[table + 16] ^= 1  # the address of the first segment
    library.write_bytes(content)
    assert not stripping.is_loadable(library)
    library.write_bytes(content[:70])
    with pytest.raises(tools.InstallerError, match="not a whole ELF file"):
        stripping.is_loadable(library)


@pytest.fixture
def needs_desktop_tools() -> None:
    if not all(map(shutil.which, ("desktop-file-validate", "appstreamcli", "man"))):
        pytest.skip("desktop-file-utils, appstream and man-db check the files for desktops, and are not installed")


@pytest.mark.usefixtures("needs_desktop_tools")
def test_desktop_files_are_valid(program, root, tmp_path):
    build = build_of(program, root, tmp_path / "output", "1.0.0rc1")
    folder = root / "packaging" / "desktop"
    metainfo = tmp_path / f"{linux.APPLICATION_ID}.metainfo.xml"
    metainfo.write_text(linux.metainfo_text(folder / metainfo.name, build.version, build.epoch))
    manual = tmp_path / "decodescope.1"
    manual.write_text(linux.manual_text(build), encoding="utf-8")
    checked = ["appstreamcli", "validate", "--no-net", str(metainfo)]
    reported = subprocess.run(checked, capture_output=True, text=True).stdout
    faults = [line for line in reported.splitlines() if re.match("[EW]:", line)]
    assert [line for line in faults if "url-homepage-missing" not in line] == []
    assert "Validation" in reported
    for command in (
        ["desktop-file-validate", folder / "decodescope.desktop"],
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", manual],
    ):
        answer = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        assert (answer.returncode, answer.stderr) == (0, ""), answer.stdout
    assert '<release version="1.0.0~rc1" date="2023-11-14" type="development"/>' in metainfo.read_text()


def test_homepage_of_the_publisher_is_in_the_package(root, monkeypatch):
    source = root / "packaging" / "desktop" / f"{linux.APPLICATION_ID}.metainfo.xml"
    monkeypatch.delenv(linux.HOMEPAGE, raising=False)
    assert "homepage" not in linux.metainfo_text(source, "1.0.0", EPOCH)
    assert "Homepage" not in linux.control_text("1.0.0", "amd64", "libc6", 1)
    monkeypatch.setenv(linux.HOMEPAGE, "https://a.example/?b=1&c")
    text = linux.metainfo_text(source, "1.0.0", EPOCH)
    assert ElementTree.fromstring(text).find("url[@type='homepage']").text == "https://a.example/?b=1&c"
    assert "Homepage: https://a.example/?b=1&c\n" in linux.control_text("1.0.0", "amd64", "libc6", 1)


def test_manual_page_names_every_option_and_command():
    from decodescope.app.start.cli.commands import COMMANDS
    from decodescope.app.start.cli.parser import make_parser

    text = manual_page.manual_page("1.0.0", "2026-01-01").replace("\\-", "-")
    assert [
        name for name in (*make_parser().options, *COMMANDS) if f"\\fB{name}" not in text and f".B {name}" not in text
    ] == []
    assert text.isascii()


def test_desktop_metainfo_and_file_type_agree(root):
    folder = root / "packaging" / "desktop"
    desktop = (folder / "decodescope.desktop").read_text(encoding="utf-8")
    metainfo = (folder / f"{linux.APPLICATION_ID}.metainfo.xml").read_text(encoding="utf-8")
    kind = re.search(r'mime-type type="([^"]+)"', (folder / "decodescope.xml").read_text(encoding="utf-8"))[1]
    assert f"MimeType={kind};" in desktop
    assert f"<mediatype>{kind}</mediatype>" in metainfo
    assert "Version=1.4\n" in desktop, "desktop-file-utils of Debian 12 refuses 1.5"
    version = re.search(r"^Name=(.+)$", desktop, re.MULTILINE)[1]
    assert f"<name>{version}</name>" in metainfo


def test_library_path_of_the_bundle_is_restored():
    changed = {"LD_LIBRARY_PATH": "/opt/decodescope/_internal", "LD_LIBRARY_PATH_ORIG": "/home/me/lib", "A": "b"}
    entry_point.restore_library_path(changed)
    assert changed == {"LD_LIBRARY_PATH": "/home/me/lib", "A": "b"}
    unset = {"LD_LIBRARY_PATH": "/opt/decodescope/_internal"}
    entry_point.restore_library_path(unset)
    assert unset == {}


def test_installed_program_runs_modules_like_python(tmp_path):
    """The labs start `sys.executable -m module job`, and in an installed program that is the program itself."""
    (tmp_path / "job.py").write_text("import sys; print(__name__, sys.argv[1:])")
    command = [sys.executable, entry_point.__file__, "-m", "job", "{}", "more"]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    answer = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert answer.stdout == "__main__ ['{}', 'more']\n", answer.stderr


def test_icons_have_all_sizes(root, tmp_path):
    from PIL import Image

    drawing = root / "resources" / "icons" / "decodescope.svg"
    with Image.open(icons.write_icon(drawing, tmp_path / "a.ico")) as icon:
        assert icon.info["sizes"] == {(size, size) for size in icons.SIZES[".ico"]}
    with Image.open(icons.write_icon(drawing, tmp_path / "a.icns")) as icon:
        assert icon.size == (1024, 1024)
    with Image.open(icons.write_icon(drawing, tmp_path / "a.png")) as icon:
        assert icon.size == (256, 256)
        assert icon.getpixel((0, 0))[3] == 0, "transparent corners"
        assert icon.getpixel((128, 40))[3] == 255
    with pytest.raises(KeyError):
        icons.write_icon(drawing, tmp_path / "a.gif")


def test_windows_script_defines_its_names_and_keeps_user_data(root, tmp_path, monkeypatch):
    text = windows.SCRIPT.read_text(encoding="utf-8")
    code = re.sub(r"^\s*;.*$", "", text, flags=re.MULTILINE)
    monkeypatch.setenv(windows.SIGN, "signtool sign {file}")
    given = windows.definitions(tmp_path, "1.0.0rc1", tmp_path / "a.ico", tmp_path / "a.exe")
    defined = {argument[2:].partition("=")[0] for argument in given if argument.startswith("-D")}
    defined |= set(re.findall(r"!define (\w+)", code))
    macros = set(re.findall(r"!macro \w+ (\w+)", code)) | {"GetSize"}
    assert set(re.findall(r"\$\{(\w+)\}", code)) <= defined | macros
    assert "-DNUMBERS=1.0.0.0" in given
    assert r'"Software\Classes\.decodescope" "" "${RUN_CLASS}"' in code
    assert re.findall(r'RMDir /r "([^"]+)"', code) == [r"$INSTDIR\_internal"] * 2, "only what the installer wrote"
    assert "APPDATA" not in code.replace("$LOCALAPPDATA\\Programs", "")


@pytest.fixture
def needs_nsis() -> None:
    if shutil.which("makensis") is None:
        pytest.skip("NSIS makes the installer for Windows, and is not installed")


@pytest.mark.usefixtures("needs_nsis")
def test_windows_installer_is_compiled(program, root, tmp_path, monkeypatch):
    monkeypatch.delenv(windows.SIGN, raising=False)
    (program / "_internal" / "LICENSE").write_text("MIT")
    windows.check_machine("AMD64")
    (built,) = windows.make_packages(build_of(program, root, tmp_path / "output", "1.0.0rc1"))
    assert built.name == "decodescope-1.0.0rc1-windows-x86_64.exe"
    assert built.read_bytes().startswith(b"MZ")
    monkeypatch.setenv(windows.SIGN, "signtool sign")
    with pytest.raises(tools.InstallerError, match=r"\{file\}"):
        windows.check_machine("AMD64")


def test_versions_for_windows_have_four_numbers():
    assert windows.version_numbers("1.2.3rc1") == "1.2.3.0"
    with pytest.raises(tools.InstallerError, match="three numbers"):
        windows.version_numbers("next")


def test_signing_commands_name_the_file(tmp_path, monkeypatch):
    signed = tmp_path / "a b.exe"
    signed.write_text("x")
    windows.sign(signed)  # nothing is set
    script = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('signed')"
    monkeypatch.setenv(windows.SIGN, f"'{Path(sys.executable).as_posix()}' -c \"{script}\" {{file}}")
    windows.sign(signed)
    assert signed.read_text() == "signed"
    with pytest.raises(tools.InstallerError, match=r"\{file\}"):
        tools.command_from("signtool sign", signed)
    with pytest.raises(tools.InstallerError, match="exit code 3"):
        tools.run([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(tools.InstallerError, match="Install some-package"):
        tools.require("no-program-of-this-name", "some-package")


def test_macos_signs_before_it_packs_and_notarises_last(tmp_path, monkeypatch):
    bundle, image = tmp_path / "Decodescope.app", tmp_path / "a.dmg"
    assert [command[0] for command in macos.commands(bundle, image, None, None)] == ["hdiutil"]
    steps = macos.commands(bundle, image, "Developer ID Application: A", "profile")
    assert [command[:2] for command in steps] == [
        ["codesign", "--force"], ["codesign", "--verify"], ["hdiutil", "create"], ["codesign", "--force"],
        ["xcrun", "notarytool"], ["xcrun", "stapler"],
    ]  # fmt: skip
    assert steps[0][-1] == str(bundle)
    assert steps[3][-1] == str(image)
    with macos.ENTITLEMENTS.open("rb") as file:
        assert all(plistlib.load(file).values())
    monkeypatch.setenv(macos.PROFILE, "profile")
    with pytest.raises(tools.InstallerError, match=macos.IDENTITY):
        macos.check_machine("arm64")


def test_file_that_is_not_our_wheel_raises_installer_error(tmp_path):
    wheel = tmp_path / "decodescope-1.0.0rc1-py3-none-any.whl"
    with pytest.raises(tools.InstallerError, match="no wheel"):
        installer.version_of(wheel)
    wheel.write_bytes(b"")
    assert installer.version_of(wheel) == "1.0.0rc1"
    with pytest.raises(tools.InstallerError, match="no wheel"):
        installer.version_of(tmp_path / "torch-1.whl")


def test_excluded_file_or_wrong_version_raises_installer_error(program):
    inside = program / "_internal"
    with pytest.raises(tools.InstallerError, match=r"not of version 2\.0"):
        installer.check_program(program, "2.0")
    (inside / "torch" / "include").mkdir(parents=True)
    (inside / "torch" / "include" / "a.h").write_text("")
    with pytest.raises(tools.InstallerError, match=r"torch/include/a\.h"):
        installer.check_program(program, "2.0")


def test_program_without_native_libraries_is_refused_where_they_exist(program, monkeypatch):
    (program / "_internal" / "decodescope-2.0.dist-info").mkdir()
    monkeypatch.setattr(installer, "target_of_this_machine", lambda: "linux-x86_64")
    monkeypatch.setattr(installer, "is_wanted", lambda: True)
    with pytest.raises(tools.InstallerError, match="no native libraries"):
        installer.check_program(program, "2.0")


def test_compiled_library_without_a_licence_is_refused(program):
    inside = program / "_internal"
    for name in ("a.so", "b.so"):
        (inside / name).unlink()
    (inside / "libz.so.1").write_bytes(b"z")
    (inside / "libQt6Core.so.6").symlink_to("libz.so.1")  # links lead to files that are checked themselves
    installer.check_licences(program, Path(sys.executable))
    (inside / "new.libs").mkdir()
    (inside / "new.libs" / "libnew.so.1").write_bytes(b"new")
    with pytest.raises(tools.InstallerError, match=r"new\.libs/libnew\.so\.1.*libraries\.toml"):
        installer.check_licences(program, Path(sys.executable))


@pytest.mark.parametrize(
    ("address", "filled", "expected"),
    [("", False, "does not look for new versions"), ("https://a.example/n.json", True, "https://a.example/n.json")],
)
def test_build_states_whether_it_looks_for_new_versions(monkeypatch, address, filled, expected):
    monkeypatch.setattr(installer, "run", lambda *_: json.dumps({"address": address, "filled": filled}))
    assert expected in installer.update_check(Path(sys.executable))
    monkeypatch.setattr(installer, "run", lambda *_: json.dumps({"address": "", "filled": True}))
    with pytest.raises(tools.InstallerError, match="both an https address and a key"):
        installer.update_check(Path(sys.executable))


def test_build_reads_the_source_of_new_versions_in_the_environment():
    assert installer.update_check(Path(sys.executable)) == (
        "resources/updates.toml is empty: this installer does not look for new versions."
    )


def test_the_table_of_sizes_names_the_largest_parts(program):
    (program / "_internal" / "torch").mkdir()
    (program / "_internal" / "torch" / "a.so").write_bytes(b"x" * 3_000_000)
    lines = installer.sizes(program).splitlines()
    assert lines[0].split() == ["3.0", "MB", "in", "all"]
    assert lines[1].split() == ["3.0", "MB", "torch"]


def test_hosted_workflow_covers_all_systems(root):
    workflow = (root / ".github" / "workflows" / "installers.yml").read_text(encoding="utf-8")
    assert workflow.count("packaging/installer.py") == 3
    assert workflow.count("--screenshot") == 3
    for name in (windows.SIGN, macos.IDENTITY, macos.PROFILE, linux.MAINTAINER):
        assert name in workflow
    release = (root / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "uses: ./.github/workflows/installers.yml" in release


class SpecCalls:
    """PyInstaller's names in a specification: they record what they are called with."""

    def __init__(self) -> None:
        self.made: list[tuple[str, tuple, dict]] = []

    def names(self) -> dict:
        def recorder(kind: str):
            def call(*arguments, **options):
                self.made.append((kind, arguments, options))
                return SimpleNamespace(pure=[], datas=[], binaries=[], scripts=[], kind=kind)

            return call

        return {kind: recorder(kind) for kind in ("Analysis", "PYZ", "EXE", "COLLECT", "BUNDLE")}


@pytest.mark.parametrize("platform", ["linux", "win32", "darwin"])
def test_specification_describes_the_programs_of_each_system(root, monkeypatch, platform):
    hooks = SimpleNamespace(collect_submodules=lambda name, **_: [name], copy_metadata=lambda name: [(name, ".")])
    monkeypatch.setitem(sys.modules, "PyInstaller", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "PyInstaller.utils", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "PyInstaller.utils.hooks", hooks)
    monkeypatch.setattr(licences, "third_party_text", lambda _: "licences\n")
    monkeypatch.setattr(metadata, "version", lambda _: "1.0.0rc1")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(sys, "path", [*sys.path])
    calls = SpecCalls()
    spec = root / "packaging" / "decodescope.spec"
    exec(compile(spec.read_text(encoding="utf-8"), spec, "exec"), {**calls.names(), "SPECPATH": str(spec.parent)})
    kinds = [kind for kind, *_ in calls.made]
    programs = {options["name"]: options for kind, _, options in calls.made if kind == "EXE"}
    assert set(programs) == {"decodescope"} | ({"decodescope-console"} if platform == "win32" else set())
    assert [options["console"] for options in programs.values()] == [False, True][: len(programs)]
    suffix = {"win32": ".ico", "darwin": ".icns"}.get(platform)
    for options in programs.values():
        assert (Path(options["icon"]).suffix == suffix and Path(options["icon"]).is_file()) if suffix else True
    _, _, analysis = next(call for call in calls.made if call[0] == "Analysis")
    packed = {f"{target}/{Path(source).name}" for source, target in analysis["datas"] if Path(source).is_file()}
    assert {"decodescope/resources/licences/libraries.toml", "./LICENSE", "./THIRD_PARTY.txt"} <= packed
    assert set(contents.EXCLUDED_MODULES) <= set(analysis["excludes"])
    assert ("BUNDLE" in kinds) == (platform == "darwin")
    if platform == "darwin":
        bundle = calls.made[-1][2]
        plistlib.dumps(bundle["info_plist"])
        (kind,) = bundle["info_plist"]["UTExportedTypeDeclarations"]
        assert kind["UTTypeTagSpecification"]["public.filename-extension"] == ["decodescope"]
        assert bundle["bundle_identifier"] == linux.APPLICATION_ID
