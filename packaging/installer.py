"""Make the installers of this system: on Linux .tar.xz and .deb, on Windows .exe, on macOS .dmg.

Run in the root of the repository, in an environment with the extra `dev`:

    python packaging/installer.py [--wheel PATH] [--output dist] [--work build/installer]

The program's wheel is the one given, or that of this system in a given folder, or built from the last commit with its
native libraries. It is installed with the CPU build of PyTorch into an environment of its own, from which PyInstaller
and packaging/decodescope.spec make the program's folder. Nothing of the environment that runs this gets into it.
docs/building.md says what is left out, and how signing is set up.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import venv
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

from bill_of_materials import MANIFEST_NAME  # noqa: E402  # after the root has been added to the path
from bootstrap_parts import torch_build  # noqa: E402
from bootstrap_parts.errors import SetupError  # noqa: E402
from bootstrap_parts.project import requirements_in  # noqa: E402
from commit_builds import ReleaseError, build, commit_date, export  # noqa: E402
from distribution_files import checksums  # noqa: E402
from installer_parts import linux, macos, windows  # noqa: E402
from installer_parts.contents import is_left_out  # noqa: E402
from installer_parts.stripping import strip_folder  # noqa: E402
from installer_parts.tools import Build, InstallerError, run  # noqa: E402
from native_libraries import (  # noqa: E402
    SWITCH_VARIABLE,
    NativeLibraryError,
    is_wanted,
    target_of_this_machine,
    ziglang,
)

EXTRAS = ("grammar", "keyring", "server", "sound", "updates")
"""Extras that the installed program has. Those of `quant` compile code, and the program has its own quantizer."""
TOOLS = ("pyinstaller>=6.22,<6.23", "pyinstaller-hooks-contrib>=2026.9")
FIRST_RUN = ("--model", "storyteller", "--prompt", "Once upon a time", "--run")
LARGEST = 20
"""Parts of the program's folder that are printed with their sizes."""
DISTRIBUTIONS = """
import json, sys
from importlib import metadata
import torch
found = sorted((one.metadata["Name"], one.version) for one in metadata.distributions())
print(json.dumps({"cuda": torch.version.cuda, "torch": torch.__version__, "distributions": found}))
"""
UNLISTED = """
import json, sys
from decodescope.app.state.bundled_libraries import unlisted_files
print(json.dumps(unlisted_files(sys.stdin.read().splitlines())))
"""
UPDATES = """
import json, tomllib
from decodescope import resources
from decodescope.app.features.updates.state import read_source
source = read_source()
filled = any(tomllib.loads(resources.path("updates.toml").read_text(encoding="utf-8")).values())
print(json.dumps({"address": source.address if source else "", "filled": filled}))
"""
BILL = """
import sys, tomllib
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from bill_of_materials import environment_bill, installed_native_files
from decodescope.app.state.licences import third_party_parts
project = tomllib.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["project"]
sys.stdout.reconfigure(encoding="utf-8", newline="\\n")
sys.stdout.write(environment_bill(project, third_party_parts(), int(sys.argv[3]), *installed_native_files()))
"""


def main(arguments: list[str] | None = None) -> int:
    """Make the installers and return the exit code."""
    parser = argparse.ArgumentParser(description="Make the installers of this system.")
    parser.add_argument(
        "--wheel", type=Path, help="the program's wheel, or a folder with it (default: built from the last commit)"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the installers (default: dist)")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "installer", help="folder for the environment and the program"
    )
    parser.add_argument("--level", type=int, default=6, choices=range(10), help="compression, 0 to 9 (default: 6)")
    parser.add_argument("--folder-only", action="store_true", help="make the program's folder and no installer of it")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # temporary folders are removed then too
    try:
        make_installers(options.wheel, options.output, options.work, options.level, options.folder_only)
    except (InstallerError, SetupError) as error:
        print(f"installer: {error}", file=sys.stderr)
        return 1
    return 0


def make_installers(
    wheel: Path | None, output: Path, work: Path, level: int = 6, folder_only: bool = False
) -> list[Path]:
    """Write the installers, their bill of materials and their checksums into `output`; return their paths.

    Everything that can be refused is checked before anything is packed. The files are written into a folder beside
    their places and moved there at the end, the checksums last, so a failure leaves `output` as it was. Raises
    InstallerError, or SetupError if PyTorch cannot be installed.
    """
    system = {"win32": windows, "darwin": macos}.get(sys.platform, linux)
    system.check_machine(platform.machine())
    epoch = commit_date("HEAD")
    output.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    if wheel is not None and wheel.is_dir():
        wheel = wheel_for_this_machine(wheel.iterdir())
    wheel = wheel or build_wheel(epoch, work)
    version = version_of(wheel)
    python = make_environment(work / "environment", wheel)
    program = build_program(python, work, epoch)
    folder = work / "dist" / "decodescope"
    if system is linux:
        print(f"{strip_folder(folder) / 1e6:8.1f} MB  of symbol tables removed")
    check_program(folder, version)
    check_licences(folder, python)
    print(update_check(python))
    print(sizes(folder), end="")
    if folder_only:
        return [program]
    name = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    bill = run([python, "-c", BILL, ROOT / "packaging", ROOT / "pyproject.toml", str(epoch)], folder=work)
    with tempfile.TemporaryDirectory(dir=output, prefix=".partial-") as partial:
        build = Build(folder=program, version=version, machine=platform.machine(), root=ROOT, python=python,
                      output=Path(partial), epoch=epoch, level=level)  # fmt: skip
        files = system.make_packages(build)
        files.append(build.output / f"decodescope-{version}-{name}-installer.cdx.json")
        files[-1].write_text(bill, encoding="utf-8", newline="\n")
        files.append(build.output / f"SHA256SUMS-{name}")
        files[-1].write_text(checksums(files[:-1]), encoding="utf-8", newline="\n")
        placed = move_into_place(files, output)
    for file in placed:
        print(f"{file.stat().st_size / 1e6:8.1f} MB  {file.name}")
    return placed


def move_into_place(files: list[Path], output: Path) -> list[Path]:
    """Move files into a folder of the same disk and return their new paths. The last one has the checksums: that of an
    earlier build is removed first, so there are never checksums of other files.
    """
    (output / files[-1].name).unlink(missing_ok=True)
    for file in files:
        os.replace(file, output / file.name)
    return [output / file.name for file in files]


def build_wheel(epoch: int, work: Path) -> Path:
    """Build the wheel of the last commit, as a release does, and return its path."""
    target = target_of_this_machine() if is_wanted() else None
    try:
        with tempfile.TemporaryDirectory() as folder, ziglang() if target else nullcontext() as zig:
            source = export("HEAD", Path(folder, "source"))
            built = build(source, Path(folder, "built"), epoch, zig=zig, names=[target.name] if target else ())
            return Path(shutil.copy(wheel_for_this_machine(built), work))
    except (ReleaseError, NativeLibraryError) as error:
        raise InstallerError(str(error)) from error


def wheel_for_this_machine(files: Iterable[Path]) -> Path:
    """Return the wheel with the native libraries of this machine, or the one for all machines. Raises InstallerError if
    there is neither.
    """
    target = target_of_this_machine() if is_wanted() else None
    names = {path.stem.rpartition("-")[2]: path for path in files if path.suffix == ".whl"}
    found = names.get(target.tag if target else "any") or names.get("any")
    if found is None:
        raise InstallerError("There is no wheel for this system. Build one with packaging/release.py.")
    return found


def version_of(wheel: Path) -> str:
    """Return the version in a wheel's name. Raises InstallerError for another file."""
    found = re.fullmatch(r"decodescope-([^-]+)-.+\.whl", wheel.name)
    if found is None or not wheel.is_file():
        raise InstallerError(f"{wheel} is no wheel of Decodescope. Build one with packaging/release.py.")
    return found[1]


def make_environment(folder: Path, wheel: Path) -> Path:
    """Make an environment with the program, the CPU build of PyTorch and PyInstaller; return its interpreter.

    An environment that has all of it is used again, with the program's wheel installed again. Raises InstallerError if
    PyTorch is another build.
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.is_file():
        venv.create(folder, clear=True, with_pip=True, symlinks=os.name != "nt")
    requirement = next(line for line in requirements_in(ROOT / "pyproject.toml", ()) if line.startswith("torch>"))
    torch_build.install(python, requirement, "cpu", ROOT)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    run([*pip, f"{wheel.resolve()}[{','.join(EXTRAS)}]", *TOOLS])
    run([*pip, "--force-reinstall", "--no-deps", wheel.resolve()])
    found = json.loads(run([python, "-c", DISTRIBUTIONS], folder=folder))
    unwanted = [name for name, _ in found["distributions"] if name.startswith("nvidia") or name == "triton"]
    if found["cuda"] or unwanted:
        raise InstallerError(
            f"PyTorch {found['torch']} is not the CPU build, and an installer of it would have gigabytes. Install it "
            f"from {torch_build.CPU_INDEX} into {folder}, or remove that folder and set pip's index to that address."
        )
    return python


def build_program(python: Path, work: Path, epoch: int) -> Path:
    """Run PyInstaller and return the program's folder, on macOS its bundle."""
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    variables["PYINSTALLER_ZLIB_COMPRESSION_LEVEL"] = "0"  # modules that are not packed one by one pack better together
    for name in ("PYTHONPATH", "PYTHONHOME"):
        variables.pop(name, None)
    spec = ROOT / "packaging" / "decodescope.spec"
    command = [python, "-P", "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    run([*command, "--workpath", "build", "--distpath", "dist", spec], folder=work, variables=variables)
    return work / "dist" / ("Decodescope.app" if sys.platform == "darwin" else "decodescope")


def check_program(folder: Path, version: str) -> None:
    """Raise InstallerError unless the built program has nothing that is left out, and makes a first run."""
    inside = folder / "_internal"
    unwanted = [
        name
        for path in inside.rglob("*")
        if path.is_file() and is_left_out(name := path.relative_to(inside).as_posix())
    ]
    if unwanted:
        raise InstallerError(f"The program has what should be left out: {', '.join(unwanted[:5])}. Correct the spec.")
    if not (inside / f"decodescope-{version}.dist-info").is_dir():
        raise InstallerError(f"The program is not of version {version}. Remove the folder of the environment.")
    if is_wanted() and target_of_this_machine() and not (inside / MANIFEST_NAME).is_file():
        raise InstallerError(
            f"The program has no native libraries. Give --wheel the wheel of this system, or set {SWITCH_VARIABLE}=0."
        )
    executable = folder / {"win32": "decodescope-console.exe"}.get(sys.platform, "decodescope")
    with tempfile.TemporaryDirectory() as scratch:
        picture = Path(scratch, "first-run.png")
        run([executable, *FIRST_RUN, "--screenshot", picture])
        if not picture.is_file():
            raise InstallerError("The program's first run wrote no picture.")


def check_licences(folder: Path, python: Path) -> None:
    """Raise InstallerError unless the licence of each compiled library in the program's folder is known."""
    inside = folder / "_internal"
    files = (path for path in inside.rglob("*") if path.is_file() and not path.is_symlink())
    names = [path.relative_to(inside).as_posix() for path in files]
    unlisted = json.loads(run([python, "-c", UNLISTED], folder=folder, text="\n".join(names)))
    if unlisted:
        raise InstallerError(
            f"No licence is known for {', '.join(unlisted)}. Add the libraries to resources/licences/libraries.toml."
        )


def update_check(python: Path) -> str:
    """Return a sentence on whether the program can look for new versions. Raises InstallerError for an address without
    a key, or the other way round.
    """
    source = json.loads(run([python, "-c", UPDATES]))
    if source["address"]:
        return f"New versions are announced at {source['address']}."
    if source["filled"]:
        raise InstallerError(
            "resources/updates.toml needs both an https address and a key of 32 bytes in Base64. Make the key with "
            "packaging/update_notice.py, or leave both empty."
        )
    return "resources/updates.toml is empty: this installer does not look for new versions."


def sizes(folder: Path) -> str:
    """Return a table of what the parts of a program's folder take, largest first, in MB."""
    inside = folder / "_internal"
    totals: dict[str, int] = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            parts = path.relative_to(inside).parts if path.is_relative_to(inside) else (path.name,)
            name = "/".join(parts[:3]) if parts[0] == "decodescope" and len(parts) > 3 else parts[0]
            totals[name] = totals.get(name, 0) + path.stat().st_size
    largest = sorted(totals.items(), key=lambda item: -item[1])[:LARGEST]
    return "".join(f"{size / 1e6:8.1f} MB  {name}\n" for name, size in [("in all", sum(totals.values())), *largest])


if __name__ == "__main__":
    sys.exit(main())
