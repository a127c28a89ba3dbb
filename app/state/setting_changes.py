"""What is set otherwise now than it was for a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.state import setting_values
from app.state.weights_memory import memory_text
from app.state.worker_messages import RunRequest
from core import caches, strategies
from core.caches import CacheBackend
from core.strategies import Parameter, Strategy
from resources.language import tr

SettingChange = tuple[str, str]
"""What was changed, and how: `("Temperature", "0.8 → 1.9")`."""


def list_changes(ran: RunRequest, now: RunRequest) -> list[SettingChange]:
    """In the order of the window, toolbar first. The prompt is none of it: the views show that of the run."""
    strategy, cache = strategies.registry[now.strategy], caches.registry[now.cache]
    found = [
        (tr("Model"), ran.model, now.model),
        (tr("Strategy"), _title(strategies.registry, ran.strategy), tr(strategy.title)),
        (tr("Drafts"), _names(ran.draft_names), _names(now.draft_names)),
        (tr("Cache"), _title(caches.registry, ran.cache), tr(cache.title)),
        (tr("Seed"), str(ran.seed), str(now.seed)),
        (tr("Device"), ran.load.device, now.load.device),
        (tr("Number type"), ran.load.dtype, now.load.dtype),
        (tr("Weights"), ran.load.weights, now.load.weights),
        (tr("Memory for the weights"), memory_text(ran.load.memory), memory_text(now.load.memory)),
    ]
    if ran.strategy == now.strategy:
        found += _differing(strategy.parameters, ran.settings, now.settings)
    if ran.cache == now.cache:
        found += _differing(cache.parameters, ran.cache_options, now.cache_options)
    return [(title, f"{before} → {after}") for title, before, after in found if before != after]


def _title(registry: Mapping[str, Strategy | CacheBackend], name: str) -> str:
    """What an entry is called; its name where this program has no such entry, as a recorded run's may be."""
    return tr(registry[name].title) if name in registry else name


def _differing(
    parameters: Iterable[Parameter], before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    names = ((tr(p.title), before.get(p.name), after.get(p.name)) for p in parameters)
    return [
        (title, setting_values.short_text(one), setting_values.short_text(other))
        for title, one, other in names
        if one != other
    ]


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or tr("none")
