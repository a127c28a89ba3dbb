"""Make a release: sdist, wheel, bills of materials, licences and checksums, from one commit.

Run in the root of the repository, in an environment with the extra `dev`:

    python packaging/release.py [--output dist] [--check] [--no-audit] [--installers]

The commit is exported first, so that uncommitted and ignored files have no influence, and its date becomes the date of
all files. `--check` builds twice in different folders and compares the bytes. `--installers` makes the installers of
this system from the same wheel, by packaging/installer.py. Signatures are made by .github/workflows/release.yml: only
the hosted builder has an identity to attest with.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "packaging"))

from bill_of_materials import environment_bill, wheel_bill  # noqa: E402  # after the root has been added to the path
from distribution_files import OLDEST, checksums  # noqa: E402

from app.state.licences import third_party_parts, third_party_text  # noqa: E402

_BUILD = """
import sys
sys.path.insert(0, "packaging")
import build_backend
target = sys.argv[1]  # setuptools replaces sys.argv
build_backend.build_sdist(target)
build_backend.build_wheel(target)
"""
_UMASKS = (0o022, 0o077)
"""File permissions of the first and the second build: they must not matter."""


class ReleaseError(Exception):
    """A release that cannot be made, with cause and remedy."""


def main(arguments: list[str] | None = None) -> int:
    """Make the release and return the exit code."""
    parser = argparse.ArgumentParser(description="Make sdist, wheel, bills of materials, licences and checksums.")
    parser.add_argument("--commit", default="HEAD", help="what to release (default: HEAD)")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the files (default: dist)")
    parser.add_argument("--check", action="store_true", help="build twice and compare the bytes")
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
    with tempfile.TemporaryDirectory() as folder:
        source = export(commit, Path(folder, "first"))
        project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        require_changelog(source, project["version"])
        built = build(source, Path(folder, "one"), epoch, _UMASKS[0])
        if check:
            again = build(export(commit, Path(folder, "second")), Path(folder, "two"), epoch, _UMASKS[1])
            require_equal(built, again)
        files = [Path(shutil.copy(path, output)) for path in built]
        bill = wheel_bill(source, epoch)
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


def installers(files: list[Path], output: Path) -> None:
    """Make the installers of this system from the wheel among `files`. Raises ReleaseError."""
    from installer import InstallerError, SetupError, make_installers

    wheel = next(path for path in files if path.suffix == ".whl")
    try:
        make_installers(wheel, output, ROOT / "build" / "installer")
    except (InstallerError, SetupError) as error:
        raise ReleaseError(str(error)) from error


def commit_date(commit: str) -> int:
    """Return the date of a commit in seconds since 1970. Raises ReleaseError outside a repository."""
    answer = subprocess.run(
        ["git", "-C", str(ROOT), "log", "-1", "--format=%ct", commit], capture_output=True, text=True
    )
    if answer.returncode:
        raise ReleaseError(f"{commit} is no commit of this repository. Run it in a checkout. {answer.stderr.strip()}")
    return max(OLDEST, int(answer.stdout))


def export(commit: str, folder: Path) -> Path:
    """Write the files of a commit into a new folder and return it."""
    folder.mkdir(parents=True)
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    return folder


def build(source: Path, target: Path, epoch: int, umask: int = _UMASKS[0]) -> list[Path]:
    """Build sdist and wheel of an exported commit and return their paths. Raises ReleaseError."""
    target.mkdir(parents=True)
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONDONTWRITEBYTECODE": "1"}
    variables.pop("PYTHONPATH", None)
    command = [sys.executable, "-c", _BUILD, str(target.resolve())]
    options = {"umask": umask} if os.name == "posix" else {}
    answer = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True, **options)
    if answer.returncode:
        raise ReleaseError(f"The build failed. Install the extra `dev`.\n{answer.stderr[-2000:]}")
    return sorted(target.iterdir())


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
