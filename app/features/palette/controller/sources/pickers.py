"""Strategies, caches, models and drafts of the toolbar's pickers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.app.widgets.picker_combo import PickerCombo
from decodescope.core import caches, strategies
from decodescope.core.caches import CacheBackend
from decodescope.core.strategies import Strategy
from decodescope.resources.language import tr


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every line of every picker, including unavailable ones."""
    toolbar, chosen = context.toolbar, context.chosen
    yield from _lines("strategy", tr("Strategy"), toolbar.strategy, strategies.registry, _choose_in(toolbar.strategy))
    yield from _lines("cache", tr("Cache"), toolbar.cache, caches.registry, _choose_in(toolbar.cache))
    yield from _lines("model", tr("Model"), toolbar.model, {}, _choose_in(toolbar.model))
    if chosen.strategy.strategy.takes_drafters:
        yield from _lines("draft", tr("Draft model"), toolbar.draft, {}, lambda name: chosen.drafts.choose((name,)))


def _choose_in(picker: PickerCombo) -> Callable[[str], object]:
    return picker.select_data


def _lines(
    kind: str,
    kind_title: str,
    picker: PickerCombo,
    registry: Mapping[str, Strategy | CacheBackend],
    choose: Callable[[str], object],
) -> Iterator[PaletteEntry]:
    for item in picker.items:
        if item.data is None:  # notes
            continue
        name = str(item.data)
        titles = (registry[name].title, *registry[name].aliases) if name in registry else ()
        is_chosen = picker.currentData() == name
        reason = item.reason or (tr("Already selected.") if is_chosen else "")
        yield PaletteEntry(
            f"{kind}.{name}", item.title, kind_title, partial(choose, name), (*titles, name.replace("_", " ")),
            about=item.subtitle, reason=reason,
        )  # fmt: skip


SOURCE = PaletteSource(40, entries)
