"""Titles of a run's strategy, cache and settings, as shown in the window."""

from __future__ import annotations

from collections.abc import Sequence

from decodescope.core import caches, strategies
from decodescope.core.events import RunStarted
from decodescope.core.strategies import Parameter
from decodescope.resources.language import tr

SCORED = "score"
"""Strategy name of a run that only scores a text, without sampling or a growing cache."""


def strategy_title(started: RunStarted) -> str:
    """Return the title of a run's strategy; its name if this version does not have it."""
    known = strategies.registry.get(started.strategy)
    if known is None and started.strategy == SCORED:
        return tr("Scored text")
    return tr(known.title) if known else started.strategy


def cache_title(started: RunStarted) -> str:
    """Return the title of a run's cache; its name if this version does not have it."""
    known = caches.registry.get(started.cache)
    return tr(known.title) if known else started.cache


def setting_title(started: RunStarted, name: str) -> str:
    """Return the title of a setting, as in the parameter panel; its name if no strategy or cache has it."""
    for parameters in _parameters(started):
        for parameter in parameters:
            if parameter.name == name:
                return tr(parameter.title)
    return name


def _parameters(started: RunStarted) -> list[Sequence[Parameter]]:
    """Return the parameters of the run's own strategy and cache first, then all others."""
    strategy, cache = strategies.registry.get(started.strategy), caches.registry.get(started.cache)
    own = [*([strategy.parameters] if strategy else []), *([cache.parameters] if cache else [])]
    others = (registry.values() for registry in (strategies.registry, caches.registry))
    return [*own, *(entry.parameters for entries in others for entry in entries)]
