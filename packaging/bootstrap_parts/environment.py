"""The virtual environment: whether it is whole, what it lacks, and how it is made or mended."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bootstrap_parts import pip
from bootstrap_parts.errors import SetupError
from bootstrap_parts.failures import diagnose
from bootstrap_parts.lock import one_at_a_time

STAMP = "tokenscope.json"
QT_PACKAGES = {"pyside6-essentials", "pyqtgraph", "qasync", "pytest-qt"}


class Wanted:
    """What an environment should hold: the program, some of its extras, and Qt or not."""

    def __init__(self, extras: tuple[str, ...] = (), qt: bool = True) -> None:
        self.extras, self.qt = extras, qt

    def requirements(self, project: Path) -> list[str]:
        """pip's arguments. Without Qt they are the project's requirements less those that need a screen."""
        if self.qt:
            return ["--editable", f"{project.parent}[{','.join(self.extras)}]" if self.extras else str(project.parent)]
        return [line for line in requirements_in(project, self.extras) if name_of(line) not in QT_PACKAGES]


class Environment:
    """One virtual environment in the project's folder.

    Its stamp is written last, so an environment without one is half-made; it records what was installed and from
    which pyproject.toml, so that the next call need not ask pip.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.folder = root, root / name
        self.project = root / "pyproject.toml"
        self.stamp_file = self.folder / STAMP

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def site_packages(self) -> Path:
        if os.name == "nt":
            return self.folder / "Lib" / "site-packages"
        return self.folder / "lib" / "python{}.{}".format(*sys.version_info[:2]) / "site-packages"

    def prepare(self, wanted: Wanted) -> None:
        """Make, mend or complete the environment; at once if it is ready.

        Raises:
            SetupError: It cannot be done, with the cause and the remedy.
        """
        with one_at_a_time(self.root):
            broken = self.why_broken()
            if broken:
                self.make(broken)
            incomplete = self.why_incomplete(wanted)
            if incomplete:
                print(f"{self.folder.name}: {incomplete}; installing. The first time takes some minutes.", flush=True)
                self.install(wanted)

    def why_broken(self) -> str | None:
        """Why it must be made anew, in words, or None."""
        if not os.path.lexists(str(self.folder)):
            return "does not exist yet"
        if not (self.folder / "pyvenv.cfg").is_file():
            return "has no pyvenv.cfg"
        if not self.python.is_file():
            return "has no Python in it, or that Python has been removed from this machine"
        return self.why_stamp_says_broken() or self.why_python_fails()

    def why_stamp_says_broken(self) -> str | None:
        stamp = self.stamp()
        if stamp is None:
            return "is half-made (its last set-up did not finish)"
        here = "{}.{}".format(*sys.version_info[:2])
        if stamp["python"] != here:
            return f"was made by Python {stamp['python']}, and this is Python {here}"
        if stamp["root"] != str(self.root):
            return f"was made in another folder, {stamp['root']}"
        if not (self.site_packages / "pip").is_dir():
            return "has no pip"
        gone = sorted(set(stamp["contents"]) - set(contents(self.site_packages)))
        return f"is damaged ({', '.join(gone[:3])}{' and more' if gone[3:] else ''} missing)" if gone else None

    def why_python_fails(self) -> str | None:
        """A Python that was upgraded or moved away leaves a link that exists and does not start."""
        command = [str(self.python), "-I", "-c", "import encodings, site"]
        try:
            code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode
        except (OSError, subprocess.SubprocessError):
            code = 1
        return "has a Python that does not start" if code else None

    def why_incomplete(self, wanted: Wanted) -> str | None:
        """Why pip must be asked, in words, or None."""
        stamp = self.stamp()
        if stamp is None:
            return "nothing is installed yet"
        if stamp["project"] != self.fingerprint():
            return "pyproject.toml has changed"
        missing = sorted(set(wanted.extras) - set(stamp["extras"]))
        return f"{' and '.join(missing)} not installed yet" if missing else None

    def make(self, reason: str) -> None:
        """Remove what is there and make an empty environment."""
        print(f"{self.folder.name} {reason}: making it with Python {sys.version.split()[0]}.", flush=True)
        check_venv_module()
        self.remove()
        # Called from inside an environment, its own Python would make one that depends on it.
        python = getattr(sys, "_base_executable", None) or sys.executable
        made = subprocess.run(
            [python, "-m", "venv", str(self.folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if made.returncode:
            raise diagnose(made.stdout.decode(errors="replace").splitlines(), self.folder)

    def remove(self) -> None:
        try:
            if self.folder.is_symlink() or self.folder.is_file():
                self.folder.unlink()
            elif self.folder.exists():
                shutil.rmtree(str(self.folder))
        except OSError as error:
            raise SetupError(
                f"{self.folder} cannot be removed: {error}.",
                "close every Tokenscope and editor that uses it, or delete the folder by hand, and try again.",
            ) from error

    def install(self, wanted: Wanted) -> None:
        """Ask pip for everything wanted. If pip gives up it leaves all as it was, and so does this."""
        before = self.stamp_file.read_text() if self.stamp_file.exists() else None
        extras = tuple(sorted(set(wanted.extras) | set((self.stamp() or {"extras": []})["extras"])))
        if before is not None:
            self.stamp_file.unlink()
        try:
            pip.install(self.python, ["pip>=24.1"], self.folder, bar="off")
            pip.install(self.python, Wanted(extras, wanted.qt).requirements(self.project), self.folder)
        except SetupError:
            if before is not None:
                self.stamp_file.write_text(before)
            raise
        self.write_stamp(extras)

    def fingerprint(self) -> str:
        return hashlib.sha256(self.project.read_bytes()).hexdigest()

    def stamp(self) -> dict | None:
        """What was recorded when the last installation ended, or None."""
        try:
            stamp = json.loads(self.stamp_file.read_text(encoding="utf-8"))
            return stamp if {"project", "root", "python", "extras", "contents"} <= set(stamp) else None
        except (OSError, ValueError, TypeError):
            return None

    def write_stamp(self, extras: tuple[str, ...]) -> None:
        stamp = {
            "project": self.fingerprint(),
            "root": str(self.root),
            "python": "{}.{}".format(*sys.version_info[:2]),
            "extras": sorted(extras),
            "contents": contents(self.site_packages),
        }
        try:
            self.stamp_file.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
        except OSError as error:
            raise diagnose([str(error)], self.folder) from error


def contents(site_packages: Path) -> list[str]:
    """What must be there for the packages to import: each entry, and what lies directly in it.

    pip is left out, for it may be upgraded by hand.
    """
    return sorted(
        f"{entry.name}/{inner}" if inner else entry.name
        for entry in map(site_packages.joinpath, inside(site_packages))
        if not re.match(r"pip\b", entry.name)
        for inner in (inside(entry) or [""])
    )


def inside(entry: Path) -> list[str]:
    """The names in a folder; nothing for a file, or where there is nothing."""
    return [name for name in os.listdir(str(entry)) if name != "__pycache__"] if entry.is_dir() else []


def check_venv_module() -> None:
    """Debian splits `venv` off; without it `python -m venv` ends in the middle."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return
    package = "python{}.{}-venv".format(*sys.version_info[:2])
    raise SetupError(
        "this Python has no venv module, which makes the environment.",
        f"on Debian and Ubuntu: sudo apt install {package}; elsewhere install the full Python from python.org.",
    )


def requirements_in(project: Path, extras: tuple[str, ...]) -> list[str]:
    import tomllib

    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    chosen = (table["optional-dependencies"][extra] for extra in extras)
    return [*table["dependencies"], *(line for lines in chosen for line in lines)]


def name_of(requirement: str) -> str:
    """A requirement's distribution, normalised: "PySide6_Essentials>=6.8" is "pyside6-essentials"."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement.strip()).group()).lower()
