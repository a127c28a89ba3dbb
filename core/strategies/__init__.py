"""All ways to decode; `registry` finds them, one a file. Importing this package does not import torch."""

from core.checks.name_suggestions import did_you_mean
from core.errors import StrategyError
from core.parameter import Parameter, quote_text
from core.registry import Registry
from core.strategies.base import Flags, Strategy, flags_of
from resources.language import tr

registry: Registry[Strategy] = Registry(__name__, "STRATEGY")


def selected_by(flags: Flags) -> Strategy:
    """The strategy that these flags mean, by transformers' rule."""
    return next(strategy for strategy in registry.values() if strategy.selects(flags))


def named(name: str) -> Strategy:
    """The strategy of that name. Raises StrategyError where there is none."""
    try:
        return registry[name]
    except KeyError:
        raise StrategyError(
            tr("There is no strategy {name}.").format(name=quote_text(name)) + did_you_mean(name, registry),
            tr("Choose one of: {names}.").format(names=", ".join(registry)),
        ) from None


def of_dice() -> tuple[Parameter, ...]:
    """The settings that have an effect only where tokens are drawn."""
    from core.strategies.parameters import SAMPLING, SAMPLING_ADVANCED

    return (*SAMPLING, *SAMPLING_ADVANCED)


def drawing() -> frozenset[str]:
    """Their names."""
    return frozenset(parameter.name for parameter in of_dice())


def of_stages() -> frozenset[str]:
    """Names of the settings that decide what a step's funnel does, the order of its stages among them."""
    from core.strategies.parameters import STAGE_SETTINGS

    return STAGE_SETTINGS


def movable() -> tuple[str, ...]:
    """The stages that can change places, in the order that they have by default."""
    from core.processors import registry

    return tuple(stage.name for stage in registry.values() if not stage.end)


__all__ = [
    "Flags", "Parameter", "Strategy", "drawing", "flags_of", "movable", "named", "of_dice", "of_stages", "registry",
    "selected_by",
]  # fmt: skip
