"""Detect prediction heads in a checkpoint folder by tensor names. Importing this module does not import torch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.core.errors import CorruptWeightsError, ModelError, ModelFileError, ModelNotFoundError
from decodescope.core.models import catalog
from decodescope.core.models.model_files import find_weights, is_file, read_header, read_json
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel

BUNDLED = catalog.BUNDLED.parent / "heads"
"""Heads that ship with the program, for its own models."""
_EXTRA_LAYER = re.compile(r"^(?:\w+\.)*layers\.(\d+)\.eh_proj\.weight$")
"""DeepSeek's naming: the heads are layers after the last one."""
_SINGLE = re.compile(r"^(?:model\.)?mtp\.fc\.weight$")
"""Qwen's naming: one head with its own name."""
_NUMBERED = re.compile(r"^(?:model\.)?mtp\.layers\.(\d+)\.(?:eh_proj|input_proj)\.weight$")


@dataclass(frozen=True, slots=True)
class CheckpointHeads:
    """Multi-token prediction heads (MTP) in a model's own checkpoint."""

    count: int
    patterns: tuple[str, ...]
    """Patterns that match the names of their tensors and no others."""


def checkpoint_heads(model: LoadedModel) -> CheckpointHeads | None:
    """Return the MTP heads in a model's checkpoint, or None. Cached."""
    if "own_heads" not in model.strategy_data:
        model.strategy_data["own_heads"] = _find_heads(_tensor_names(_folder(model)), model.layers)
    found: CheckpointHeads | None = model.strategy_data["own_heads"]
    return found


def bundled_heads() -> list[str]:
    """Return the names of the bundled EAGLE heads."""
    folders = sorted(BUNDLED.iterdir()) if BUNDLED.is_dir() else []
    return [folder.name for folder in folders if "fc.weight" in _tensor_names(folder)]


def head_folder(name: str) -> Path:
    """Return the folder of a bundled head, a path, or a hub id on this computer. Raises ModelNotFoundError."""
    bundled = BUNDLED / name
    return bundled if Path(name).name == name and is_file(bundled / "config.json") else catalog.locate(name)


def heads_unsupported_reason(model: LoadedModel, name: str | None) -> str | None:
    """Return why no head can draft for the model: its own, or the one called `name`."""
    if model.is_encoder_decoder:
        return tr(
            "{model} is an encoder–decoder model, but prediction heads read the states of a decoder-only model."
        ).format(model=model.name)
    if name:
        try:
            return eagle_unsupported_reason(model, head_folder(name))
        except ModelNotFoundError as error:
            return error.cause
    if checkpoint_heads(model) is None:
        return tr(
            "{model} has no multi-token prediction heads (MTP), and no EAGLE head is selected (draft_head)."
        ).format(model=model.name)
    return None


def has_fitting_head(model: LoadedModel) -> bool:
    """Return whether a bundled EAGLE head, or one in the hub cache, was made for the model. Cached.

    Heads elsewhere are found by path only.
    """
    if "fitting_head" not in model.strategy_data:
        bundled = sorted(BUNDLED.iterdir()) if BUNDLED.is_dir() else []
        folders = (*bundled, *(cached.path for cached in catalog.cached_models() if not cached.problem))
        model.strategy_data["fitting_head"] = any(_is_eagle_of(model, folder) for folder in folders)
    return bool(model.strategy_data["fitting_head"])


def _is_eagle_of(model: LoadedModel, folder: Path) -> bool:
    try:
        return "fc.weight" in _tensor_names(folder) and eagle_unsupported_reason(model, folder) is None
    except (ModelError, OSError):
        return False


def eagle_unsupported_reason(model: LoadedModel, folder: Path) -> str | None:
    """Return why the checkpoint in `folder` is not an EAGLE head for the model."""
    names = _tensor_names(folder)
    if not names and not find_weights(folder).files:
        return tr("{folder} contains no weights of a draft head.").format(folder=folder)
    if any(name.startswith(("midlayer.", "d2t")) for name in names):
        return tr("{folder} contains an EAGLE-3 head, which reads three of the model's layers; only EAGLE 1 and "
            "2, which read the last layer, are supported.").format(folder=folder.name)  # fmt: skip
    if names and "fc.weight" not in names:
        return tr("{folder} does not contain an EAGLE head: fc.weight is missing.").format(folder=folder.name)
    width = read_json(folder / "config.json").get("hidden_size") if is_file(folder / "config.json") else None
    if width != model.config.hidden_size:
        return tr(
            "{folder} was made for another model: its states have {width} dimensions, those of {model} have {own}."
        ).format(folder=folder.name, width=width, model=model.name, own=model.config.hidden_size)
    return None


def _folder(model: LoadedModel) -> Path:
    return model.path or Path(str(getattr(model.model.config, "_name_or_path", "")) or "/nowhere")


def _tensor_names(folder: Path) -> Collection[str]:
    """Return the tensor names in a folder's safetensors files."""
    try:
        files = find_weights(folder).files if folder.is_dir() else ()
    except (CorruptWeightsError, ModelFileError):
        return ()
    return {name for file in files for name in read_header(file) or ()}


def _find_heads(names: Iterable[str], layers: int) -> CheckpointHeads | None:
    names = list(names)
    extra_layers = {int(found[1]) for name in names if (found := _EXTRA_LAYER.match(name)) and int(found[1]) >= layers}
    if extra_layers:
        count = len(extra_layers)
        return CheckpointHeads(count, tuple(rf"\.layers\.{layers + place}\." for place in range(count)))
    numbered = {int(found[1]) for name in names if (found := _NUMBERED.match(name))}
    if numbered or any(map(_SINGLE.match, names)):
        return CheckpointHeads(len(numbered) or 1, (r"^(?:model\.)?mtp\.",))
    return None
