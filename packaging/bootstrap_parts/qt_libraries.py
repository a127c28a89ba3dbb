"""System libraries that Qt's wheels expect of a Linux: which are missing, and which packages hold them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bootstrap_parts.errors import SetupError

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
    "libdbus-1.so.3": ("libdbus-1-3", "dbus-libs", "dbus"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype", "freetype2"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libgssapi_krb5.so.2": ("libgssapi-krb5-2", "krb5-libs", "krb5"),
    "libgthread-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libstdc++.so.6": ("libstdc++6", "libstdc++", "gcc-libs"),
    "libwayland-client.so.0": ("libwayland-client0", "libwayland-client", "wayland"),
    "libwayland-cursor.so.0": ("libwayland-cursor0", "libwayland-cursor", "wayland"),
    "libwayland-egl.so.1": ("libwayland-egl1", "libwayland-egl", "wayland"),
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
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
INSTALLERS = {"debian": "apt install", "fedora": "dnf install", "arch": "pacman -S"}
FAMILIES = {"debian": 0, "fedora": 1, "arch": 2}
OS_RELEASE = "/etc/os-release"


def has_screen(variables: dict[str, str]) -> bool:
    """Whether a window can be shown; only a Linux can be without a graphical session."""
    names = ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY")
    return not sys.platform.startswith("linux") or any(variables.get(name) for name in names)


def check(site_packages: Path, variables: dict[str, str]) -> None:
    """Make sure that Qt can show its windows where the variables say.

    Raises:
        SetupError: There is no screen, or libraries are missing; names the packages that hold them.
    """
    if not sys.platform.startswith("linux"):
        return
    if not has_screen(variables):
        raise SetupError(
            "there is no screen: neither DISPLAY nor WAYLAND_DISPLAY is set.",
            "start it in a desktop session (over ssh with -X), or draw into a file with --screenshot FILE.",
        )
    qt = site_packages / "PySide6" / "Qt"
    missing = missing_of([qt / "lib" / "libQt6Widgets.so.6"])
    lacking = [missing_of([plugin]) for plugin in plugins(qt, variables)]
    if lacking and all(lacking):  # one platform that works is enough
        missing |= min(lacking, key=len)
    if missing:
        raise SetupError(f"Qt needs system libraries that are missing: {', '.join(sorted(missing))}.", remedy(missing))


def plugins(qt: Path, variables: dict[str, str]) -> list[Path]:
    """The platform plugins Qt may choose from, as its own rules have it."""
    if variables.get("QT_QPA_PLATFORM"):
        names = [part.split(":")[0] for part in variables["QT_QPA_PLATFORM"].split(";")]
    else:
        names = ["wayland"] * bool(variables.get("WAYLAND_DISPLAY")) + ["xcb"] * bool(variables.get("DISPLAY"))
    folder = qt / "plugins" / "platforms"
    return [plugin for name in names for plugin in sorted(folder.glob(f"libq{name}*.so"))]


def missing_of(binaries: list[Path]) -> set[str]:
    """Libraries that the loader does not find for any of the binaries."""
    found: set[str] = set()
    for binary in binaries:
        if binary.exists() and shutil.which("ldd"):
            answer = subprocess.run(["ldd", str(binary)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            found |= not_found_in(answer.stdout.decode(errors="replace"))
    return found


def not_found_in(answer: str) -> set[str]:
    """The libraries that `ldd` could not find."""
    return set(re.findall(r"^\s*(\S+) => not found", answer, re.MULTILINE))


def remedy(missing: set[str], os_release: str | None = None) -> str:
    """The command that installs them here, or the packages' names where the system is unknown."""
    family = family_of(read_os_release() if os_release is None else os_release)
    known = sorted(name for name in missing if name in PACKAGES)
    unknown = sorted(missing - set(known))
    families = ([family] if family else list(FAMILIES)) if known else []
    lines = [f"{sudo()}{INSTALLERS[one]} {packages_of(known, one)}" for one in families]
    if unknown:
        lines.append(f"find the packages that hold {', '.join(unknown)} and install them")
    return " | ".join(lines)


def sudo() -> str:
    """Root, in a container say, needs none and often has none."""
    return "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "


def packages_of(libraries: list[str], family: str) -> str:
    return " ".join(sorted({PACKAGES[name][FAMILIES[family]] for name in libraries}))


def family_of(os_release: str) -> str | None:
    """Debian, Fedora or Arch, or what is made from one of them."""
    ids = re.findall(r'^ID(?:_LIKE)?="?([^"\n]*)"?$', os_release, re.MULTILINE)
    words = " ".join(ids).replace("rhel", "fedora").replace("ubuntu", "debian").split()
    return next((word for word in words if word in FAMILIES), None)


def read_os_release() -> str:
    try:
        return Path(OS_RELEASE).read_text(encoding="utf-8")
    except OSError:
        return ""
