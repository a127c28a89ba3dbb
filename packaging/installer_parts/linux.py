"""Pack the program's folder for Linux: as an archive that can be unpacked anywhere, and as a Debian package.

The package puts the folder into /opt, where programs of other makers belong (Filesystem Hierarchy Standard, 3.13), and
what the desktop looks for into /usr. It needs no maintainer scripts: the triggers of desktop-file-utils,
shared-mime-info and hicolor-icon-theme update their caches. Nothing in a home folder belongs to the package, so an
upgrade and a removal keep the settings, runs and models of all users.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

from installer_parts.contents import debian_package, system_libraries
from installer_parts.icons import write_icon
from installer_parts.tools import Build, InstallerError, require, run

HOME = Path("opt/decodescope")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
RENAMED = {"libglib2.0-0": "libglib2.0-0t64 | libglib2.0-0"}
"""Packages that have another name since Debian 13 and Ubuntu 24.04."""
RECOMMENDED = "ca-certificates, desktop-file-utils, hicolor-icon-theme, libportaudio2, shared-mime-info"
SUGGESTED = "espeak-ng, fonts-noto-cjk, g++, xdg-utils"
C_LIBRARY_VERSION = re.compile(rb"GLIBC_2\.(\d+)")
HOMEPAGE = "DECODESCOPE_HOMEPAGE"
"""Variable with the address of the publisher's page about the program."""
MAINTAINER = "DECODESCOPE_MAINTAINER"
"""Variable with name and address of who publishes the package."""
UNPUBLISHED = "The Decodescope authors <decodescope@localhost>"
DESCRIPTION = """\
desktop playground for text generation
 Watch a language model choose every token: which alternatives were likely,
 which filter removed which tokens, and why this one won.
 .
 Contains Python, PyTorch for the processor and small models, and needs no
 network."""


MANUAL = """
import sys
sys.path.insert(0, sys.argv[1])
from installer_parts.manual_page import manual_page
sys.stdout.write(manual_page(sys.argv[2], sys.argv[3]))
"""
APPLICATION_ID = "org.decodescope.Decodescope"


def check_machine(machine: str) -> None:
    """Raise InstallerError if the processor is unknown, a tool is missing, or PyInstaller cannot pack this Python."""
    if machine not in MACHINES:
        raise InstallerError(f"The processor {machine} is not known. Build on {' or '.join(MACHINES)}.")
    for tool, package in (("dpkg-deb", "dpkg"), ("xz", "xz-utils"), ("objdump", "binutils"), ("strip", "binutils")):
        require(tool, package)
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        raise InstallerError(
            "This Python has no shared library, which PyInstaller packs. Use Debian's: /usr/bin/python3 with the "
            "packages python3-venv and libpython3-dev."
        )


def make_packages(build: Build) -> list[Path]:
    """Write .tar.xz and .deb of the program's folder and return their paths. Raises InstallerError."""
    depends = dependencies(build.folder)
    name = f"decodescope-{build.version}-linux-{build.machine}"
    with tempfile.TemporaryDirectory(dir=build.folder.parent) as scratch:
        stage = stage_package(build, Path(scratch, "package"), depends)
        archive = write_archive(build.folder, build.output / f"{name}.tar.xz", "decodescope", build.epoch, build.level)
        package = build.output / f"decodescope_{debian_version(build.version)}_{MACHINES[build.machine]}.deb"
        build_package(stage, package, build.epoch, build.level)
    return [archive, package]


def write_archive(folder: Path, target: Path, top: str, epoch: int, level: int) -> Path:
    """Write the folder as .tar.xz below the name `top`: in alphabetical order, with one date and no owner. Needs xz."""

    def normalise(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    # Blocks of a fixed size, so that the number of processors does not change the bytes.
    command = [require("xz", "xz-utils"), f"-{level}", "-T0", "--block-size=64MiB", "--stdout"]
    with target.open("wb") as file, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file) as packer:
        assert packer.stdin is not None
        with packer.stdin, tarfile.open(fileobj=packer.stdin, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            archive.add(folder, top, filter=normalise)  # a folder's entries are added by name
    if packer.returncode:
        raise InstallerError(f"xz failed with exit code {packer.returncode}. Is the disk full?")
    return target


def stage_package(build: Build, stage: Path, depends: str) -> Path:
    """Make the tree of files of the Debian package in `stage` and return it. Files of the program are linked."""
    shutil.copytree(build.folder, stage / HOME, symlinks=True, copy_function=_link)
    share = stage / "usr" / "share"
    sources = build.root / "packaging" / "desktop"
    drawing = build.root / "resources" / "icons" / "decodescope.svg"
    icons = share / "icons" / "hicolor"
    documents = share / "doc" / "decodescope"
    for source, target in (
        (sources / "decodescope.desktop", share / "applications" / "decodescope.desktop"),
        (sources / "decodescope.xml", share / "mime" / "packages" / "decodescope.xml"),
        (drawing, icons / "scalable" / "apps" / "decodescope.svg"),
        (drawing, icons / "scalable" / "mimetypes" / "application-x-decodescope-run.svg"),
        (_third_party(build.folder), documents / "THIRD_PARTY.txt"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    raster = icons / "256x256" / "apps" / "decodescope.png"
    raster.parent.mkdir(parents=True)
    write_icon(drawing, raster)
    metainfo = share / "metainfo" / f"{APPLICATION_ID}.metainfo.xml"
    metainfo.parent.mkdir()
    metainfo.write_text(metainfo_text(sources / metainfo.name, build.version, build.epoch), encoding="utf-8")
    (documents / "copyright").write_text(copyright_text(build.root), encoding="utf-8")
    _write_gzip(documents / "changelog.gz", (build.root / "CHANGELOG.md").read_bytes(), build.epoch)
    _write_gzip(share / "man" / "man1" / "decodescope.1.gz", manual_text(build).encode(), build.epoch)
    launcher = stage / "usr" / "bin" / "decodescope"
    launcher.parent.mkdir(parents=True)
    launcher.symlink_to(f"/{HOME.as_posix()}/decodescope")
    _normalise(stage, build.epoch)
    size = sum(path.lstat().st_size for path in stage.rglob("*") if not path.is_dir()) // 1024 + 1
    information = stage / "DEBIAN"
    information.mkdir(mode=0o755)
    control = control_text(build.version, MACHINES[build.machine], depends, size)
    (information / "control").write_text(control, encoding="utf-8")
    (information / "md5sums").write_text(_md5sums(stage), encoding="utf-8")
    return stage


def manual_text(build: Build) -> str:
    """Return the manual page, made from the command line of the program in the environment."""
    date = _date(build.epoch)
    return run([build.python, "-c", MANUAL, build.root / "packaging", build.version, date], folder=build.output)


def metainfo_text(source: Path, version: str, epoch: int) -> str:
    """Return the description for software centres (AppStream) with this version as its release, and the homepage that
    the publisher has set.
    """
    text = source.read_text(encoding="utf-8")
    kind = "development" if re.search(r"[a-z]", version) else "stable"
    release = f'<release version="{debian_version(version)}" date="{_date(epoch)}" type="{kind}"/>'
    homepage = os.environ.get(HOMEPAGE)
    url = f'  <url type="homepage">{escape(homepage)}</url>\n' if homepage else ""
    return text.replace("</component>", f"{url}  <releases>\n    {release}\n  </releases>\n</component>")


def build_package(stage: Path, target: Path, epoch: int, level: int) -> Path:
    """Pack a staged tree as a Debian package, owned by root."""
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    command = [require("dpkg-deb", "dpkg"), "--root-owner-group", "-Zxz", f"-z{level}", "--build", stage, target]
    run(command, variables=variables)
    return target


def debian_version(version: str) -> str:
    """Return a Python version as Debian writes and sorts it: 1.0.0rc1, which precedes 1.0.0, is 1.0.0~rc1."""
    return re.sub(r"(a|b|rc|\.?dev)(\d+)", lambda found: f"~{found[1].lstrip('.')}{found[2]}", version)


def dependencies(folder: Path) -> str:
    """Return the Depends field for a program's folder. Raises InstallerError for libraries of unknown packages."""
    packages, unknown = set(), []
    for library, needed_by in sorted(system_libraries(folder).items()):
        package = debian_package(library)
        if package is None:
            unknown.append(f"{library} (needed by {needed_by})")
        else:
            packages.add(RENAMED.get(package, package))
    if unknown:
        raise InstallerError(
            f"The packages of these libraries are not known: {', '.join(unknown)}. Install the libraries, add them to "
            "PACKAGES in app/start/qt_libraries.py, or leave out the files that need them in "
            "packaging/installer_parts/contents.py."
        )
    return ", ".join([f"libc6 (>= 2.{oldest_c_library(folder)})", *sorted(packages)])


def oldest_c_library(folder: Path) -> int:
    """Return the minor version of the oldest glibc that has all symbols which the folder's programs use."""
    versions = [17]
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and (path.suffix in {".so", ""} or ".so." in path.name):
            content = path.read_bytes()
            if content.startswith(b"\x7fELF"):
                versions += [int(found) for found in C_LIBRARY_VERSION.findall(content)]
    return max(versions)


def control_text(version: str, architecture: str, depends: str, size: int) -> str:
    """Return the control file; `size` is that of the installed files in KiB."""
    homepage = f"Homepage: {os.environ[HOMEPAGE]}\n" if os.environ.get(HOMEPAGE) else ""
    return (
        f"Package: decodescope\nVersion: {debian_version(version)}\nArchitecture: {architecture}\n"
        f"Maintainer: {os.environ.get(MAINTAINER, UNPUBLISHED)}\nInstalled-Size: {size}\nDepends: {depends}\n"
        f"Recommends: {RECOMMENDED}\nSuggests: {SUGGESTED}\n"
        f"Section: science\nPriority: optional\n{homepage}Description: {DESCRIPTION}\n"
    )


def copyright_text(root: Path) -> str:
    """Return the copyright file: the program's licence, and where those of its parts are."""
    licence = (root / "LICENSE").read_text(encoding="utf-8")
    return (
        f"{licence}\nThe package contains libraries of other authors. Their licences are in "
        "/usr/share/doc/decodescope/THIRD_PARTY.txt.\n"
    )


def _third_party(folder: Path) -> Path:
    return folder / "_internal" / "THIRD_PARTY.txt"


def _date(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d")


def _write_gzip(target: Path, content: bytes, epoch: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=epoch) as packed:
        packed.write(content)


def _link(source: str, target: str) -> None:
    """Link a file instead of copying it, since the tree is on the same disk."""
    os.link(source, target, follow_symlinks=False)


def _normalise(stage: Path, epoch: int) -> None:
    """Give all files and folders the modes of a system's package and one date, whatever the builder's."""
    for path in (stage, *stage.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def _md5sums(stage: Path) -> str:
    """Return the checksums of all files, as `dpkg --verify` reads them."""
    lines = []
    for path in sorted(path for path in stage.rglob("*") if path.is_file() and not path.is_symlink()):
        name = path.relative_to(stage).as_posix()
        if not name.startswith("DEBIAN/"):
            with path.open("rb") as file:
                lines.append(f"{hashlib.file_digest(file, 'md5').hexdigest()}  {name}\n")
    return "".join(lines)
