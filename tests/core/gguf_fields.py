"""Changes of configuration fields, found from transformers' configuration classes, and what an export makes of them."""

from __future__ import annotations

import copy
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

from decodescope import core
from decodescope.core.errors import DecodescopeError, UnpackableError
from tests.core import gguf_models

PROMPT = [1 + (37 * number * number + 11 * number) % 255 for number in range(40)]
"""Long enough that windows of a few tokens and scaled positions change the last logits."""
_BOOKKEEPING = frozenset(PreTrainedConfig().to_dict())
_ACTIVATIONS = ("silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "relu2", "tanh", "quick_gelu", "sigmoid")
_TEXTS = ("greedy", "group_limited_greedy", "noaux_tc", "softmax", "sigmoid", "random")
_BY_TYPE: Mapping[type, tuple[Any, ...]] = {
    bool: (True, False), int: (1, 2, 4, 8), float: (0.1, 0.5, 4.0), str: (*_ACTIVATIONS[:3], *_TEXTS[:3]),
}  # fmt: skip
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
_ROPES: tuple[dict[str, Any], ...] = (
    {"rope_type": "default", "rope_theta": 1234.5},
    {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0},
    _YARN,
    {**_YARN, "attention_factor": 0.7},
    {**_YARN, "beta_fast": 8.0},
    {**_YARN, "beta_slow": 3.0},
    {**_YARN, "truncate": False},
    {**_YARN, "truncate": True},
    {**_YARN, "mscale": 0.707, "mscale_all_dim": 0.707},
    {**_YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
    {**_YARN, "mscale": 1.0, "mscale_all_dim": 0.5},
    {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 3.0, "low_freq_factor": 1.5, "high_freq_factor": 6.0,
        "original_max_position_embeddings": 16,
    },
    {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 16},
    {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64, "attention_factor": 1.3},
    {"rope_type": "proportional", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
)  # fmt: skip
_WINDOWS: dict[str, Any] = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0}
_GROUPS: dict[str, Any] = {
    "n_group": 2,
    "topk_group": 1,
    "topk_method": "group_limited_greedy",
    "num_experts_per_tok": 1,
}


class FieldChange(NamedTuple):
    """A value of a field in a setting of other fields."""

    kind: str
    setting: str
    field: str
    value: Any


class ExportOutcome(NamedTuple):
    """Result of exporting a change: `right`, `refused`, or the fault."""

    result: str
    detail: str = ""


def settings_of(kind: str) -> dict[str, dict[str, Any]]:
    """Return the settings in which fields are changed, by name: that of `gguf_models`, and those that switch on what
    other fields depend on.
    """
    fields = _config(kind, {}).to_dict()
    found: dict[str, dict[str, Any]] = {"": {}}
    for name, values in (("windows", _WINDOWS), ("groups", _GROUPS)):
        own = {field: value for field, value in values.items() if field in fields}
        if (name == "windows" and "sliding_window" in own) or "n_group" in own:
            found[name] = own
    return found


def changes(kind: str) -> Iterator[FieldChange]:
    """Yield the changes of every field of a kind of model, also those that change nothing."""
    for setting, values in settings_of(kind).items():
        try:
            config = _config(kind, values)
        except Exception:  # a setting that the family does not have
            continue
        hints = _hints(type(config))
        for field, value in config.to_dict().items():
            if field not in _BOOKKEEPING:
                for other in _values(field, value, hints.get(field), config):
                    yield FieldChange(kind, setting, field, other)


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError):
        return {}


def _values(field: str, value: Any, hint: Any, config: PreTrainedConfig) -> Iterator[Any]:
    seen = [value]
    for other in _candidates(field, value, hint, config):
        if not any(type(other) is type(one) and other == one for one in seen):
            seen.append(other)
            yield other


def _candidates(field: str, value: Any, hint: Any, config: PreTrainedConfig) -> Iterator[Any]:
    if field == "rope_parameters":
        yield from _rope_values(value, config)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, 2 * value, value // 2, 1, 0)
    elif isinstance(value, float):
        yield from (2 * value, value / 2, 0.1, 1.0, 0.0)
    elif isinstance(value, str):
        yield from _ACTIVATIONS if "act" in field else _TEXTS
    elif isinstance(value, list):
        yield from _lists(value)
    if value is None or isinstance(value, list):
        yield from _of_type(hint)
    yield None


def _lists(value: list[Any]) -> Iterator[Any]:
    is_text = bool(value) and isinstance(value[0], str)
    kinds = sorted({*value, *({"sliding_attention", "full_attention"} if is_text else ())})
    yield value[::-1]
    for one in kinds:
        yield [one] * len(value)
    if value and not is_text:
        yield [1 - int(one) for one in value]
    elif len(kinds) > 1:
        yield [kinds[number % len(kinds)] for number in range(len(value))]
        yield [kinds[number % len(kinds) - 1] for number in range(len(value))]
    yield from ([0], [1])


def _of_type(hint: Any) -> Iterator[Any]:
    for own in typing.get_args(hint) or (hint,):
        if typing.get_origin(own) is Literal:
            yield from typing.get_args(own)
        yield from _BY_TYPE.get(own, ())


def _rope_values(value: Any, config: PreTrainedConfig) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    nested = {key: one for key, one in value.items() if isinstance(one, dict)}
    inner = next(iter(nested.values()), value)
    partial = {key: one for key, one in inner.items() if key == "partial_rotary_factor"}
    count = int(width * partial.get("partial_rotary_factor", 1.0)) // 2
    for scaling in _ROPES:
        one = {**partial, **scaling}
        if one["rope_type"] == "longrope":
            one |= {"short_factor": [1 + 0.1 * n for n in range(count)], "long_factor": [2.0 + n for n in range(count)]}
        if not nested:
            yield one
        for key in nested:
            yield {**nested, key: one}
    for factor in (0.25, 0.5, 1.0):
        if not nested:
            yield {**value, "partial_rotary_factor": factor}


def _config(kind: str, values: Mapping[str, Any]) -> PreTrainedConfig:
    extra = dict(gguf_models.KINDS[kind])
    name = extra.pop("model_type", kind)
    shape = {**gguf_models.SHAPE, **extra, **copy.deepcopy(dict(values))}
    if kind == "minicpm" and "attention_multiplier" not in values:  # follows from the other fields
        shape["attention_multiplier"] = (shape["hidden_size"] // shape["num_attention_heads"]) ** -0.5
    return AutoConfig.for_model(name, **shape)


def _network(config: PreTrainedConfig, like: torch.nn.Module | None) -> Any:
    """Return a random network; with the weights of another where they have the same shapes."""
    torch.manual_seed(1)
    network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    gguf_models.randomize(network)
    if like is not None and shapes(network) == shapes(like):
        network.load_state_dict(like.state_dict())
    return network


def shapes(network: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(values.shape) for name, values in network.state_dict().items()}


@torch.inference_mode()
def logits(network: Any) -> torch.Tensor:
    found: torch.Tensor = network(torch.tensor([PROMPT])).logits[0].float()
    return found


class UnchangedModels:
    """The unchanged models of a kind, one for each setting."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self._path = kind, folder / "changed.gguf"
        self._bases: dict[str, Any] = {}

    def base(self, setting: str) -> tuple[Any, torch.Tensor]:
        if setting not in self._bases:
            network = _network(_config(self.kind, settings_of(self.kind)[setting]), None)
            self._bases[setting] = network, logits(network)
        found: tuple[Any, torch.Tensor] = self._bases[setting]
        return found

    def network(self, change: FieldChange) -> Any | None:
        """Return the changed network; None if transformers cannot build or run it, or if the change changes nothing."""
        base, expected = self.base(change.setting)
        try:
            values = {**settings_of(self.kind)[change.setting], change.field: change.value}
            network = _network(_config(self.kind, values), base)
            if shapes(network) != shapes(base):
                logits(network)
                return network
            found = logits(network)
        except Exception:  # no model of the family has this value
            return None
        if not bool(found.isfinite().all()):
            return None
        return network if found.shape != expected.shape or _distance(found, expected) > 1e-6 else None

    def _changed_fields(self, change: FieldChange, network: Any) -> set[str]:
        """Return the field of a change, and those whose values follow from it."""
        before, after = self.base(change.setting)[0].config.to_dict(), network.config.to_dict()
        return {change.field, *(field for field, value in after.items() if before.get(field) != value)}

    def outcome(self, change: FieldChange, network: Any) -> ExportOutcome:
        """Return what the export of a changed network makes of it."""
        model = core.wrap(network, None, "tiny")
        try:
            gguf_models.save(self.kind, model, self._path, "F32")
        except UnpackableError as error:
            is_named = any(field in str(error) for field in self._changed_fields(change, network))
            return ExportOutcome("refused" if is_named else "refused without the name", str(error))
        except Exception as error:
            return ExportOutcome("failed to write", f"{type(error).__name__}: {error}")
        try:
            read = core.load(self._path, device="cpu")
            found, expected = logits(read.model), logits(network)
        except DecodescopeError as error:
            return ExportOutcome("cannot be read", str(error))
        except Exception as error:
            return ExportOutcome("cannot be read", f"{type(error).__name__}: {error}")
        distance = float("inf") if found.shape != expected.shape else _distance(found, expected)
        return ExportOutcome("right") if distance < 1e-4 else ExportOutcome("another model", f"{distance:.1e}")


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-9))
