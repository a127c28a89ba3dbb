"""The Hugging Face hub's local cache, as its own library lays it out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from resources.language import tr

_PREFIX = "models--"
_REF_BYTES = 4096
"""A reference is the name of a commit."""
_MAX_QUOTED = 80
"""Characters of a name that a problem quotes."""


class CachedModel(NamedTuple):
    """A repository of the cache: its hub id, and the folder of the snapshot that `main`, or else the newest, is."""

    name: str
    path: Path
    problem: str | None = None
    """Why nothing can be read from it, in a sentence; then `path` is the repository's own folder."""


def hub_cache() -> Path:
    """The cache's folder, by the library's own environment variables."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expanduser(folder))
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or os.path.join(cache, "huggingface")
    return Path(os.path.expanduser(home)) / "hub"


def has_models() -> bool:
    """Whether anything of a model is in the cache; quick."""
    return bool(_repositories())


def cached_models() -> list[CachedModel]:
    """Every model in the cache by name; a damaged one says why, and costs no other. Never raises."""
    return sorted(_scan(_repositories()), key=lambda model: model.name)


def cached_model(name: str) -> CachedModel | None:
    """The one with that hub id."""
    wanted = _PREFIX + name.replace("/", "--")
    return next(iter(_scan([folder for folder in _repositories() if folder.name == wanted])), None)


def _repositories() -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(hub_cache()) if entry.name.startswith(_PREFIX)]
    except OSError:
        return []


def _scan(folders: Iterable[Path]) -> Iterator[CachedModel]:
    for folder in folders:
        name = folder.name.removeprefix(_PREFIX).replace("--", "/")
        try:
            if (snapshot := _find_snapshot(str(folder))) is not None:
                yield CachedModel(name, Path(snapshot))
        except _DamagedError as error:
            yield CachedModel(name, folder, str(error))
        except (OSError, ValueError) as error:
            yield CachedModel(name, folder, tr("its cache cannot be read: {error}").format(error=error))


class _DamagedError(Exception):
    """Says what is wrong with a repository of the cache."""


def _find_snapshot(folder: str) -> str | None:
    """The snapshot's folder; None for a repository of which nothing was downloaded. Raises _DamagedError, OSError.

    The rules are those of `huggingface_hub.scan_cache_dir`, which takes a millisecond for each repository: a list of
    thousands of models would wait for seconds.
    """
    snapshots = os.path.join(folder, "snapshots")
    commits = _commits(snapshots)
    main = _read_main(os.path.join(folder, "refs", "main"))
    if main is not None and main not in commits:
        raise _DamagedError(tr("its cache is damaged: there is no snapshot {commit}").format(commit=main[:_MAX_QUOTED]))
    if not commits:
        return None
    if main is None:
        main = max(commits, key=lambda commit: _modified_time(os.path.join(snapshots, commit)))
    snapshot = os.path.join(snapshots, main)
    _modified_time(snapshot)
    return snapshot


def _commits(snapshots: str) -> set[str]:
    """The names of all snapshots."""
    found = set()
    try:
        entries = list(os.scandir(snapshots))
    except (FileNotFoundError, NotADirectoryError):
        raise _DamagedError(tr("its cache is damaged: the folder “snapshots” is missing")) from None
    for entry in entries:
        if entry.is_dir():
            found.add(entry.name)
        elif entry.name != ".DS_Store":
            raise _DamagedError(
                tr("its cache is damaged: {file} is a file among snapshots").format(file=entry.name[:_MAX_QUOTED])
            )
    return found


def _read_main(path: str) -> str | None:
    """The commit that `main` refers to; None without such a reference. Raises _DamagedError."""
    try:
        about = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(about.st_mode):
        return None
    data = b""
    if stat.S_ISREG(about.st_mode) and about.st_size <= _REF_BYTES:  # a pipe would be waited for
        with open(path, "rb") as file:
            data = file.read(_REF_BYTES)
    try:
        commit = data.decode("ascii").strip()
    except UnicodeDecodeError:
        commit = ""
    if not commit.isalnum():
        raise _DamagedError(tr("its cache is damaged: {reference} is no reference").format(reference=path))
    return commit


def _modified_time(snapshot: str) -> float:
    """When the newest of its files was written. Raises _DamagedError for a link to a file that is gone."""
    newest, folders = 0.0, [snapshot]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                try:
                    newest = max(newest, entry.stat().st_mtime)
                except FileNotFoundError:
                    raise _DamagedError(
                        tr("its cache is damaged: the content of {file} is missing").format(
                            file=entry.name[:_MAX_QUOTED]
                        )
                    ) from None
    return newest
