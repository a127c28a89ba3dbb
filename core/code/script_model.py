"""The inputs of a script: the model to load, and the settings that differ from the defaults. Reads only small files and
does not import torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.core import strategies
from decodescope.core.common.hf_generation import DEFAULTS, WITHOUT_EFFECT
from decodescope.core.common.run_settings import RunSettings
from decodescope.core.errors import ModelError
from decodescope.core.models import catalog
from decodescope.core.models.adapters.adapter_choice import (
    AdapterChoice,
    adapter_location,
    check_adapters,
    is_adapter_folder,
    read_adapter_config,
)
from decodescope.core.models.config_validation import FLOATS
from decodescope.core.models.gguf.file_names import is_gguf
from decodescope.core.models.gguf.file_summary import transformers_problem
from decodescope.core.models.model_entry import read_config
from decodescope.core.models.model_files import JsonObject, read_json
from decodescope.core.parameter import Parameter, Settings
from decodescope.core.request import Request
from decodescope.core.settings import merge_settings
from decodescope.core.strategies.base import Strategy
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel


@dataclass(frozen=True, slots=True)
class ScriptModel:
    """A model as it is named in scripts."""

    name: str
    """Argument of `core.load`."""
    hub_id_or_folder: str
    """Argument of `from_pretrained`: a folder or a hub id."""
    device: str = "auto"
    dtype: str = "auto"
    weights: str = ""
    """int8, int4 or fp8 if the weights are quantized while loading."""
    is_encoder_decoder: bool = False
    generation_config: Mapping[str, object] = field(default_factory=dict)
    """Settings of the model's own generation_config."""
    tokenizer: bytes = b""
    """Content of its tokenizer.json; empty if unknown."""
    vocab_size: int = 0
    """Vocabulary size; 0 if unknown."""
    memory_limit: int | str | None = None
    """Bytes of weights kept in memory; further layers stay on disk."""
    gguf_file: str = ""
    """Name of the GGUF file in that folder; empty for a model in Hugging Face's layout."""
    gguf_problem: str = ""
    """Why transformers cannot read that file, as a sentence."""
    adapters: tuple[AdapterChoice, ...] = ()
    """Adapters with their strengths."""


def script_model(model: LoadedModel | str | Path, device: str, dtype: str) -> ScriptModel:
    """Describe a model by name, folder, or loaded model. One that is not found keeps the given name."""
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
    found = ScriptModel(
        name, _loadable_name(name, folder), device, *_split_dtype(dtype), encodes, own, tokenizer, _vocab_size(config)
    )
    return _in_gguf(found, folder)


def _in_gguf(model: ScriptModel, path: Path | None) -> ScriptModel:
    """Name the folder and the file of a model in a GGUF file; return others unchanged."""
    if path is None or not is_gguf(path):
        return model
    whole = path.resolve()
    return replace(
        model, hub_id_or_folder=str(whole.parent), gguf_file=whole.name, gguf_problem=transformers_problem(path)
    )


def script_adapters(request: Request, model: LoadedModel | str | Path) -> tuple[AdapterChoice, ...]:
    """Return the adapters of a run with a strength other than 0. Raises ParameterError."""
    if request.adapters is None:
        return () if isinstance(model, (str, Path)) else model.adapters.active
    return tuple(one for one in check_adapters(request.adapters) if one.strength)


def why_not_peft(adapters: Sequence[AdapterChoice]) -> str:
    """Return why PEFT does not apply these adapters in the same way, as a clause; "" if it does."""
    for one in adapters:
        folder = adapter_location(one.path)
        if not is_adapter_folder(folder):
            return tr("PEFT does not read the adapter {name}.").format(name=one.name)
        with suppress(ModelError):
            config = read_adapter_config(folder)
            plain = config.get("bias", "none") == "none" and not (
                config.get("modules_to_save") or config.get("use_dora")
            )
            if one.strength != 1 and not plain:
                return tr("PEFT has no strength for the adapter {name}.").format(name=one.name)
    return ""


def has_different_tokenizer(one: ScriptModel, other: ScriptModel) -> bool:
    """Return whether the two are known to have different tokenizers."""
    return bool(one.tokenizer and other.tokenizer) and one.tokenizer != other.tokenizer


def _split_dtype(dtype: str) -> tuple[str, str]:
    """Split one word into the dtype of the floats and the kind of packed weights."""
    return (dtype, "") if dtype in ("auto", *FLOATS) else ("auto", dtype)


def _from_loaded_model(model: LoadedModel) -> ScriptModel:
    name, place = model.name, model.name
    if model.path is not None:
        is_named = model.path == catalog.BUNDLED / model.name or "/" in model.name
        name = model.name if is_named else str(model.path)
        place = _loadable_name(name, model.path)
    tokenizer = b"" if model.path is None else catalog.tokenizer_of(model.path)
    own = {key: value for key, value in vars(model.generation_config).items() if value is not None}
    kinds = _split_dtype(model.weights)
    found = ScriptModel(
        name, place, str(model.device), *kinds, model.is_encoder_decoder, own, tokenizer, model.vocabulary
    )
    return _in_gguf(found, model.path)


def _loadable_name(name: str, folder: Path) -> str:
    """Return a hub id unchanged; for a bundled model, its folder in the program."""
    is_hub_id = name.count("/") == 1 and not Path(name).expanduser().is_dir()
    return name if is_hub_id else str(folder.resolve())


def _vocab_size(config: JsonObject) -> int:
    count = config.get("vocab_size")
    return count if isinstance(count, int) else 0


def _read_generation_config(folder: Path, config: JsonObject) -> JsonObject:
    """Read the settings as transformers does: from generation_config.json or, if it is missing, from config.json."""
    try:
        return read_json(folder / "generation_config.json")
    except FileNotFoundError:
        return {name: value for name, value in config.items() if name in DEFAULTS and value is not None}
    except ModelError:
        return {}


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """A request's strategy and its settings that have an effect."""

    strategy: Strategy
    settings: Settings
    """The effective settings of the request and the strategy by name, without options."""
    resolved: RunSettings
    """All settings of the run."""

    @property
    def samples(self) -> bool:
        """Whether tokens are sampled."""
        return bool(self.resolved.get("do_sample"))


def effective_settings(request: Request, source: ScriptModel, drafts: bool) -> EffectiveSettings:
    """Interpret a request as `core.run` does. Raises StrategyError, ParameterError for an invalid request."""
    resolved = merge_settings(request, source.generation_config)
    strategy = strategies.select(request.strategy, resolved, drafts)
    own = resolved.from_sources("flags", "request", "strategy")
    idle = settings_without_effect(strategy, resolved) | WITHOUT_EFFECT.keys() | request.options.keys()
    names = dict.fromkeys((*strategy.defaults, *request.settings, *strategy.flags))
    return EffectiveSettings(
        strategy, {name: own[name] for name in names if name in own and name not in idle}, resolved
    )


def differing_settings(settings: Settings, *defaults: Settings) -> dict[str, object]:
    """Return the settings whose value differs from that of the first of `defaults` that defines them."""
    missing = object()
    return {
        name: value
        for name, value in settings.items()
        if value is not None
        and value != next((known[name] for known in defaults if known.get(name) is not None), missing)
    }


def changed_options(parameters: tuple[Parameter, ...], options: Settings) -> dict[str, object]:
    """Return the options that differ from their parameters' defaults."""
    defaults = {parameter.name: parameter.default for parameter in parameters}
    return {name: value for name, value in options.items() if value is not None and value != defaults.get(name)}


def settings_without_effect(strategy: Strategy, settings: Settings) -> set[str]:
    """Return the sampling settings if nothing is sampled, and also num_return_sequences for greedy decoding."""
    if settings.get("do_sample"):
        return set()
    of_dice = {parameter.name: parameter for parameter in strategies.of_dice()}
    own = {parameter.name for parameter in strategy.parameters if parameter != of_dice.get(parameter.name)}
    idle = of_dice.keys() - own
    return idle if (settings.get("num_beams") or 1) > 1 else {*idle, "num_return_sequences"}
