"""Where models are found; importing this does not import torch."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from core.errors import ConfigMissingError, ModelFileError, ModelNotFoundError
from core.models import hub
from core.models.json_types import JsonObject
from core.models.memory_check import Fit, fits, weight_bytes
from core.models.model_entry import ModelEntry, describe, read_config
from core.models.model_files import INDEX_BYTES, exists, is_file, read_bytes, size_of
from core.models.quantized.weight_formats import KINDS, PACKED
from core.models.task import has_language_head, non_text_modality
from core.models.weights import find_weights
from core.parameter import short_repr
from core.text_truncation import cut_short
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

BUNDLED = Path(__file__).resolve().parents[2] / "resources" / "models"
_MAX_NAME_LENGTH = 300
"""What an error quotes of a name."""


def available() -> list[ModelEntry]:
    """Every model found without being told where: bundled ones, then the local hub cache."""
    return [*bundled(), *hub_cached()]


def bundled() -> list[ModelEntry]:
    """The models that ship with the program; the full-size ones before their drafts."""
    if not BUNDLED.is_dir():
        return []
    entries = [describe(path, path.name, "bundled") for path in BUNDLED.iterdir() if is_file(path / "config.json")]
    return sorted(entries, key=lambda entry: ("draft" in entry.name, entry.name != "storyteller", entry.name))


def hub_cached() -> list[ModelEntry]:
    """Models in the Hugging Face hub's local cache that write text, and those too damaged to tell.

    Slower than the others: `hub_has_models` says at once whether there are any.
    """
    found = []
    for model in hub.cached_models():
        config = None if model.problem else _config_or_none(model.path)
        if config is not None:
            if _can_generate(config):
                found.append(describe(model.path, model.name, "hub", config))
        elif model.problem or exists(model.path / "config.json"):
            found.append(_describe_cached(model))
    return found


def hub_has_models() -> bool:
    """Whether anything of a model lies in the hub's cache."""
    return hub.has_models()


def hub_entry(name: str) -> ModelEntry | None:
    """The model with that hub id, when it is in the cache."""
    model = hub.cached_model(name)
    return _describe_cached(model) if model is not None else None


def _describe_cached(model: hub.CachedModel) -> ModelEntry:
    entry = describe(model.path, model.name, "hub")
    return entry._replace(problem=model.problem) if model.problem else entry


def inspect(folder: str | Path) -> ModelEntry:
    """A model in a folder of the user's. Raises ModelNotFoundError, ConfigMissingError."""
    path = locate(folder)
    read_config(path)
    return describe(path, str(path), "folder")


def locate(model: object) -> Path:
    """The folder of a bundled name, a path, or a hub id in the local cache. Raises ModelNotFoundError."""
    name = str(model) if isinstance(model, str | PathLike) else short_repr(model)
    if name and "/" not in name and "\\" not in name and is_file(BUNDLED / name / "config.json"):
        return BUNDLED / name
    path = Path(os.path.expanduser(name))
    if os.path.isdir(path):
        return path
    cached = hub.cached_model(name)
    if cached is not None and cached.problem is None:
        return cached.path
    if cached is not None:
        raise ModelNotFoundError(
            tr("“{name}” cannot be used: {problem}.").format(name=name, problem=cached.problem),
            tr("Remove it from the cache, and download it again."),
        )
    if is_file(path):
        raise ModelNotFoundError(
            tr("{name} is a file, and a model is a folder.").format(name=name),
            tr("Choose the folder that holds config.json beside the weights."),
        )
    looks_local = path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1
    what = tr("The folder {name} does not exist.") if looks_local else tr("There is no model “{name}” on this disk.")
    known = ", ".join(entry.name for entry in bundled()) or tr("none")
    raise ModelNotFoundError(
        what.format(name=cut_short(name, _MAX_NAME_LENGTH)),
        tr("Choose a folder with a model, a model in the hub cache, or a bundled one ({known}).").format(known=known),
    )


def same_tokenizer(one: ModelEntry, other: ModelEntry) -> bool:
    """Whether two folders hold the same tokenizer.json; both may lack one that can be read.

    Files of different sizes are not read: a list of drafts compares one model with all others.
    """
    sizes = {size_of(entry.path / "tokenizer.json") for entry in (one, other)}
    return len(sizes) == 1 and tokenizer_of(one.path) == tokenizer_of(other.path)


def tokenizer_of(folder: Path) -> bytes:
    """What a folder's tokenizer.json holds; empty without one that can be read."""
    try:
        return read_bytes(folder / "tokenizer.json", INDEX_BYTES)
    except (FileNotFoundError, ModelFileError):
        return b""


def display_name(name: str, path: Path) -> str:
    """A bundled or hub model's own name; the folder's name otherwise."""
    return path.name if os.path.isdir(os.path.expanduser(name)) else name


def _config_or_none(snapshot: Path) -> JsonObject | None:
    """Its config.json; None where that is missing or cannot be read, which `describe` says."""
    try:
        return read_config(snapshot)
    except ConfigMissingError:
        return None


def _can_generate(config: JsonObject) -> bool:
    """Whether its architectures name a language-model head; embedders, classifiers and what only hears do not."""
    if non_text_modality(config) in ("hears", "speaks") and "audio_config" not in config:
        return False
    return has_language_head(config)
