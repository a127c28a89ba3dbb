"""The Hugging Face hub's local cache, as its own library scans it.

The library takes an eighth of a second to import: it is, when there is something to scan.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from resources.language import tr

if TYPE_CHECKING:
    from huggingface_hub import CachedRepoInfo

_PREFIX = "models--"
_REF_BYTES = 4096
"""A reference is the name of a commit."""


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
    """Each on its own: an error that the library does not foresee ends its whole scan."""
    for folder in folders:
        name = folder.name.removeprefix(_PREFIX).replace("--", "/")
        try:
            if problem := _unsafe(folder):
                yield CachedModel(name, folder, problem)
            elif (snapshot := _snapshot(_ask_library(folder), folder)) is not None:
                yield CachedModel(name, snapshot)
        except (OSError, ValueError, RecursionError) as error:
            yield CachedModel(name, folder, tr("its cache cannot be read: {error}").format(error=error))


def _unsafe(folder: Path) -> str | None:
    """What the library would open and wait for, or read without end."""
    for reference in (folder / "refs").rglob("*"):
        about = reference.stat()
        if not stat.S_ISDIR(about.st_mode) and (not stat.S_ISREG(about.st_mode) or about.st_size > _REF_BYTES):
            return tr("its cache is damaged: {reference} is no reference").format(reference=reference)
    return None


def _ask_library(folder: Path) -> CachedRepoInfo | None:
    """What it knows of one repository, seen through a folder that holds nothing else. Raises ValueError."""
    from huggingface_hub import scan_cache_dir

    with tempfile.TemporaryDirectory(prefix="decodescope-hub-") as view:
        found = scan_cache_dir(_alone(folder, Path(view)))
        if mine := [repository for repository in found.repos if repository.repo_path.name == folder.name]:
            return mine[0]
        if troubles := [str(warning) for warning in found.warnings if folder.name in str(warning)]:
            raise ValueError(troubles[0].replace(view, str(folder.parent)))
        return None


def _alone(folder: Path, view: Path) -> Path:
    """A folder with a link to this one; the whole cache on systems that let nobody make links."""
    try:
        (view / folder.name).symlink_to(folder, target_is_directory=True)
    except OSError:
        return folder.parent
    return view


def _snapshot(repository: CachedRepoInfo | None, folder: Path) -> Path | None:
    if repository is None or not repository.revisions:
        return None
    newest = max(repository.revisions, key=lambda revision: ("main" in revision.refs, revision.last_modified))
    return folder / "snapshots" / str(newest.commit_hash)
