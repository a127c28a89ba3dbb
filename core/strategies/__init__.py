"""All ways to decode; `registry` finds them, one a file. Importing this package does not import torch."""

from core.parameter import Parameter
from core.registry import Registry
from core.strategies.base import Strategy
from core.strategies.flags import Flags, flags_of

registry: Registry[Strategy] = Registry(__name__, "STRATEGY")


def selected_by(flags: Flags) -> Strategy:
    """The strategy that these flags mean, by transformers' rule."""
    return next(strategy for strategy in registry.values() if strategy.selects(flags))


def drawing() -> frozenset[str]:
    """Names of the settings that have an effect only where tokens are drawn."""
    from core.strategies.parameters import SAMPLING, SAMPLING_ADVANCED

    return frozenset(parameter.name for parameter in (*SAMPLING, *SAMPLING_ADVANCED))


__all__ = ["Flags", "Parameter", "Strategy", "drawing", "flags_of", "registry", "selected_by"]
