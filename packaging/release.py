"""Make a release: sdist, wheels, bills of materials, licences and checksums, from one commit.

Run in the root of the repository, in an environment with the extra `dev`:

    python packaging/release.py [--output dist] [--check] [--no-audit] [--installers]

There is a wheel with native libraries for each system (packaging/native_libraries.py), and one without them for others.
The commit is exported first, so that uncommitted and ignored files have no influence, and its date becomes the date of
all files. `--check` builds twice in different folders and compares the bytes, and refuses a release whose texts and
pages are not all translated. `--installers` makes the installers of
this system from the same wheel, by packaging/installer.py. Signatures are made by .github/workflows/release.yml: only
the hosted builder has an identity to attest with.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "packaging"))

from bill_of_materials import (  # noqa: E402  # after the root has been added to the path
    MANIFEST_NAME,
    environment_bill,
    native_files,
    wheel_bill,
)
from commit_builds import UMASKS, ReleaseError, build, commit_date, export  # noqa: E402
from distribution_files import checksums  # noqa: E402
from installer import InstallerError, SetupError, make_installers, wheel_for_this_machine  # noqa: E402
from native_libraries import TARGETS, NativeLibraryError, is_wanted, ziglang  # noqa: E402

from decodescope.app.state.licences import third_party_parts, third_party_text  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Make the release and return the exit code."""
    parser = argparse.ArgumentParser(description="Make sdist, wheel, bills of materials, licences and checksums.")
    parser.add_argument("--commit", default="HEAD", help="what to release (default: HEAD)")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the files (default: dist)")
    parser.add_argument(
        "--check", action="store_true", help="require all translations, build twice and compare the bytes"
    )
    parser.add_argument("--no-audit", action="store_true", help="do not look for known vulnerabilities (needs network)")
    parser.add_argument("--installers", action="store_true", help="also make the installers of this system")
    options = parser.parse_args(arguments)
    try:
        files = make_release(options.commit, options.output, options.check)
        if not options.no_audit:
            audit()
        if options.installers:
            installers(files, options.output)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def make_release(commit: str, output: Path, check: bool = False) -> list[Path]:
    """Write all files of the release of `commit` into `output` and return them. Raises ReleaseError."""
    epoch = commit_date(commit)
    output.mkdir(parents=True, exist_ok=True)
    names = tuple(TARGETS) if is_wanted() else ()
    try:
        with tempfile.TemporaryDirectory() as folder, ziglang() if names else nullcontext() as zig:
            files, bill, project = _build_files(commit, Path(folder), output, check, epoch, zig, names)
    except NativeLibraryError as error:
        raise ReleaseError(str(error)) from error
    stem = f"{project['name']}-{project['version']}"
    texts = {
        f"{stem}.cdx.json": bill,
        f"{stem}-environment.cdx.json": environment_bill(project, third_party_parts(), epoch),
        f"{stem}-THIRD_PARTY.txt": third_party_text(),
    }
    for name, text in texts.items():
        (output / name).write_text(text, encoding="utf-8", newline="\n")
        files.append(output / name)
    (output / "SHA256SUMS").write_text(checksums(files), encoding="utf-8", newline="\n")
    print(checksums(files), end="")
    return [*files, output / "SHA256SUMS"]


def _build_files(
    commit: str, folder: Path, output: Path, check: bool, epoch: int, zig: Path | None, names: tuple[str, ...]
) -> tuple[list[Path], str, dict[str, Any]]:
    """Build in `folder`, and return the files in `output`, their bill of materials and the project's table."""
    source = export(commit, folder / "first")
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    require_changelog(source, project["version"])
    if check:
        require_translations(export(commit, folder / "translations"))
    built = build(source, folder / "one", epoch, UMASKS[0], zig, names)
    if check:
        require_equal(built, build(export(commit, folder / "second"), folder / "two", epoch, UMASKS[1], zig, names))
    files, compiler = [], ""
    for path in built:
        if path.suffix == ".whl" and (manifest := manifest_in(path)):
            listed, compiler = native_files(manifest, path.stem.rpartition("-")[2])
            files += listed
    return [Path(shutil.copy(path, output)) for path in built], wheel_bill(source, epoch, files, compiler), project


def manifest_in(wheel: Path) -> dict[str, Any] | None:
    """Return the list of the native libraries in a wheel; None if it has none."""
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read(MANIFEST_NAME)) if MANIFEST_NAME in archive.namelist() else None


def installers(files: list[Path], output: Path) -> None:
    """Make the installers of this system from its wheel among `files`. Raises ReleaseError."""
    try:
        make_installers(wheel_for_this_machine(files), output, ROOT / "build" / "installer")
    except (InstallerError, SetupError) as error:
        raise ReleaseError(str(error)) from error


def require_equal(first: list[Path], second: list[Path]) -> None:
    """Raise ReleaseError unless two builds have the same names and bytes."""
    names = [path.name for path in first], [path.name for path in second]
    differing = [a.name for a, b in zip(first, second, strict=False) if a.read_bytes() != b.read_bytes()]
    if names[0] != names[1] or differing:
        raise ReleaseError(f"Two builds of one commit differ: {', '.join(differing) or names}. Compare their contents.")
    print(f"two builds are equal, byte for byte: {', '.join(names[0])}")


def require_changelog(root: Path, version: str) -> None:
    """Raise ReleaseError unless CHANGELOG.md has a heading for the version."""
    if f"\n## [{version}]" not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
        raise ReleaseError(f"CHANGELOG.md has no heading “## [{version}]”. Add one above the changes of this release.")


def require_translations(root: Path) -> None:
    """Raise ReleaseError unless the catalogues have no faults and every text and page is translated."""
    command = [sys.executable, str(root / "packaging" / "translations.py"), "check", "--complete"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if answer.returncode:
        raise ReleaseError(f"Some texts are not translated. Fill them in, then commit.\n{answer.stdout}{answer.stderr}")


def audit() -> None:
    """Look for known vulnerabilities in the installed distributions. Raises ReleaseError if there are any."""
    if importlib.util.find_spec("pip_audit") is None:
        print("pip-audit is not installed: known vulnerabilities were not looked for (pip install pip-audit)")
        return
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            f"{part.name}=={part.version.partition('+')[0]}\n" for part in third_party_parts() if part.name != "Python"
        ]
        requirements = Path(folder, "requirements.txt")
        requirements.write_text("".join(lines), encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", "--strict", "--no-deps", "--disable-pip", "-r", str(requirements)]
        if subprocess.run(command).returncode:
            raise ReleaseError("pip-audit reports a problem. Update what it names, or run again with a network.")


if __name__ == "__main__":
    sys.exit(main())
