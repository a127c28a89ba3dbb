"""Titles of a run's strategy, cache and settings, as shown in the window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

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
    return _title(name, started.strategy, started.cache) or name


def title_and_name(name: str, strategy: str) -> str:
    """Return the title of a setting in the parameter panel, and its name in code, which callers of the library use."""
    title = _title(name, strategy)
    return tr("{title} ({name})").format(title=title, name=name) if title else name


def _title(name: str, strategy: str, cache: str = "") -> str:
    parameters = chain.from_iterable(_parameters(strategy, cache))
    return next((tr(parameter.title) for parameter in parameters if parameter.name == name), "")


def _parameters(strategy_name: str, cache_name: str) -> list[Sequence[Parameter]]:
    """Return the parameters of the run's own strategy and cache first, then all others."""
    strategy, cache = strategies.registry.get(strategy_name), caches.registry.get(cache_name)
    own = [*([strategy.parameters] if strategy else []), *([cache.parameters] if cache else [])]
    others = (registry.values() for registry in (strategies.registry, caches.registry))
    return [*own, *(entry.parameters for entries in others for entry in entries)]
