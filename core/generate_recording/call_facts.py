"""Describe what a `generate` call used that a request cannot contain, and the state of the generator before it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from decodescope.core.common.generator_state import encode_state, state_hash
from decodescope.core.events import AdapterUsed
from decodescope.core.parameter import short_repr

if TYPE_CHECKING:
    from decodescope.core.events import CallFacts

_MAX_NAME = 200
"""Maximum length of a processor's name with its arguments."""
_LARGEST_SEED = 2**63 - 1


class GeneratorStart(NamedTuple):
    """The random generator before a call: a seed, or a state where the generator has been used since its seed."""

    seed: int = 0
    state: str = ""
    """The state in base64; empty if `seed` gives it."""
    is_known: bool = True

    @property
    def hash(self) -> str:
        """Hash of the state; empty for a seed."""
        return state_hash(self.state) if self.state else ""


def read_generator(device: torch.device) -> GeneratorStart:
    """Return the state of torch's own generator on a device, without changing it."""
    try:
        generator = torch.default_generator if device.type == "cpu" else _device_generator(device)
        seed, state = generator.initial_seed(), generator.get_state()
        fresh = torch.Generator(device).manual_seed(seed).get_state()
    except (RuntimeError, AttributeError, IndexError):  # a device without generators of its own
        return GeneratorStart(is_known=False)
    if torch.equal(state, fresh) and seed <= _LARGEST_SEED:
        return GeneratorStart(seed)
    return GeneratorStart(0, encode_state(state.numpy().tobytes()))


def _device_generator(device: torch.device) -> torch.Generator:
    module = torch.get_device_module(device)
    index: int | None = device.index
    index = module.current_device() if index is None else index
    generator: torch.Generator = module.default_generators[index]
    return generator


def describe_object(value: object) -> str:
    """Return the class of a processor or criterion with the arguments it was created with, as far as it keeps them
    under their names: `TopA(limit=0.2)`; the name of a function.
    """
    name = getattr(value, "__name__", "")
    if name:
        return str(name)[:_MAX_NAME]
    held = getattr(value, "__dict__", {})
    found = []
    for parameter in _parameters(type(value)):
        kept = next((key for key in (parameter, f"_{parameter}") if key in held), None)
        if kept is not None:
            found.append(f"{parameter}={_short(held[kept])}")
    whole = f"{type(value).__name__}({', '.join(found)})"
    return whole if len(whole) <= _MAX_NAME else f"{whole[: _MAX_NAME - 1]}…"


def _parameters(kind: type) -> list[str]:
    try:
        return [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs")]
    except (ValueError, TypeError):
        return []


def _short(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return short_repr(value.item()) if value.numel() == 1 else f"tensor{list(value.shape)}"
    if isinstance(value, torch.nn.Module) or hasattr(value, "encode"):
        return value if isinstance(value, str) else type(value).__name__
    try:
        return short_repr(value)
    except Exception:  # the caller's class
        return type(value).__name__


def listed(kind: str, values: Iterable[object]) -> CallFacts:
    """Return a fact for each processor or criterion."""
    return tuple((kind, describe_object(value)) for value in values)


def other_inputs(model_inputs: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of what a model reads besides token ids: `pixel_values`, `inputs_embeds`."""
    return tuple(
        name
        for name, value in model_inputs.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point() and "mask" not in name
    )


def peft_adapters(module: torch.nn.Module) -> tuple[AdapterUsed, ...]:
    """Return PEFT's adapters that are active in a model or merged into its weights."""
    if "peft" not in sys.modules:
        return ()
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [layer for layer in module.modules() if isinstance(layer, BaseTunerLayer)]
    found: dict[str, AdapterUsed] = {}
    for layer in layers:
        for name in _names_of(layer):
            if name not in found:
                found[name] = AdapterUsed(name, _strength(layer, name), _adapter_hash(layers, name))
    return tuple(found.values())


def _names_of(layer: Any) -> Iterator[str]:
    merged = list(getattr(layer, "merged_adapters", ()))
    active = [] if getattr(layer, "disable_adapters", False) else list(layer.active_adapters)
    held = {name for part in layer.adapter_layer_names for name in getattr(layer, part, {})}
    yield from (name for name in dict.fromkeys((*merged, *active)) if name in held)


def _strength(layer: Any, name: str) -> float:
    """Return the factor of an adapter's effect; 1 is the adapter as it was trained."""
    scaling, rank = getattr(layer, "scaling", {}).get(name), getattr(layer, "r", {}).get(name)
    alpha = getattr(layer, "lora_alpha", {}).get(name)
    if not (isinstance(scaling, int | float) and rank and alpha):
        return 1.0
    is_stabilized = bool(getattr(layer, "use_rslora", {}).get(name)) if hasattr(layer, "use_rslora") else False
    trained = alpha / (rank**0.5 if is_stabilized else rank)
    return float(scaling / trained)


def _adapter_hash(layers: Iterable[Any], name: str) -> str:
    from decodescope.core.models.weight_samples import hash_weights

    parts = torch.nn.ModuleList(
        part[name]
        for layer in layers
        for part in (getattr(layer, each, {}) for each in layer.adapter_layer_names)
        if isinstance(part, torch.nn.ModuleDict) and name in part
    )
    return hash_weights(parts)[:32]
