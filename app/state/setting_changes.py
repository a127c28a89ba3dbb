"""Settings that have changed since a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from decodescope.app.state import setting_values
from decodescope.app.state.worker_messages import RunRequest, memory_text
from decodescope.core import adapters, caches, strategies
from decodescope.core.caches import CacheBackend
from decodescope.core.strategies import Parameter, Strategy
from decodescope.resources.language import join_names, tr

SettingChange = tuple[str, str]
"""Setting and change: `("Temperature", "0.8 → 1.9")`."""


def list_changes(previous: RunRequest, now: RunRequest) -> list[SettingChange]:
    """Return the changes in window order, toolbar first. The prompt is left out, since the views show that of the
    run.
    """
    strategy, cache = strategies.registry[now.strategy], caches.registry[now.cache]
    found = [
        (tr("Model"), previous.model, now.model),
        (tr("Strategy"), _title(strategies.registry, previous.strategy), tr(strategy.title)),
        (tr("Adapters"), _adapters(previous), _adapters(now)),
        (tr("Drafts"), _names(previous.draft_names), _names(now.draft_names)),
        (tr("Cache"), _title(caches.registry, previous.cache), tr(cache.title)),
        (tr("Seed"), _seed(previous), _seed(now)),
        (tr("Device"), previous.load.device, now.load.device),
        (tr("Data type"), previous.load.dtype, now.load.dtype),
        (tr("Weights"), previous.load.weights, now.load.weights),
        (tr("Memory for the weights"), memory_text(previous.load.memory), memory_text(now.load.memory)),
    ]
    if previous.strategy == now.strategy:
        found += _differing(strategy.parameters, previous.settings, now.settings)
    if previous.cache == now.cache:
        found += _differing(cache.parameters, previous.cache_options, now.cache_options)
    return [(title, f"{before} → {after}") for title, before, after in found if before != after]


def _title(registry: Mapping[str, Strategy | CacheBackend], name: str) -> str:
    """Return the title of an entry, or its name if it is unknown to this program, as in some recorded runs."""
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


def _seed(request: RunRequest) -> str:
    return tr("as captured") if request.generator_state else str(request.seed)


def _names(names: Iterable[str]) -> str:
    return join_names(names) or tr("none")


def _adapters(request: RunRequest) -> str:
    chosen = adapters.check_adapters(request.adapters or ())
    return join_names(f"{one.name} × {one.strength:g}" for one in chosen) or tr("none")


STAGES = "stages"
"""Name of the setting with the order of the stages."""


def changed_settings(strategy: Strategy, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of `after` that change the step compared with `before`; None unsets a setting. A missing
    setting has its default value.
    """
    acting = strategies.of_stages() | {*strategy.replayable_settings}
    return {
        parameter.name: after.get(parameter.name)
        for parameter in strategy.parameters
        if parameter.name in acting and _value(parameter, before) != _value(parameter, after)
    }


def _value(parameter: Parameter, settings: Mapping[str, Any]) -> object:
    value = settings.get(parameter.name)
    value = parameter.default if value is None else value
    return list(value) if isinstance(value, tuple) else value


def changes_text(request: RunRequest, changes: Mapping[str, Any]) -> str:
    """Return the changes of a run's settings as text: `Temperature 0.8 → 1.9 · Top-p 1 → 0.9`."""
    parameters = [p for p in strategies.registry[request.strategy].parameters if p.name in changes]
    return " · ".join(_change(each, request.settings, changes) for each in parameters)


def _change(parameter: Parameter, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    title = tr(parameter.title)
    if parameter.name == STAGES:
        names = " → ".join(_titles(after.get(STAGES) or ()))
        return tr("order {stages}").format(stages=names) if names else tr("the default order")
    one, other = (setting_values.short_text(_value(parameter, settings)) for settings in (before, after))
    return tr("{title} {before} → {after}").format(title=title, before=one, after=other)


def _titles(stages: Sequence[str]) -> list[str]:
    """Return the titles of the stages."""
    titles = {p.name: tr(p.title) for strategy in strategies.registry.values() for p in strategy.parameters}
    return [titles.get(name, name) for name in stages]


def original_settings(request: RunRequest, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run that undo the changes."""
    strategy = strategies.registry[request.strategy]
    return {name: _value(strategy.parameter(name), request.settings) for name in changes}


def order_setting(stages: Sequence[str]) -> list[str] | None:
    """Return the setting for this order of the stages; None for the default order."""
    usual = [name for name in strategies.movable() if name in stages]
    return None if list(stages) == usual else list(stages)


def move_stage(stages: Sequence[str], stage: str, index: int) -> list[str]:
    """Return the stages with one of them moved to another index."""
    rest = [name for name in stages if name != stage]
    return [*rest[:index], stage, *rest[index:]]
