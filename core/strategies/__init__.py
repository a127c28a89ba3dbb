"""All decoding strategies; `registry` finds them, one per file. Importing this package does not import torch."""

from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.errors import StrategyError
from decodescope.core.parameter import (
    DRAFTS,
    FILTERS,
    LENGTH,
    OTHER,
    RANDOMNESS,
    REPETITION,
    STOPPING,
    THINKING,
    WATERMARK,
    WORDS,
    Parameter,
    Settings,
    quote_text,
)
from decodescope.core.registry import Registry
from decodescope.core.strategies.base import GROUPS, Flags, Strategy, flags_of
from decodescope.resources.language import join_names, tr

registry: Registry[Strategy] = Registry(__name__, "STRATEGY")


def selected_by(flags: Flags) -> Strategy:
    """Return the strategy that these flags select, by transformers' rule."""
    return next(strategy for strategy in registry.values() if strategy.selects(flags))


def select(name: str | None, settings: Settings, drafters: bool = False) -> Strategy:
    """Return the named strategy, or without a name the one that the flags in `settings` select. Raises StrategyError,
    ParameterError.
    """
    return named(name) if name else selected_by(flags_of(settings, drafters))


def is_plain(name: str) -> bool:
    """Return whether a strategy takes the best token of each step or draws one, and nothing else."""
    return name in (select(None, {}).name, select(None, {"do_sample": True}).name)


def named(name: str) -> Strategy:
    """Return the strategy with this name. Raises StrategyError if it is unknown."""
    try:
        return registry[name]
    except KeyError:
        raise StrategyError(
            tr("There is no strategy called {name}.").format(name=quote_text(name)) + did_you_mean(name, registry),
            tr("Choose one of: {names}.").format(names=join_names(registry)),
        ) from None


_PANEL_GROUPS = {
    "sampling": FILTERS, "sampling_advanced": FILTERS, "penalties": REPETITION, "length": LENGTH, "more": OTHER,
}  # fmt: skip


def setting_group(strategy: Strategy, parameter: Parameter) -> str:
    """Return the title of the setting's group in English: its own, else that of its processor's panel, else that of
    the strategy.
    """
    if parameter.group:
        return parameter.group
    from decodescope.core.processors import registry
    from decodescope.core.processors.pipeline_stages import processor_settings

    stages = (stage for stage in registry.values() if parameter.name in {one.name for one in processor_settings(stage)})
    stage = next(stages, None)
    if stage is not None:
        return _PANEL_GROUPS.get(stage.panel, OTHER)
    return DRAFTS if strategy.speculates else strategy.title


def grouped_settings(strategy: Strategy) -> dict[str, list[Parameter]]:
    """Return the strategy's settings by the English titles of their groups, in the order of a settings panel.

    Length comes first, then what belongs to this strategy alone.
    """
    groups: dict[str, list[Parameter]] = {}
    for parameter in strategy.parameters:
        groups.setdefault(setting_group(strategy, parameter), []).append(parameter)
    shared = (RANDOMNESS, FILTERS, REPETITION, WORDS, THINKING, STOPPING, WATERMARK, OTHER)
    own = [title for title in groups if title != LENGTH and title not in shared]
    return {title: groups[title] for title in (LENGTH, *own, *shared) if title in groups}


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
    "GROUPS", "Flags", "Parameter", "Strategy", "drawing", "flags_of", "grouped_settings", "movable", "named",
    "of_dice", "of_stages", "own_settings", "registry", "select", "selected_by", "setting_group",
]  # fmt: skip
