"""Find the system libraries that Qt's plugins need and this Linux lacks, and name the packages that contain them.

Used by the program before it starts Qt, and by `packaging/bootstrap.py`, which loads this file by its path. Therefore
it uses only the standard library and is valid Python 3.7.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

# Library: its package on Debian, on Fedora, on Arch.
PACKAGES = {
    "libEGL.so.1": ("libegl1", "libglvnd-egl", "libglvnd"),
    "libGL.so.1": ("libgl1", "libglvnd-glx", "libglvnd"),
    "libGLX.so.0": ("libglx0", "libglvnd-glx", "libglvnd"),
    "libICE.so.6": ("libice6", "libICE", "libice"),
    "libOpenGL.so.0": ("libopengl0", "libglvnd-opengl", "libglvnd"),
    "libSM.so.6": ("libsm6", "libSM", "libsm"),
    "libX11-xcb.so.1": ("libx11-xcb1", "libX11-xcb", "libx11"),
    "libX11.so.6": ("libx11-6", "libX11", "libx11"),
    "libbrotlicommon.so.1": ("libbrotli1", "libbrotli", "brotli"),
    "libbrotlidec.so.1": ("libbrotli1", "libbrotli", "brotli"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus-libs", "dbus"),
    "libdrm.so.2": ("libdrm2", "libdrm", "libdrm"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype", "freetype2"),
    "libgbm.so.1": ("libgbm1", "mesa-libgbm", "mesa"),
    "libgcc_s.so.1": ("libgcc-s1", "libgcc", "gcc-libs"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libgssapi_krb5.so.2": ("libgssapi-krb5-2", "krb5-libs", "krb5"),
    "libgthread-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libstdc++.so.6": ("libstdc++6", "libstdc++", "gcc-libs"),
    "libwayland-client.so.0": ("libwayland-client0", "libwayland-client", "wayland"),
    "libwayland-cursor.so.0": ("libwayland-cursor0", "libwayland-cursor", "wayland"),
    "libwayland-egl.so.1": ("libwayland-egl1", "libwayland-egl", "wayland"),
    "libwayland-server.so.0": ("libwayland-server0", "libwayland-server", "wayland"),
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    "libxcb-glx.so.0": ("libxcb-glx0", "libxcb", "libxcb"),
    "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image", "xcb-util-image"),
    "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    "libxcb-randr.so.0": ("libxcb-randr0", "libxcb", "libxcb"),
    "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil", "xcb-util-renderutil"),
    "libxcb-render.so.0": ("libxcb-render0", "libxcb", "libxcb"),
    "libxcb-shape.so.0": ("libxcb-shape0", "libxcb", "libxcb"),
    "libxcb-shm.so.0": ("libxcb-shm0", "libxcb", "libxcb"),
    "libxcb-sync.so.1": ("libxcb-sync1", "libxcb", "libxcb"),
    "libxcb-util.so.1": ("libxcb-util1", "xcb-util", "xcb-util"),
    "libxcb-xfixes.so.0": ("libxcb-xfixes0", "libxcb", "libxcb"),
    "libxcb-xkb.so.1": ("libxcb-xkb1", "libxcb", "libxcb"),
    "libxcb.so.1": ("libxcb1", "libxcb", "libxcb"),
    "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    "libz.so.1": ("zlib1g", "zlib", "zlib"),
    "libzstd.so.1": ("libzstd1", "libzstd", "zstd"),
}
QT_NEEDS = (
    "libEGL.so.1", "libGL.so.1", "libX11.so.6", "libdbus-1.so.3", "libfontconfig.so.1", "libfreetype.so.6",
    "libgcc_s.so.1", "libglib-2.0.so.0", "libgthread-2.0.so.0", "libstdc++.so.6", "libxkbcommon.so.0", "libz.so.1",
    "libzstd.so.1",
)  # fmt: skip
"""System libraries that QtWidgets needs: what is checked before Qt is installed."""
PLATFORM_NEEDS = {
    "offscreen": (),
    "wayland": ("libwayland-client.so.0", "libwayland-cursor.so.0"),
    "xcb": (
        "libX11-xcb.so.1", "libxcb-cursor.so.0", "libxcb-icccm.so.4", "libxcb-image.so.0", "libxcb-keysyms.so.1",
        "libxcb-randr.so.0", "libxcb-render-util.so.0", "libxcb-render.so.0", "libxcb-shape.so.0", "libxcb-shm.so.0",
        "libxcb-sync.so.1", "libxcb-util.so.1", "libxcb-xfixes.so.0", "libxcb-xkb.so.1", "libxcb.so.1",
        "libxkbcommon-x11.so.0",
    ),
}  # fmt: skip
"""System libraries that a platform plugin needs besides these."""
INSTALLERS = {"debian": "apt install", "fedora": "dnf install", "arch": "pacman -S"}
FAMILIES = {"debian": 0, "fedora": 1, "arch": 2}
OS_RELEASE = "/etc/os-release"
PLUGIN_FOLDER = "QT_QPA_PLATFORM_PLUGIN_PATH"
"""Variable that names a folder where Qt looks for platform plugins first."""
NOT_FOUND = re.compile(r"(?:Error loading shared library )?([^\s:]+): (?:cannot open shared object|No such file)")
"""The loader's message about a missing library: glibc, then musl."""
MISSING = "Qt needs system libraries that are missing: {libraries}."
ELF_64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
SEGMENT_LOAD, SEGMENT_DYNAMIC = 1, 2
TAG_NEEDED, TAG_STRINGS, TAG_RPATH, TAG_RUNPATH = 1, 5, 15, 29


def platform_names(variables: Mapping[str, str]) -> list[str]:
    """Return the platforms that Qt tries, in its order."""
    if variables.get("QT_QPA_PLATFORM"):
        return [part.split(":")[0] for part in variables["QT_QPA_PLATFORM"].split(";")]
    return ["wayland"] * bool(variables.get("WAYLAND_DISPLAY")) + ["xcb"] * bool(variables.get("DISPLAY"))


def platform_plugins(folder: Path, variables: Mapping[str, str]) -> list[Path]:
    """Return the files of the platform plugins that Qt tries; ``folder`` is Qt's folder of plugins."""
    own = [Path(part) for part in variables.get(PLUGIN_FOLDER, "").split(os.pathsep) if part]
    folders = [*own, folder / "platforms"]
    found = []
    for name in platform_names(variables):
        for place in folders:
            plugins = sorted(place.glob(f"libq{name}.so")) or sorted(place.glob(f"libq{name}-*.so"))
            found += plugins
            if plugins:
                break
    return found


def missing_for_platform(
    plugins: Iterable[Path], find_missing: Callable[[list[Path]], set[str]] | None = None
) -> set[str]:
    """Return the libraries that the plugins lack: none if one plugin is usable, otherwise those of the plugin that
    lacks the fewest.
    """
    lacking = [(find_missing or missing_libraries)([plugin]) for plugin in plugins]
    return min(lacking, key=len) if lacking and all(lacking) else set()


def missing_before_installation(
    variables: Mapping[str, str], find_missing: Callable[[str], set[str]] | None = None
) -> set[str]:
    """Return the libraries that Qt will lack on the platforms of the variables, as `missing_for_platform` does."""
    find = find_missing or missing_when_loaded
    missing = set().union(*map(find, QT_NEEDS))
    platforms = [name for name in platform_names(variables) if name in PLATFORM_NEEDS]
    lacking = [set().union(*map(find, PLATFORM_NEEDS[name])) for name in platforms]
    return missing | (min(lacking, key=len) if lacking and all(lacking) else set())


def explain_missing(libraries: Iterable[str]) -> str:
    """Return which libraries are missing and the command that installs them."""
    names = set(libraries)
    return f"{MISSING.format(libraries=', '.join(sorted(names)))} To install them: {remedy(names)}"


def missing_libraries(binaries: Iterable[Path]) -> set[str]:
    """Return the system libraries that the loader cannot find for the binaries.

    Libraries in the folders of a binary (those of Qt itself) are followed through their headers; only system libraries
    are loaded. The result is empty for files that are not ELF binaries.
    """
    pending = list(binaries)
    seen: set[Path | str] = set()
    missing: set[str] = set()
    while pending:
        binary = pending.pop()
        if binary in seen:
            continue
        seen.add(binary)
        needed, folders = dynamic_section(binary)
        for name in needed:
            bundled = [folder / name for folder in folders if (folder / name).exists()]
            if bundled:
                pending.append(bundled[0].resolve())
            elif name not in seen:
                seen.add(name)
                missing |= missing_when_loaded(name)
    return missing


def missing_when_loaded(name: str) -> set[str]:
    """Return what the loader cannot find for a system library: the library itself, or one that it needs."""
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return library_in(str(error))
    return set()


def library_in(message: str) -> set[str]:
    """Return the library that a loader message reports as missing; empty for other messages."""
    found = NOT_FOUND.search(message)
    return {os.path.basename(found.group(1))} if found else set()


def dynamic_section(binary: Path) -> tuple[list[str], list[Path]]:
    """Return the libraries that an ELF file needs, and the folders where it looks for them."""
    try:
        with open(str(binary), "rb") as file:
            header = file.read(64)
            if len(header) < 64 or not header.startswith(ELF_64_LITTLE_ENDIAN):
                return [], []
            (table,), (size, count) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<HH", header, 54)
            segments = []
            for index in range(count):
                file.seek(table + index * size)
                kind, _, offset, address, _, length = struct.unpack("<IIQQQQ", file.read(40))
                segments.append((kind, offset, address, length))
            entries: list[tuple[int, int]] = []
            for kind, offset, _, length in segments:
                if kind == SEGMENT_DYNAMIC:
                    file.seek(offset)
                    entries += struct.iter_unpack("<qQ", file.read(length // 16 * 16))
            strings = dict(entries).get(TAG_STRINGS, 0)
            start = next(
                offset + strings - address
                for kind, offset, address, length in segments
                if kind == SEGMENT_LOAD and address <= strings < address + length
            )

            def text(position: int) -> str:
                file.seek(start + position)
                content, end, _ = file.read(4096).partition(b"\0")
                if not end:
                    raise ValueError("the file is cut off")
                return content.decode(errors="replace")

            needed = [text(value) for tag, value in entries if tag == TAG_NEEDED]
            paths = [text(value) for tag, value in entries if tag in (TAG_RPATH, TAG_RUNPATH)]
    except (OSError, ValueError, struct.error, StopIteration):
        return [], []
    origin = str(binary.resolve().parent)
    folders = [part for path in paths for part in path.split(":") if part]
    return needed, [Path(part.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)) for part in folders]


def remedy(missing: set[str], os_release: str | None = None) -> str:
    """Return the command that installs the libraries here, or one command per distribution family if the system is
    unknown.
    """
    family = family_of(read_os_release() if os_release is None else os_release)
    known = sorted(name for name in missing if name in PACKAGES)
    unknown = sorted(missing - set(known))
    families = ([family] if family else list(FAMILIES)) if known else []
    lines = [f"{sudo()}{INSTALLERS[one]} {packages_of(known, one)}" for one in families]
    if unknown:
        lines.append(f"find the packages that hold {', '.join(unknown)} and install them")
    return " | ".join(lines)


def sudo() -> str:
    """Return the prefix that runs a command as root; empty for root itself, which often has no sudo."""
    return "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "


def packages_of(libraries: list[str], family: str) -> str:
    """Return the packages that contain the libraries, without repetition."""
    return " ".join(sorted({PACKAGES[name][FAMILIES[family]] for name in libraries}))


def family_of(os_release: str) -> str | None:
    """Return "debian", "fedora" or "arch" for these systems and their derivatives, or None for others."""
    ids = re.findall(r'^ID(?:_LIKE)?="?([^"\n]*)"?$', os_release, re.MULTILINE)
    words = " ".join(ids).replace("rhel", "fedora").replace("ubuntu", "debian").split()
    return next((word for word in words if word in FAMILIES), None)


def read_os_release() -> str:
    """Return the content of the file that describes this system; empty if there is none."""
    try:
        return Path(OS_RELEASE).read_text(encoding="utf-8")
    except OSError:
        return ""
