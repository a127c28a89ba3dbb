"""Check types or import contracts of the sources: `python packaging/static_checks.py types` (mypy) or `imports`
(import-linter). Further arguments are passed on.

Both tools look for the package `decodescope` in a folder of that name, but in a checkout `core`, `app` and `resources`
lie next to it. This links them together in build/import_root. Editors can use that folder as a source root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from distribution_files import arrange_package

ROOT = Path(__file__).resolve().parent.parent
IMPORT_ROOT = Path("build", "import_root")
COMMANDS = {
    "types": "from mypy.__main__ import console_entry; console_entry()",
    "imports": "from importlinter.cli import lint_imports_command; lint_imports_command()",
}


def link_package(root: Path = ROOT) -> Path:
    """Link the package together in `root`/build/import_root, where links are missing, and return that folder."""
    package = arrange_package(root, root / IMPORT_ROOT, _link)
    for path in package.iterdir():
        if not path.exists():  # a link to what is gone
            path.unlink()
    return root / IMPORT_ROOT


def _link(source: Path, target: Path) -> None:
    """Link to a folder, in a way that needs no privilege on Windows, and copy a file: tools that follow its link would
    look for the folders of the package beside the original.
    """
    if source.is_file():
        if target.is_symlink():
            target.unlink()
        shutil.copy(source, target)
    elif os.path.lexists(target):
        return
    elif os.name == "nt":
        import _winapi

        _winapi.CreateJunction(str(source), str(target))
    else:
        target.symlink_to(os.path.relpath(source, target.parent), target_is_directory=source.is_dir())


def main(arguments: list[str]) -> int:
    """Run a check and return its exit code."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    check, *rest = arguments
    import_root = link_package()
    folder = ROOT
    if check == "imports":
        folder = import_root
        rest = [str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".import_linter_cache"), *rest]
    command = [sys.executable, "-c", COMMANDS[check], *rest]
    process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    # Paths of the links are shown as those of the files.
    sys.stdout.write(process.stdout.replace((IMPORT_ROOT / "decodescope").as_posix() + "/", ""))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
