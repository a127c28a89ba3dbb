"""Parameters: focus the editor of a parameter of the current strategy or cache and unfold it if needed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.app.panels.parameter_row import ParameterRow
from decodescope.core import caches, strategies
from decodescope.core.caches import CacheBackend
from decodescope.core.strategies import Strategy
from decodescope.resources.language import tr


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield the current parameters, the seed, and parameters of other strategies."""
    own: set[str] = set()
    for panel in (context.panel.parameters, context.panel.cache_parameters):
        for name, row in panel.rows.items():
            own.add(name)
            yield _entry(context, row)
    yield _seed(context)
    yield from _other_parameters(context, own)


def _entry(context: PaletteContext, row: ParameterRow) -> PaletteEntry:
    parameter = row.parameter
    return PaletteEntry(
        f"setting.{parameter.name}",
        tr(parameter.title),
        tr("Setting"),
        partial(context.setup.focus_setting, parameter.name),
        aliases=(parameter.title, parameter.name.replace("_", " ")),
        about=tr(parameter.help),
        reason=row.unavailable,
    )


def _seed(context: PaletteContext) -> PaletteEntry:
    spin = context.toolbar.seed.spin
    return PaletteEntry(
        "setting.seed",
        tr("Seed"),
        tr("Setting"),
        partial(spin.setFocus, Qt.FocusReason.ShortcutFocusReason),
        aliases=("Seed",),
        about=tr("The same seed and settings give the same tokens"),
    )


def _other_parameters(context: PaletteContext, own: set[str]) -> Iterator[PaletteEntry]:
    """Yield the parameters of other strategies and caches, with the first owner in the reason."""
    strategy_title = tr(context.chosen.strategy.strategy.title)
    cache_title = tr(caches.registry[context.chosen.cache.name].title)
    owners: list[tuple[str, Strategy | CacheBackend]] = [
        *((strategy_title, strategy) for strategy in strategies.registry.values()),
        *((cache_title, cache) for cache in caches.registry.values()),
    ]
    seen = set(own)
    for title, owner in owners:
        for parameter in owner.parameters:
            if parameter.name not in seen:
                seen.add(parameter.name)
                reason = tr("{strategy} does not have this setting; {other} does.")
                yield PaletteEntry(
                    f"setting.{parameter.name}",
                    tr(parameter.title),
                    tr("Setting"),
                    _do_nothing,
                    aliases=(parameter.title, parameter.name.replace("_", " ")),
                    reason=reason.format(strategy=title, other=tr(owner.title)),
                )


def _do_nothing() -> None:
    """Do nothing: the entry is unavailable."""


SOURCE = PaletteSource(20, entries)
