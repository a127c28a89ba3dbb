"""Find models on disk. Importing this module does not import torch."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from core.common.text import cut_short
from core.errors import ConfigMissingError, ModelFileError, ModelNotFoundError
from core.models.config_validation import KINDS, PACKED
from core.models.modalities import has_language_head, non_text_modality
from core.models.model_entry import Fit, ModelEntry, describe, fits, read_config, weight_bytes
from core.models.model_files import INDEX_BYTES, JsonObject, exists, find_weights, is_file, read_bytes, size_of
from core.parameter import short_repr
from resources.language import tr

__all__ = [
    "BUNDLED",
    "KINDS",
    "PACKED",
    "Fit",
    "ModelEntry",
    "available",
    "bundled",
    "describe",
    "display_name",
    "find_weights",
    "fits",
    "hub_cached",
    "hub_entry",
    "hub_has_models",
    "inspect",
    "locate",
    "read_config",
    "same_tokenizer",
    "tokenizer_of",
    "weight_bytes",
]

_PREFIX = "models--"
_REF_BYTES = 4096
"""A reference contains the name of a commit."""
_MAX_QUOTED = 80
"""Maximum number of characters of a name quoted in a problem."""


class CachedModel(NamedTuple):
    """A repository in the cache: its hub id, and the folder of the `main` snapshot or else of the newest one."""

    name: str
    path: Path
    problem: str | None = None
    """Why nothing can be read from it, as a sentence; then `path` is the repository's folder."""


def hub_cache() -> Path:
    """Return the cache folder, as the library's environment variables define it."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expanduser(folder))
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or os.path.join(cache, "huggingface")
    return Path(os.path.expanduser(home)) / "hub"


def has_models() -> bool:
    """Return whether the cache contains any model; quick."""
    return bool(_repositories())


def cached_models() -> list[CachedModel]:
    """Return every cached model, sorted by name; damaged ones have a `problem`. Never raises."""
    return sorted(_scan(_repositories()), key=lambda model: model.name)


def cached_model(name: str) -> CachedModel | None:
    """Return the cached model with that hub id."""
    folder_name = _PREFIX + name.replace("/", "--")
    return next(iter(_scan([folder for folder in _repositories() if folder.name == folder_name])), None)


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
    """Describes what is wrong with a repository in the cache."""


def _find_snapshot(folder: str) -> str | None:
    """Return the snapshot's folder, or None if nothing was downloaded. Raises _DamagedError, OSError.

    The rules are those of `huggingface_hub.scan_cache_dir`, which takes a millisecond per repository: a list of
    thousands of models would take seconds.
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
    """Return the names of all snapshots."""
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
                tr("its cache is damaged: {file} is a file in the snapshots folder").format(
                    file=entry.name[:_MAX_QUOTED]
                )
            )
    return found


def _read_main(path: str) -> str | None:
    """Return the commit that `main` refers to, or None without such a reference. Raises _DamagedError."""
    try:
        about = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(about.st_mode):
        return None
    data = b""
    if stat.S_ISREG(about.st_mode) and about.st_size <= _REF_BYTES:  # reading a pipe would block
        with open(path, "rb") as file:
            data = file.read(_REF_BYTES)
    try:
        commit = data.decode("ascii").strip()
    except UnicodeDecodeError:
        commit = ""
    if not commit.isalnum():
        raise _DamagedError(tr("its cache is damaged: {reference} is not a valid reference").format(reference=path))
    return commit


def _modified_time(snapshot: str) -> float:
    """Return the modification time of its newest file. Raises _DamagedError for a link to a missing file."""
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


BUNDLED = Path(__file__).resolve().parents[2] / "resources" / "models"
_MAX_NAME_LENGTH = 300
"""Maximum length of a name quoted in an error."""


def available() -> list[ModelEntry]:
    """Return all models in known places: bundled ones, then the local hub cache."""
    return [*bundled(), *hub_cached()]


def bundled() -> list[ModelEntry]:
    """Return the models that ship with the program, full-size ones before their drafts."""
    if not BUNDLED.is_dir():
        return []
    entries = [describe(path, path.name, "bundled") for path in BUNDLED.iterdir() if is_file(path / "config.json")]
    return sorted(entries, key=lambda entry: ("draft" in entry.name, entry.name != "storyteller", entry.name))


def hub_cached() -> list[ModelEntry]:
    """Return the text-generating models in the local Hugging Face hub cache, and those too damaged to classify.

    Slower than the other functions; `hub_has_models` quickly says whether there are any.
    """
    found = []
    for model in cached_models():
        config = None if model.problem else _config_or_none(model.path)
        if config is not None:
            if _can_generate(config):
                found.append(describe(model.path, model.name, "hub", config))
        elif model.problem or exists(model.path / "config.json"):
            found.append(_describe_cached(model))
    return found


def hub_has_models() -> bool:
    """Return whether the hub cache contains any model."""
    return has_models()


def hub_entry(name: str) -> ModelEntry | None:
    """Return the model with that hub id if it is in the cache."""
    model = cached_model(name)
    return _describe_cached(model) if model is not None else None


def _describe_cached(model: CachedModel) -> ModelEntry:
    entry = describe(model.path, model.name, "hub")
    return entry._replace(problem=model.problem) if model.problem else entry


def inspect(folder: str | Path) -> ModelEntry:
    """Describe a model in one of the user's folders. Raises ModelNotFoundError, ConfigMissingError."""
    path = locate(folder)
    read_config(path)
    return describe(path, str(path), "folder")


def locate(model: object) -> Path:
    """Return the folder of a bundled name, a path, or a hub id in the local cache. Raises ModelNotFoundError."""
    name = str(model) if isinstance(model, str | PathLike) else short_repr(model)
    if name and "/" not in name and "\\" not in name and is_file(BUNDLED / name / "config.json"):
        return BUNDLED / name
    path = Path(os.path.expanduser(name))
    if os.path.isdir(path):
        return path
    cached = cached_model(name)
    if cached is not None and cached.problem is None:
        return cached.path
    if cached is not None:
        raise ModelNotFoundError(
            tr("“{name}” cannot be used: {problem}.").format(name=name, problem=cached.problem),
            tr("Remove it from the cache and download it again."),
        )
    if is_file(path):
        raise ModelNotFoundError(
            tr("{name} is a file, but a model is a folder.").format(name=name),
            tr("Choose the folder that contains config.json and the weights."),
        )
    looks_local = path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1
    what = (
        tr("The folder {name} does not exist.") if looks_local else tr("There is no model “{name}” on this computer.")
    )
    known = ", ".join(entry.name for entry in bundled()) or tr("none")
    raise ModelNotFoundError(
        what.format(name=cut_short(name, _MAX_NAME_LENGTH)),
        tr("Choose a model folder, a model in the hub cache, or a bundled model ({known}).").format(known=known),
    )


def same_tokenizer(one: ModelEntry, other: ModelEntry) -> bool:
    """Return whether two folders hold the same tokenizer.json; both may lack a readable one.

    Files of different sizes are not read, because a list of drafts compares one model with all others.
    """
    sizes = {size_of(entry.path / "tokenizer.json") for entry in (one, other)}
    return len(sizes) == 1 and tokenizer_of(one.path) == tokenizer_of(other.path)


def tokenizer_of(folder: Path) -> bytes:
    """Return the content of a folder's tokenizer.json; empty if there is no readable one."""
    try:
        return read_bytes(folder / "tokenizer.json", INDEX_BYTES)
    except (FileNotFoundError, ModelFileError):
        return b""


def display_name(name: str, path: Path) -> str:
    """Return a bundled or hub model's own name, otherwise the folder's name."""
    return path.name if os.path.isdir(os.path.expanduser(name)) else name


def _config_or_none(snapshot: Path) -> JsonObject | None:
    """Return the config.json, or None if it is missing or unreadable, which `describe` reports."""
    try:
        return read_config(snapshot)
    except ConfigMissingError:
        return None


def _can_generate(config: JsonObject) -> bool:
    """Return whether the architectures include a language-model head; embedders, classifiers and audio-only models do
    not.
    """
    if non_text_modality(config) in ("hears", "speaks") and "audio_config" not in config:
        return False
    return has_language_head(config)
