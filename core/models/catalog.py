"""Find models on disk. Importing this module does not import torch."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Set
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from decodescope.core.common.text import cut_short
from decodescope.core.errors import ConfigMissingError, CorruptWeightsError, ModelFileError, ModelNotFoundError
from decodescope.core.models.gguf.file_names import (
    SEPARATOR,
    SUFFIX,
    find_model,
    gguf_in,
    group_models,
    is_gguf,
    split_files,
    split_name,
)
from decodescope.core.models.gguf.local_models import HUB_PROGRAM, local_models
from decodescope.core.models.modalities import has_language_head, non_text_modality
from decodescope.core.models.model_entry import ModelEntry, describe, describe_gguf, read_config
from decodescope.core.models.model_files import (
    INDEX_BYTES,
    FileStats,
    JsonObject,
    exists,
    find_weights,
    is_file,
    read_bytes,
    read_start,
    size_of,
)
from decodescope.core.parameter import short_repr
from decodescope.core.system.system_errors import system_error_reason
from decodescope.core.system.user_folders import hub_cache as hub_cache
from decodescope.resources.language import join_names, tr

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
    stats: FileStats | None = None
    """Status of the entries of the folder."""


def has_models() -> bool:
    """Return whether the cache contains any model; quick."""
    return bool(_repositories())


def cached_models() -> list[CachedModel]:
    """Return every cached model, sorted by name; damaged ones have a `problem`. Never raises."""
    return sorted(_scan(_repositories()), key=itemgetter(0))


def cached_model(name: str) -> CachedModel | None:
    """Return the cached model with that hub id."""
    folder_name = _PREFIX + name.replace("/", "--")
    return next(iter(_scan([folder for folder in _repositories() if folder.name == folder_name])), None)


def _repositories() -> list[os.DirEntry[str]]:
    try:
        return [entry for entry in os.scandir(hub_cache()) if entry.name.startswith(_PREFIX)]
    except OSError:
        return []


def _scan(folders: Iterable[os.DirEntry[str]]) -> Iterator[CachedModel]:
    for folder in folders:
        name = folder.name.removeprefix(_PREFIX).replace("--", "/")
        try:
            if (found := _find_snapshot(folder.path)) is not None:
                snapshot, stats = found
                yield CachedModel(name, Path(snapshot), None, stats)
        except _DamagedRepositoryError as error:
            yield CachedModel(name, Path(folder.path), str(error))
        except (OSError, ValueError) as error:
            problem = tr("its cache cannot be read: {error}").format(error=system_error_reason(error))
            yield CachedModel(name, Path(folder.path), problem)


class _DamagedRepositoryError(Exception):
    """Describes what is wrong with a repository in the cache."""


def _find_snapshot(folder: str) -> tuple[str, FileStats] | None:
    """Return the snapshot's folder and the status of its entries, or None if nothing was downloaded.

    The rules are those of `huggingface_hub.scan_cache_dir`, which takes a millisecond per repository: a list of
    thousands of models would take seconds. Raises _DamagedRepositoryError, OSError.
    """
    snapshots = f"{folder}{os.sep}snapshots"
    commits = _commits(snapshots)
    main = _read_main(f"{folder}{os.sep}refs{os.sep}main")
    if main is not None and main not in commits:
        raise _DamagedRepositoryError(
            tr("its cache is damaged: there is no snapshot {commit}").format(commit=main[:_MAX_QUOTED])
        )
    if not commits:
        return None
    if main is None:
        main = max(commits, key=lambda commit: _modified_time(os.path.join(snapshots, commit)))
    snapshot = f"{snapshots}{os.sep}{main}"
    stats: dict[str, os.stat_result] = {}
    missing: set[str] = set()
    _modified_time(snapshot, stats, missing)
    if needed := sorted(_needed_names(snapshot, stats, missing)):
        raise _DamagedRepositoryError(
            tr("its cache is damaged: the content of {file} is missing").format(file=needed[0][:_MAX_QUOTED])
        )
    return snapshot, stats


_READ_NAMES = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|tekken|chat_template"
    r"|preprocessor_config|processor_config|hf_quant_config)\.(json|txt|jinja)|merges\.txt|.*\.(model|tiktoken|spm|py)"
)
"""Names of the files of a model, besides its weights, that are read."""


def _needed_names(snapshot: str, stats: FileStats, missing: Set[str]) -> Iterator[str]:
    """Yield the files with missing content without which the model is not what was downloaded; others may be gone."""
    yield from filter(_READ_NAMES.fullmatch, missing)
    if weights := [name for name in missing if name.endswith((".safetensors", ".bin", ".index.json"))]:
        try:
            used = {file.name for file in find_weights(Path(snapshot), stats).files}
        except CorruptWeightsError:
            used = set()
        is_whole = bool(used) and used <= stats.keys()
        yield from (name for name in weights if name in used or (not is_whole and not used & stats.keys()))


def _commits(snapshots: str) -> set[str]:
    """Return the names of all snapshots."""
    found = set()
    try:
        entries = list(os.scandir(snapshots))
    except (FileNotFoundError, NotADirectoryError):
        raise _DamagedRepositoryError(tr("its cache is damaged: the folder “snapshots” is missing")) from None
    for entry in entries:
        if entry.is_dir():
            found.add(entry.name)
    return found


def _read_main(path: str) -> str | None:
    """Return the commit that `main` refers to, or None without such a reference. Raises _DamagedRepositoryError."""
    try:
        about = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(about.st_mode):
        return None
    data = b""
    if stat.S_ISREG(about.st_mode) and about.st_size <= _REF_BYTES:  # reading a pipe would block
        data = read_start(path, _REF_BYTES)
    try:
        commit = data.decode("ascii").strip()
    except UnicodeDecodeError:
        commit = ""
    if not commit.isalnum():
        raise _DamagedRepositoryError(
            tr("its cache is damaged: {reference} is not a valid reference").format(reference=path)
        )
    return commit


def _modified_time(
    snapshot: str, stats: dict[str, os.stat_result] | None = None, missing: set[str] | None = None
) -> float:
    """Return the modification time of its newest file; put the status of its own entries into `stats`, and the names of
    those that are links to a missing file into `missing`.
    """
    newest, folders = 0.0, [snapshot]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder:
                    folders.append(entry.path)
                try:
                    about = entry.stat()
                    newest = newest if is_folder else max(newest, about.st_mtime)
                    if stats is not None and folder is snapshot:
                        stats[entry.name] = about
                except FileNotFoundError:
                    if missing is not None and folder is snapshot:
                        missing.add(entry.name)
    return newest


BUNDLED = Path(__file__).resolve().parents[2] / "resources" / "models"
_MAX_NAME_LENGTH = 300
"""Maximum length of a name quoted in an error."""


def available() -> list[ModelEntry]:
    """Return all models in known places: bundled ones, the local hub cache, then GGUF files of other programs."""
    return [*bundled(), *hub_cached(), *other_programs()]


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
        config = _config_or_none(model)
        if config is not None:
            if _can_generate(config):
                found.append(describe(model.path, model.name, "hub", config, model.stats))
        elif model.problem or exists(model.path / "config.json"):
            found.append(_describe_cached(model))
    return found


def other_programs() -> list[ModelEntry]:
    """Return the GGUF files of LM Studio, Ollama, llama.cpp and others, and those in the hub's cache."""
    return [describe_gguf(model.path, str(model.path), model.program, model.title) for model in local_models()]


def hub_has_models() -> bool:
    """Return whether the hub cache contains any model."""
    return has_models()


def hub_gguf() -> list[tuple[str, ModelEntry]]:
    """Return the complete GGUF models in the hub's cache, each with its name `owner/name:model`. Never raises."""
    return [
        (f"{model.name}{SEPARATOR}{names.key}", _describe_cached_gguf(model.path / names.paths[0]))
        for model in cached_models()
        if model.problem is None
        for names in group_models(_gguf_paths(model.path))
    ]


def hub_gguf_files(name: str) -> tuple[Path, ...]:
    """Return the files of the cached GGUF model `owner/name:model`, in order; empty if it is not in the cache."""
    repository, wanted = split_name(name)
    model = cached_model(repository) if wanted else None
    if model is None or model.problem is not None:
        return ()
    names = find_model(group_models(_gguf_paths(model.path)), wanted)
    return tuple(model.path / path for path in names.paths) if names is not None else ()


def _gguf_paths(snapshot: Path) -> list[str]:
    """Return the paths of the GGUF files in a snapshot, with slashes."""
    found = []
    for folder, _folders, names in os.walk(snapshot):
        below = Path(folder).relative_to(snapshot)
        found += [
            (below / name).as_posix()
            for name in names
            if name.lower().endswith(SUFFIX) and os.path.isfile(os.path.join(folder, name))
        ]
    return found


def _describe_cached_gguf(path: Path) -> ModelEntry:
    return describe_gguf(path, str(path), HUB_PROGRAM, path.stem)


def hub_entry(name: str) -> ModelEntry | None:
    """Return the model with that hub id, or the GGUF model `owner/name:model`, if it is in the cache."""
    if SEPARATOR in name:
        files = hub_gguf_files(name)
        return _describe_cached_gguf(files[0]) if files else None
    model = cached_model(name)
    return _describe_cached(model) if model is not None else None


def _describe_cached(model: CachedModel) -> ModelEntry:
    entry = describe(model.path, model.name, "hub", stats=model.stats)
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
    if is_gguf(path):
        return split_files(path)[0]
    if os.path.isdir(path):
        return _model_in(path)
    if files := hub_gguf_files(name):
        return files[0]
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
            tr("{name} is not a model: models are GGUF files, and folders.").format(name=name),
            tr("Choose a GGUF file, or the folder that contains config.json and the weights."),
        )
    looks_local = path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1
    what = (
        tr("The folder {name} does not exist.") if looks_local else tr("There is no model “{name}” on this computer.")
    )
    known = join_names(entry.name for entry in bundled()) or tr("none")
    raise ModelNotFoundError(
        what.format(name=cut_short(name, _MAX_NAME_LENGTH)),
        tr("Choose a model folder, a model in the hub cache, or a bundled model ({known}).").format(known=known),
    )


def _model_in(folder: Path) -> Path:
    """Return a folder in Hugging Face's layout, or else the GGUF file in it. Raises ModelFileError."""
    if is_file(folder / "config.json"):
        return folder
    return gguf_in(folder) or folder


def same_tokenizer(one: ModelEntry, other: ModelEntry) -> bool:
    """Return whether two folders hold the same tokenizer.json; both may lack a readable one.

    Files of different sizes are not read, because a list of drafts compares one model with all others.
    """
    if one.format_name or other.format_name:
        return tokenizer_of(one.path) == tokenizer_of(other.path)
    sizes = {size_of(entry.path / "tokenizer.json") for entry in (one, other)}
    return len(sizes) == 1 and tokenizer_of(one.path) == tokenizer_of(other.path)


def tokenizer_of(folder: Path) -> bytes:
    """Return the content of a folder's tokenizer.json, or a stamp of a GGUF file's vocabulary; empty if there is no
    readable one.
    """
    if is_gguf(folder):
        from decodescope.core.models.gguf.file_summary import vocabulary_stamp

        return vocabulary_stamp(folder)
    try:
        return read_bytes(folder / "tokenizer.json", INDEX_BYTES)
    except (FileNotFoundError, ModelFileError):
        return b""


def display_name(name: str, path: Path) -> str:
    """Return a bundled or hub model's own name, otherwise the folder's name."""
    if is_gguf(path):
        return path.stem if path.suffix else next((one.title for one in local_models() if one.path == path), path.name)
    return path.name if os.path.isdir(os.path.expanduser(name)) else name


def _config_or_none(model: CachedModel) -> JsonObject | None:
    """Return the config.json, or None if it is missing or unreadable, which `describe` reports."""
    about = (model.stats or {}).get("config.json")
    if about is None:
        return None
    try:
        return read_config(model.path, about)
    except ConfigMissingError:
        return None


def _can_generate(config: JsonObject) -> bool:
    """Return whether the architectures include a language-model head; embedders, classifiers and audio-only models do
    not.
    """
    if non_text_modality(config) in ("hears", "speaks") and "audio_config" not in config:
        return False
    return has_language_head(config)
