"""All decoding strategies; `registry` finds them, one per file. Importing this package does not import torch."""

from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.errors import StrategyError
from decodescope.core.parameter import Parameter, Settings, quote_text
from decodescope.core.registry import Registry
from decodescope.core.strategies.base import GROUPS, Flags, Strategy, flags_of
from decodescope.resources.language import tr

registry: Registry[Strategy] = Registry(__name__, "STRATEGY")


def selected_by(flags: Flags) -> Strategy:
    """Return the strategy that these flags select, by transformers' rule."""
    return next(strategy for strategy in registry.values() if strategy.selects(flags))


def select(name: str | None, settings: Settings, drafters: bool = False) -> Strategy:
    """Return the named strategy, or without a name the one that the flags in `settings` select. Raises StrategyError,
    ParameterError.
    """
    return named(name) if name else selected_by(flags_of(settings, drafters))


def named(name: str) -> Strategy:
    """Return the strategy with this name. Raises StrategyError if it is unknown."""
    try:
        return registry[name]
    except KeyError:
        raise StrategyError(
            tr("There is no strategy called {name}.").format(name=quote_text(name)) + did_you_mean(name, registry),
            tr("Choose one of: {names}.").format(names=", ".join(registry)),
        ) from None


def of_dice() -> tuple[Parameter, ...]:
    """Return the settings that only take effect when tokens are sampled."""
    from decodescope.core.strategies.parameters import SAMPLING, SAMPLING_ADVANCED

    return (*SAMPLING, *SAMPLING_ADVANCED)


def drawing() -> frozenset[str]:
    """Return the names of those settings."""
    return frozenset(parameter.name for parameter in of_dice())


def of_stages() -> frozenset[str]:
    """Return the names of the settings that determine a step's pipeline, including the order of its stages."""
    from decodescope.core.processors import registry
    from decodescope.core.processors.pipeline_stages import processor_settings
    from decodescope.core.strategies.parameters import STAGE_SETTINGS

    added = registry.plugin_names
    return STAGE_SETTINGS | {one.name for name in added for one in processor_settings(registry[name])}


def own_settings(strategy: Strategy) -> tuple[Parameter, ...]:
    """Return the settings that the strategy's page of the guide explains: not those that many strategies share.

    Plain sampling explains the settings of the panel “sampling”.
    """
    from decodescope.core.processors import registry
    from decodescope.core.processors.pipeline_stages import processor_settings
    from decodescope.core.strategies.parameters import COMMON_SETTINGS

    panels = {one.name: stage.panel for stage in registry.values() for one in processor_settings(stage)}
    explained = {"sampling"} if strategy.selects(Flags(samples=True)) else set()
    return tuple(
        one
        for one in strategy.parameters
        if (panels[one.name] in explained if one.name in panels else one.name not in COMMON_SETTINGS)
    )


def movable() -> tuple[str, ...]:
    """Return the stages that can be reordered, in default order."""
    from decodescope.core.processors import registry

    return tuple(stage.name for stage in registry.values() if not stage.end)


__all__ = [
    "GROUPS", "Flags", "Parameter", "Strategy", "drawing", "flags_of", "movable", "named", "of_dice", "of_stages",
    "own_settings", "registry", "select", "selected_by",
]  # fmt: skip
