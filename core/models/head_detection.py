"""Which heads a checkpoint's folder holds, by the names of its tensors alone; importing this does not import torch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import CorruptWeightsError, ModelError, ModelFileError, ModelNotFoundError
from core.models import catalog
from core.models.model_files import find_weights, is_file, read_header, read_json
from resources.language import tr

if TYPE_CHECKING:
    from core.models.loaded_model import LoadedModel

BUNDLED = catalog.BUNDLED.parent / "heads"
"""Heads that ship with the program, for its own models."""
_EXTRA_LAYER = re.compile(r"^(?:\w+\.)*layers\.(\d+)\.eh_proj\.weight$")
"""DeepSeek's way: the heads are layers behind the last."""
_SINGLE = re.compile(r"^(?:model\.)?mtp\.fc\.weight$")
"""Qwen's: one head under a name of its own."""
_NUMBERED = re.compile(r"^(?:model\.)?mtp\.layers\.(\d+)\.(?:eh_proj|input_proj)\.weight$")


@dataclass(frozen=True, slots=True)
class CheckpointHeads:
    """Heads for several tokens (MTP) in a model's own checkpoint."""

    count: int
    patterns: tuple[str, ...]
    """What the names of their tensors match, and those of no other."""


def checkpoint_heads(model: LoadedModel) -> CheckpointHeads | None:
    """What the checkpoint of a model holds beside the model; None for nothing. Remembered."""
    if "own_heads" not in model.remembered:
        model.remembered["own_heads"] = _find_heads(_tensor_names(_folder(model)), model.layers)
    found: CheckpointHeads | None = model.remembered["own_heads"]
    return found


def head_folder(name: str) -> Path:
    """Of a bundled head, a path, or a hub id on this disk. Raises ModelNotFoundError."""
    bundled = BUNDLED / name
    return bundled if Path(name).name == name and is_file(bundled / "config.json") else catalog.locate(name)


def heads_unsupported_reason(model: LoadedModel, name: str | None) -> str | None:
    """Why no head can draft for it: its own, or the one called `name`."""
    if model.is_encoder_decoder:
        return tr("{model} is an encoder–decoder, and prediction heads read a decoder's states.").format(
            model=model.name
        )
    if name:
        try:
            return eagle_unsupported_reason(model, head_folder(name))
        except ModelNotFoundError as error:
            return error.cause
    if checkpoint_heads(model) is None:
        return tr(
            "{model} comes without heads for several tokens (MTP), and no EAGLE head is named (draft_head)."
        ).format(model=model.name)
    return None


def has_fitting_head(model: LoadedModel) -> bool:
    """Whether an EAGLE head that was made for the model lies among the bundled ones or in the hub's cache. Remembered.

    Heads elsewhere are found by their path alone.
    """
    if "fitting_head" not in model.remembered:
        bundled = sorted(BUNDLED.iterdir()) if BUNDLED.is_dir() else []
        folders = (*bundled, *(cached.path for cached in catalog.cached_models() if not cached.problem))
        model.remembered["fitting_head"] = any(_is_eagle_of(model, folder) for folder in folders)
    return bool(model.remembered["fitting_head"])


def _is_eagle_of(model: LoadedModel, folder: Path) -> bool:
    try:
        return "fc.weight" in _tensor_names(folder) and eagle_unsupported_reason(model, folder) is None
    except (ModelError, OSError):
        return False


def eagle_unsupported_reason(model: LoadedModel, folder: Path) -> str | None:
    """Why the checkpoint in `folder` is no EAGLE head for the model."""
    names = _tensor_names(folder)
    if not names and not find_weights(folder).files:
        return tr("{folder} holds no weights of a draft head.").format(folder=folder)
    if any(name.startswith(("midlayer.", "d2t")) for name in names):
        return tr("{folder} holds an EAGLE-3 head, which reads three of the model's layers; only EAGLE's first two "
                  "forms are read, which see the last.").format(folder=folder.name)  # fmt: skip
    if names and "fc.weight" not in names:
        return tr("{folder} holds no EAGLE head: there is no fc.weight.").format(folder=folder.name)
    width = read_json(folder / "config.json").get("hidden_size") if is_file(folder / "config.json") else None
    if width != model.config.hidden_size:
        return tr(
            "{folder} was made for another model: its states have {width} numbers, those of {model} {own}."
        ).format(folder=folder.name, width=width, model=model.name, own=model.config.hidden_size)
    return None


def _folder(model: LoadedModel) -> Path:
    return model.path or Path(str(getattr(model.model.config, "_name_or_path", "")) or "/nowhere")


def _tensor_names(folder: Path) -> Collection[str]:
    """Of the tensors in a folder's safetensors files."""
    try:
        files = find_weights(folder).files if folder.is_dir() else ()
    except (CorruptWeightsError, ModelFileError):
        return ()
    return {name for file in files for name in read_header(file) or ()}


def _find_heads(names: Iterable[str], layers: int) -> CheckpointHeads | None:
    names = list(names)
    behind = {int(found[1]) for name in names if (found := _EXTRA_LAYER.match(name)) and int(found[1]) >= layers}
    if behind:
        count = len(behind)
        return CheckpointHeads(count, tuple(rf"\.layers\.{layers + place}\." for place in range(count)))
    numbered = {int(found[1]) for name in names if (found := _NUMBERED.match(name))}
    if numbered or any(map(_SINGLE.match, names)):
        return CheckpointHeads(len(numbered) or 1, (r"^(?:model\.)?mtp\.",))
    return None
