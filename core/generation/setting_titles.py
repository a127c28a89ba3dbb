"""Titles of strategies, caches and settings, as the window shows them, for what a run was made with."""

from __future__ import annotations

from collections.abc import Sequence

from core import caches, strategies
from core.events import RunStarted
from core.strategies import Parameter
from resources.language import tr

SCORED = "score"
"""The name of a run that only scores a text: nothing is drawn in it, and no cache grows."""


def strategy_title(started: RunStarted) -> str:
    """The title of a run's strategy; its name where this version has no such strategy."""
    known = strategies.registry.get(started.strategy)
    if known is None and started.strategy == SCORED:
        return tr("Scored text")
    return tr(known.title) if known else started.strategy


def cache_title(started: RunStarted) -> str:
    """The title of a run's cache; its name where this version has no such cache."""
    known = caches.registry.get(started.cache)
    return tr(known.title) if known else started.cache


def setting_title(started: RunStarted, name: str) -> str:
    """The title of a setting, as in the parameter panel; its name where no strategy or cache has such a setting."""
    for parameters in _parameters(started):
        for parameter in parameters:
            if parameter.name == name:
                return tr(parameter.title)
    return name


def _parameters(started: RunStarted) -> list[Sequence[Parameter]]:
    """Those of the run's own strategy and cache first."""
    strategy, cache = strategies.registry.get(started.strategy), caches.registry.get(started.cache)
    own = [*([strategy.parameters] if strategy else []), *([cache.parameters] if cache else [])]
    others = (registry.values() for registry in (strategies.registry, caches.registry))
    return [*own, *(entry.parameters for entries in others for entry in entries)]
