"""The model of a script: what to load it by, and which settings it brings. Reads small files only; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from core.defaults import DEFAULTS
from core.errors import ModelError
from core.models import catalog
from core.models.json_types import JsonObject
from core.models.model_entry import read_config
from core.models.model_files import read_json
from core.models.quantized.weight_formats import PACKED

if TYPE_CHECKING:
    from core.models.loaded_model import LoadedModel


@dataclass(frozen=True, slots=True)
class ScriptModel:
    """A model as scripts name it."""

    name: str
    """What `core.load` takes."""
    hub_id_or_folder: str
    """What `from_pretrained` takes: a folder, or a hub id."""
    device: str = "auto"
    dtype: str = "auto"
    weights: str = ""
    """int8 or int4 where they are packed while loading."""
    is_encoder_decoder: bool = False
    generation_config: Mapping[str, object] = field(default_factory=dict)
    """The settings of its own generation_config."""
    tokenizer: bytes = b""
    """What its tokenizer.json holds; empty where that cannot be told."""
    vocab_size: int = 0
    """Token ids that it scores; 0 where that cannot be told."""
    memory_limit: int | str | None = None
    """Bytes of its weights in memory; the layers beyond stay on the disk."""


def script_model(model: LoadedModel | str | Path, device: str, dtype: str) -> ScriptModel:
    """A model by its name, its folder, or as it is loaded. One that cannot be found is named as it was."""
    if not isinstance(model, (str, Path)):
        return _from_loaded_model(model)
    name = str(model)
    try:
        folder = catalog.locate(name)
        config = read_config(folder)
    except ModelError:
        return ScriptModel(name, name, device, *_split_dtype(dtype))
    encodes = bool(config.get("is_encoder_decoder"))
    own, tokenizer = _read_generation_config(folder, config), catalog.tokenizer_of(folder)
    return ScriptModel(
        name, _loadable_name(name, folder), device, *_split_dtype(dtype), encodes, own, tokenizer, _vocab_size(config)
    )


def has_different_tokenizer(one: ScriptModel, other: ScriptModel) -> bool:
    """Whether the two are known to have different tokenizers."""
    return bool(one.tokenizer and other.tokenizer) and one.tokenizer != other.tokenizer


def _split_dtype(dtype: str) -> tuple[str, str]:
    """Type of the floats and kind of the weights, of one word for both."""
    return ("auto", dtype) if dtype in PACKED else (dtype, "")


def _from_loaded_model(model: LoadedModel) -> ScriptModel:
    name, place = model.name, model.name
    if model.path is not None:
        is_named = model.path == catalog.BUNDLED / model.name or "/" in model.name
        name = model.name if is_named else str(model.path)
        place = _loadable_name(name, model.path)
    tokenizer = b"" if model.path is None else catalog.tokenizer_of(model.path)
    own = {key: value for key, value in vars(model.generation_config).items() if value is not None}
    kinds = _split_dtype(model.weights)
    return ScriptModel(
        name, place, str(model.device), *kinds, model.is_encoder_decoder, own, tokenizer, model.vocabulary
    )


def _loadable_name(name: str, folder: Path) -> str:
    """A hub id stands for itself; a bundled model's folder is where the program lies."""
    is_hub_id = name.count("/") == 1 and not Path(name).expanduser().is_dir()
    return name if is_hub_id else str(folder.resolve())


def _vocab_size(config: JsonObject) -> int:
    count = config.get("vocab_size")
    return count if isinstance(count, int) else 0


def _read_generation_config(folder: Path, config: JsonObject) -> JsonObject:
    """As transformers reads them: of generation_config.json, or where there is none, of config.json."""
    try:
        return read_json(folder / "generation_config.json")
    except FileNotFoundError:
        return {name: value for name, value in config.items() if name in DEFAULTS and value is not None}
    except ModelError:
        return {}
