"""What modules call their key–value cache: transformers renamed it in 5.24; the old name is refused, or warned of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache

from torch import nn

NAMES = ("cache", "past_key_values", "cache_params")
"""Since 5.24; before it; before it, where there is a state alone."""


def cache_name(module: nn.Module) -> str:
    """The argument of its forward, and the field of what it gives back, that is the cache."""
    return _cache_parameter(type(module).forward)


@lru_cache(maxsize=256)
def _cache_parameter(forward: Callable[..., object]) -> str:
    parameters = inspect.signature(forward).parameters
    return next((name for name in NAMES if name in parameters), None) or _current_name()


def _current_name() -> str:
    """What this release of transformers calls it, for a wrapper whose forward passes on whatever it is given."""
    from transformers.modeling_outputs import CausalLMOutputWithPast

    return next(name for name in NAMES if name in CausalLMOutputWithPast.__dataclass_fields__)
