"""Add the entries of loaded plug-ins to the registries, or remove them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from decodescope.core import caches, measures, processors, strategies
from decodescope.core.parameter import short_repr
from decodescope.core.plugins.generate_folder import find_generate_folder, folder_of
from decodescope.core.plugins.logits_processor import is_logits_processor
from decodescope.core.plugins.plugin import Plugin, PluginEntry
from decodescope.core.plugins.plugin_loading import check_entry, entry_classes, load_file, load_folder
from decodescope.core.processors.base import Processor
from decodescope.core.processors.pipeline_stages import OPTION, processor_settings
from decodescope.core.registry import Registry, RegistryEntry
from decodescope.core.request import Request
from decodescope.core.strategies.base import Strategy
from decodescope.core.system.plugin_code import PluginLocation, make_plugin_error, register_source
from decodescope.resources.language import tr

_SAMPLING_FLAG = "do_sample"
_installed: tuple[Plugin, ...] = ()


def installed() -> tuple[Plugin, ...]:
    """Return the plug-ins whose entries are in the registries, in order."""
    return _installed


def install(plugins: Iterable[Plugin]) -> list[Plugin]:
    """Replace the plug-ins of all registries by the entries of those that are on.

    Returns the plug-ins; one whose names belong to something else is `failed` and adds nothing. A run in progress keeps
    what it started with.
    """
    global _installed
    plugins, found = list(plugins), list[Plugin]()
    if not _installed and all(plugin.state != "on" for plugin in plugins):
        return plugins  # the registries are as they were; nothing is imported
    taken = _own_names()
    for plugin in plugins:
        if plugin.state == "on" and (name := next((n for n in _names_of(plugin.entries) if n in taken), "")):
            location = PluginLocation(plugin.title, str(plugin.path or plugin.source), 0)
            problem = tr("the name {name} is already in use").format(name=name)
            plugin = replace(plugin, state="failed", entries=(), error=make_plugin_error(location, problem))
        taken.update(_names_of(plugin.entries))
        found.append(plugin)
    entries = [entry for plugin in found if plugin.state == "on" for entry in plugin.entries]
    added = [entry.value for entry in entries if isinstance(entry.value, Processor)]
    for kind, registry in _registries().items():
        if kind != "strategy":
            registry.set_plugin_entries(entry.value for entry in entries if entry.kind == kind)
    own = [entry.value for entry in entries if isinstance(entry.value, Strategy)]
    strategies.registry.set_plugin_entries(own, lambda strategy: _with_settings(strategy, added))
    _installed = tuple(plugin for plugin in found if plugin.state == "on")
    return found


def use(*sources: object) -> list[Plugin]:
    """Add plug-ins for this process: paths of files, LogitsProcessor classes, registry entries, or `custom_generate`
    folders by path or by the name of a repository that was downloaded. Their code runs with the program's rights.

    Calling it again with the same name replaces the plug-in. Raises PluginError for the first that cannot be used.
    """
    new = [_plugin_of(source) for source in sources]
    keys = {plugin.key for plugin in new}
    names = {name for plugin in new for name in _names_of(plugin.entries)}
    kept = [one for one in _installed if one.key not in keys and not names & set(_names_of(one.entries))]
    before = _installed
    found = install([*kept, *new])
    if error := next((one.error for one in found if one.key in keys and one.error is not None), None):
        install(before)
        raise error
    return [one for one in found if one.key in keys]


def _plugin_of(source: object) -> Plugin:
    if isinstance(source, str | Path):
        is_file = Path(source).suffix == ".py" and folder_of(Path(source)) is None
        plugin = load_file(Path(source).absolute()) if is_file else load_folder(find_generate_folder(source))
        if plugin.error is not None:
            raise plugin.error
        if plugin.notice:
            warnings.warn(f"{source}: {plugin.notice}", FutureWarning, stacklevel=4)
        return plugin
    name = getattr(source, "__name__", "") or getattr(source, "name", "")
    code = getattr(vars(source).get("__call__") if isinstance(source, type) else None, "__code__", None)
    location = PluginLocation(str(name or short_repr(source)), getattr(code, "co_filename", ""), 0)
    if location.path:
        register_source(location.path, location.title)
    kind = next(
        (entry_kind for entry_kind, cls in entry_classes().items() if isinstance(source, cls)),
        "processor" if is_logits_processor(source) else None,
    )
    if kind is None:
        raise make_plugin_error(location, tr("it is neither a path nor an entry of a registry"))
    entry = check_entry(kind, source, location)
    return Plugin(f"<{entry.name}>", str(name), "on", entries=(entry,))


def used_plugins(request: Request, changes: Iterable[str] = ()) -> list[Plugin]:
    """Return the plug-ins whose code a run of `request` may run; `changes` are names of further settings."""
    if not _installed:
        return []
    values = (request.strategy, request.cache, *request.options, *request.cache_options.values(), *changes)
    named = {name for name in values if isinstance(name, str)}  # the run itself refuses other types
    named.update(str(request.options.get("extra_drafters", "")).replace(",", " ").split())
    return [one for one in _installed if any(entry.name in named for entry in one.entries if entry.kind != "measure")]


def _registries() -> dict[str, Registry[RegistryEntry]]:
    from decodescope.core.decoding.speculation import drafters  # imports torch

    found = {
        "processor": processors.registry, "strategy": strategies.registry, "cache": caches.registry,
        "drafter": drafters.registry, "measure": measures.registry,
    }  # fmt: skip
    return cast("dict[str, Registry[RegistryEntry]]", found)


def _names_of(entries: Sequence[PluginEntry]) -> list[str]:
    """Return what must be unique: names by kind, and the settings that processors add to every strategy."""
    names = []
    for entry in entries:
        names.append(f"{entry.kind}: {entry.name}")
        if isinstance(entry.value, Processor):
            names += [parameter.name for parameter in processor_settings(entry.value)]
    return names


def _own_names() -> set[str]:
    """Return the names in the registries that do not come from plug-ins."""
    own = {
        f"{kind}: {name}"
        for kind, registry in _registries().items()
        for entry in registry.values()
        if entry.name not in registry.plugin_names
        for name in (entry.name, *entry.aliases)
    }
    added = {name for plugin in _installed for name in _names_of(plugin.entries)}
    settings = {
        parameter.name for name, one in strategies.registry.items() for parameter in one.parameters
        if name not in strategies.registry.plugin_names
    }  # fmt: skip
    return own | (settings - added)


def _with_settings(strategy: Strategy, added: Sequence[Processor]) -> Strategy:
    """Return a strategy with the settings of plug-in processors; those that only act while sampling belong to
    strategies that can sample.
    """
    names = strategy.parameter_names
    if not added or OPTION not in names:
        return strategy
    new = [
        parameter
        for processor in added
        if not processor.samples or _SAMPLING_FLAG in names or strategy.flags.get(_SAMPLING_FLAG)
        for parameter in processor_settings(processor)
    ]
    order = tuple(name for name in processors.registry)
    own = [replace(one, choices=order) if one.name == OPTION else one for one in strategy.parameters]
    return replace(strategy, parameters=(*own, *(one for one in new if one.name not in names)))
