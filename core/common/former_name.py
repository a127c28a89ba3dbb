"""Compatibility with data written under the program's former name, Tokenscope: it is read, never written.

Recordings end in `.tokenscope`, environment variables begin with `TOKENSCOPE_`, and the user's folders are called
`tokenscope`. Folders are copied once, on the first start under the new name; the originals are left as they are.
"""

from __future__ import annotations

import os
import shutil
import stat
import warnings
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from resources.language import tr

NAME, FORMER_NAME = "decodescope", "tokenscope"
FORMER_TITLE = "Tokenscope"
RUN_SUFFIX, FORMER_RUN_SUFFIX = f".{NAME}", f".{FORMER_NAME}"
RUN_SUFFIXES = (RUN_SUFFIX, FORMER_RUN_SUFFIX)
"""Suffixes of recorded runs, the current one first."""

FolderKind = Literal["config", "data"]
_PREFIX, _FORMER_PREFIX = f"{NAME.upper()}_", f"{FORMER_NAME.upper()}_"
_PARTIAL = f".{NAME}-copy-"
_NOT_COPIED = (".lock", "-shm")
"""Endings of files that belong to a running process: locks, and the shared memory of an SQLite database."""


def existing_run(path: Path) -> Path:
    """Return `path` of a recording, or the same recording under the former suffix if only that file exists."""
    former = path.with_suffix(FORMER_RUN_SUFFIX)
    return former if path.suffix == RUN_SUFFIX and not path.exists() and former.exists() else path


def read_variable(name: str, default: str = "") -> str:
    """Return the environment variable `name` (`DECODESCOPE_…`), or the one with the former prefix with a warning."""
    if (value := os.environ.get(name)) is not None:
        return value
    former = name.replace(_PREFIX, _FORMER_PREFIX, 1)
    if (value := os.environ.get(former)) is None:
        return default
    warnings.warn(_renamed_notice(former, name), FutureWarning, stacklevel=2)
    return value


def adopt_variables(environment: MutableMapping[str, str] | None = None) -> list[str]:
    """Set `DECODESCOPE_…` from each `TOKENSCOPE_…` that is set alone; return one notice per variable."""
    environment = os.environ if environment is None else environment
    notices = []
    for former in sorted(name for name in environment if name.startswith(_FORMER_PREFIX)):
        name = former.replace(_FORMER_PREFIX, _PREFIX, 1)
        if name not in environment:
            environment[name] = environment[former]
            notices.append(_renamed_notice(former, name))
    return notices


def user_folder(kind: FolderKind) -> Path:
    """Return the user's folder for settings ("config") or for other data ("data"), whether it exists or not."""
    return _user_folder(kind, NAME)


class AdoptedFolder(NamedTuple):
    """One folder of the former program and the copy of it; `problem` says why it could not be copied."""

    source: Path
    target: Path
    problem: str = ""


def describe_adoption(folders: Sequence[AdoptedFolder]) -> list[str]:
    """Return one sentence on what was copied, and one for each folder that could not be copied."""
    copied = [str(folder.source) for folder in folders if not folder.problem]
    done = tr("Settings and runs were copied from {folders}. Nothing was changed there.").format(
        folders=", ".join(copied)
    )
    failed = [
        tr("The files in {source} could not be copied ({why}). Copy them to {target} yourself.").format(
            source=folder.source, why=folder.problem, target=folder.target
        )
        for folder in folders
        if folder.problem
    ]
    return [*([done] if copied else []), *failed]


def adopt_folders() -> list[AdoptedFolder]:
    """Copy each of the user's folders that exists under the former name only. Never raises; the copy is complete or
    absent, even if the process is killed."""
    pairs = {_user_folder(kind, FORMER_NAME): _user_folder(kind, NAME) for kind in ("config", "data")}
    found = []
    for source, target in pairs.items():
        if source.is_dir() and not os.path.lexists(target):
            try:
                _copy_folder(source, target)
                found.append(AdoptedFolder(source, target))
            except (OSError, shutil.Error) as error:
                found.append(AdoptedFolder(source, target, getattr(error, "strerror", None) or str(error)[:200]))
    return found


def _user_folder(kind: FolderKind, name: str) -> Path:
    import platformdirs

    find = platformdirs.user_config_dir if kind == "config" else platformdirs.user_data_dir
    return Path(find(name, appauthor=False))


def _copy_folder(source: Path, target: Path) -> None:
    """Copy through a temporary folder beside `target`, which becomes `target` in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in target.parent.glob(f"{_PARTIAL}*"):
        if not _is_alive(abandoned.name.removeprefix(_PARTIAL)):
            shutil.rmtree(abandoned, ignore_errors=True)
    partial = target.parent / f"{_PARTIAL}{os.getpid()}"
    try:
        shutil.copytree(source, partial, symlinks=True, ignore=_names_to_skip)
        for run in list(_former_runs(partial)):
            run.rename(run.with_suffix(RUN_SUFFIX))
        os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _names_to_skip(folder: str, names: Iterable[str]) -> set[str]:
    """Return the names to skip: locks, shared memory, and anything that is not a file, a folder or a link."""
    return {name for name in names if name.endswith(_NOT_COPIED) or not _is_copyable(os.path.join(folder, name))}


def _is_copyable(path: str) -> bool:
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
    return False


def _former_runs(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob(f"*{FORMER_RUN_SUFFIX}") if path.is_file())


def _is_alive(process: str) -> bool:
    """Return whether a process with that number may be running; True on Windows, where checking is expensive."""
    if os.name == "nt" or not process.isdecimal():
        return os.name == "nt"
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _renamed_notice(former: str, name: str) -> str:
    return tr("The environment variable {former} is now called {name}. Its value is used; rename it.").format(
        former=former, name=name
    )
