"""The virtual environment: whether it is whole, what it lacks, and how it is made or mended."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bootstrap_parts import pip, torch_build
from bootstrap_parts.errors import SetupError
from bootstrap_parts.failures import diagnose
from bootstrap_parts.lock import one_at_a_time
from bootstrap_parts.project import check_project, requirements_in
from bootstrap_parts.stamps import contents, libraries, read_stamp

STAMP = "decodescope.json"
STILL_WRITING = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EBUSY)
PATIENCE_SECONDS = 20.0
QT_PACKAGES = {"pyside6-essentials", "pyqtgraph", "qasync", "pytest-qt"}


class Wanted:
    """What an environment should contain: the program, some of its extras, Qt or not, and a build of PyTorch; and
    whether a large download was agreed to.
    """

    def __init__(
        self, extras: tuple[str, ...] = (), qt: bool = True, torch: str = "auto", agreed: bool = False
    ) -> None:
        self.extras, self.qt, self.torch, self.agreed = extras, qt, torch, agreed

    def requirements(self, project: Path) -> list[str]:
        """pip's arguments. Without Qt they are the project's requirements less those that need a screen."""
        if self.qt:
            return ["--editable", f"{project.parent}[{','.join(self.extras)}]" if self.extras else str(project.parent)]
        return [line for line in requirements_in(project, self.extras) if name_of(line) not in QT_PACKAGES]


class Environment:
    """One virtual environment in the project's folder.

    Its stamp is written last, so an environment without one is half-made; it records what was installed and from
    which pyproject.toml, so that the next call does not run pip.
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
        build = torch_build.resolve(wanted.torch)
        with one_at_a_time(self.root):
            broken = self.why_broken() or self.other_build_reason(wanted)
            if broken:
                self.make(broken)
            incomplete = self.why_incomplete(wanted)
            if incomplete:
                whole = f" {torch_build.set_up_size(build)}." if self.stamp() is None else ""
                print(f"{self.folder.name}: {incomplete}; installing.{whole}", flush=True)
                self.install(wanted, build)

    def is_ready(self, wanted: Wanted) -> bool:
        """Return whether nothing is left to make or install."""
        return not (self.why_broken() or self.other_build_reason(wanted) or self.why_incomplete(wanted))

    def why_broken(self) -> str | None:
        """Return why it must be created again, in words, or None."""
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
        if gone:
            return f"is damaged ({', '.join(gone[:3])}{' and more' if gone[3:] else ''} missing)"
        cut = [name for name, size in sorted(stamp["libraries"].items()) if size_of(self.site_packages / name) != size]
        return f"is damaged ({', '.join(cut[:3])}{' and more' if cut[3:] else ''} not whole)" if cut else None

    def why_python_fails(self) -> str | None:
        """A Python that was upgraded or moved away leaves a link that exists and does not start."""
        command = [str(self.python), "-I", "-c", "import encodings, site"]
        try:
            code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode
        except (OSError, subprocess.SubprocessError):
            code = 1
        return "has a Python that does not start" if code else None

    def why_incomplete(self, wanted: Wanted) -> str | None:
        """Return why pip must run, or None."""
        stamp = self.stamp()
        if stamp is None:
            return "nothing is installed yet"
        if stamp["project"] != self.fingerprint():
            return "pyproject.toml has changed"
        missing = sorted(set(wanted.extras) - set(stamp["extras"]))
        return f"{' and '.join(missing)} not installed yet" if missing else None

    def other_build_reason(self, wanted: Wanted) -> str | None:
        """Return why the environment cannot stay if a build of PyTorch was requested by name, or None."""
        kept = (self.stamp() or {}).get("torch")
        if wanted.torch in ("auto", kept):
            return None
        return f"was made with the {torch_build.in_words(kept)} of PyTorch"

    def make(self, reason: str) -> None:
        """Remove what is there and make an empty environment."""
        print(f"{self.folder.name} {reason}: making it with Python {sys.version.split()[0]}.", flush=True)
        check_venv_module()
        self.remove()
        # Called from inside an environment, its own Python would make one that depends on it.
        python = getattr(sys, "_base_executable", None) or sys.executable
        # It inherits the lock: if this process is killed, no other one may remove the folder that it is filling.
        made = subprocess.run(
            [python, "-m", "venv", str(self.folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, close_fds=False
        )
        if made.returncode:
            raise diagnose(made.stdout.decode(errors="replace").splitlines(), self.folder)

    def remove(self) -> None:
        """Remove the folder; what a killed set-up has left running may write into it for some seconds more."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while os.path.lexists(str(self.folder)):
            try:
                self.remove_once()
            except OSError as error:
                if error.errno not in STILL_WRITING or time.monotonic() > deadline:
                    raise SetupError(
                        f"{self.folder} cannot be removed: {error}.",
                        "close every Decodescope and editor that uses it, or delete the folder by hand, and try again.",
                    ) from error
                time.sleep(0.1)

    def remove_once(self) -> None:
        if self.folder.is_symlink() or not self.folder.is_dir():
            self.folder.unlink()
        else:
            shutil.rmtree(str(self.folder))

    def install(self, wanted: Wanted, build: str) -> None:
        """Install all requirements with pip. A failure of pip leaves the environment unchanged."""
        check_project(self.project)
        before = self.stamp_file.read_bytes() if self.stamp_file.exists() else None
        extras = tuple(sorted(set(wanted.extras) | set((self.stamp() or {"extras": []})["extras"])))
        if before is not None:
            self.stamp_file.unlink()
        try:
            pip.install(self.python, ["pip>=24.1"], self.folder, bar="off")
            for line in requirements_in(self.project, ()):
                if name_of(line) == "torch":
                    agreed = wanted.agreed or wanted.torch == "cuda"
                    torch_build.install(self.python, line, build, self.folder, agreed)
            pip.install(self.python, Wanted(extras, wanted.qt).requirements(self.project), self.folder)
        except SetupError:
            if before is not None:
                self.stamp_file.write_bytes(before)
            raise
        self.write_stamp(extras, build)

    def fingerprint(self) -> str:
        return hashlib.sha256(self.project.read_bytes()).hexdigest()

    def stamp(self) -> dict | None:
        """What was recorded when the last installation ended, or None."""
        return read_stamp(self.stamp_file)

    def write_stamp(self, extras: tuple[str, ...], build: str) -> None:
        stamp = {
            "project": self.fingerprint(),
            "root": str(self.root),
            "python": "{}.{}".format(*sys.version_info[:2]),
            "extras": sorted(extras),
            "torch": build,
            "contents": contents(self.site_packages),
            "libraries": libraries(self.site_packages),
        }
        try:
            self.stamp_file.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
        except OSError as error:
            raise diagnose([str(error)], self.folder) from error


def size_of(path: Path) -> int:
    """Bytes of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def check_venv_module() -> None:
    """Debian splits `venv` off; without it `python -m venv` ends in the middle."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return
    package = "python{}.{}-venv".format(*sys.version_info[:2])
    raise SetupError(
        "this Python has no venv module, which makes the environment.",
        f"on Debian and Ubuntu: sudo apt install {package}; elsewhere install the full Python from python.org.",
    )


def name_of(requirement: str) -> str:
    """A requirement's distribution, normalised: "PySide6_Essentials>=6.8" is "pyside6-essentials"."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement.strip()).group()).lower()
