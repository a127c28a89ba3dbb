"""The entries of the command palette, a function for each kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QComboBox, QPushButton, QToolButton, QWidget
from shiboken6 import isValid

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, unavailable_reason
from decodescope.app.panels.commands import COMMANDS, MAX_VIEW_KEYS, Command
from decodescope.app.panels.parameter_row import ParameterRow
from decodescope.app.theme.palettes import SCHEMES
from decodescope.app.views import VIEWS
from decodescope.app.views.base import View
from decodescope.app.widgets.picker_combo import PickerCombo
from decodescope.app.widgets.plain_text import from_plain_text
from decodescope.core import caches, strategies
from decodescope.core.caches import CacheBackend
from decodescope.core.strategies import Strategy
from decodescope.resources.language import mark, tr

EXCLUDED = ("open_palette", "open_menu")
"""The command that opens the palette, and a menu whose items are listed as entries themselves."""
_TITLE_PENALTY = 120.0
"""Penalty: examples have long titles, so a command with a matching synonym comes first."""
MAX_RUNS = 24
"""Maximum number of runs; the history panel finds the others."""
SIZES = (0.8, 1.0, 1.25, 1.5, 1.75, 2.0)
_THEMES = {
    "system": mark("System theme"),
    "light": mark("Light theme"),
    "dark": mark("Dark theme"),
}
_TERM_PENALTY = 250.0
"""Penalty: commands and settings come before glossary terms of the same name."""


def _action_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every action that is not excluded."""
    for command in COMMANDS:
        if command.name not in EXCLUDED:
            yield _action_entry(command, context)


def _action_entry(command: Command, context: PaletteContext) -> PaletteEntry:
    key = command.keys[0] if command.keys else command.shown_key
    return PaletteEntry(
        f"action.{command.name}",
        tr(command.title),
        tr("Action"),
        context.actions[command.name],
        aliases=(command.title, command.short_title, tr(command.short_title), command.name.replace("_", " ")),
        shortcut=key.replace("Return", "Enter"),
        about=tr(command.about),
        reason=unavailable_reason(command.name, context),
    )


def _setting_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield the current parameters, the seed, and parameters of other strategies."""
    own: set[str] = set()
    for panel in (context.panel.parameters, context.panel.cache_parameters):
        for name, row in panel.rows.items():
            own.add(name)
            yield _setting_entry(context, row)
    yield _seed_entry(context)
    yield from _other_parameters(context, own)


def _setting_entry(context: PaletteContext, row: ParameterRow) -> PaletteEntry:
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


def _seed_entry(context: PaletteContext) -> PaletteEntry:
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


def _view_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield all views, including those without a tab."""
    offered = context.centre.columns[0].available_names
    for number, view in enumerate(VIEWS):
        yield PaletteEntry(
            f"view.{view.name}",
            tr(view.title),
            tr("View"),
            partial(_show_view, context, view.name),
            aliases=(view.title, view.name),
            shortcut=f"Ctrl+{number + 1}" if number < MAX_VIEW_KEYS else "",
            reason="" if view.name in offered else tr("Available once a run has a branch."),
        )


def _show_view(context: PaletteContext, name: str) -> None:
    context.centre.show_view(name)
    context.centre.columns[0].current_view.setFocus(Qt.FocusReason.ShortcutFocusReason)


def _menu_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every item of the context menu of the front view."""
    view = context.centre.columns[0].current_view
    menu = view.selected_node_menu()
    if menu is None:
        return
    for action in menu.actions():
        title = from_plain_text(action.text().partition("\t")[0].replace("&&", "&"))
        if title and not action.isSeparator():
            reason = "" if action.isEnabled() else tr("Not available now.")
            yield PaletteEntry(
                f"picked.{title}", title, tr("Selected"), partial(_trigger_item, view, action.text()), reason=reason
            )
    menu.deleteLater()


def _trigger_item(view: View, text: str) -> None:
    """Trigger the menu item with the text `text`."""
    menu = view.selected_node_menu()
    if menu is not None:
        for action in menu.actions():
            if action.text() == text:
                action.trigger()
        menu.deleteLater()


def _picker_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every line of every picker, including unavailable ones."""
    toolbar, chosen = context.toolbar, context.chosen
    yield from _picker_lines(
        "strategy", tr("Strategy"), toolbar.strategy, strategies.registry, _choose_in(toolbar.strategy)
    )
    yield from _picker_lines("cache", tr("Cache"), toolbar.cache, caches.registry, _choose_in(toolbar.cache))
    yield from _picker_lines("model", tr("Model"), toolbar.model, {}, _choose_in(toolbar.model))
    if chosen.strategy.strategy.takes_drafters:
        yield from _picker_lines(
            "draft", tr("Draft model"), toolbar.draft, {}, lambda name: chosen.drafts.choose((name,))
        )


def _choose_in(picker: PickerCombo) -> Callable[[str], object]:
    return picker.select_data


def _picker_lines(
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


def _example_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield the examples, then the presets, bundled and saved."""
    for example in context.panel.prompt.examples:
        yield PaletteEntry(
            f"example.{example.id}",
            tr(example.title),
            tr("Example"),
            partial(context.panel.prompt.exampleChosen.emit, example),
            aliases=(example.title,),
            about=tr(example.about),
            penalty=_TITLE_PENALTY,
        )
    for name, path in context.presets.preset_files().items():
        yield PaletteEntry(f"preset.{name}", name, tr("Preset"), partial(context.presets.use_preset, path))


def _run_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield saved runs, pinned ones first."""
    from decodescope.app.features.history.panel import history_wording
    from decodescope.app.features.history.store.history_record import HistoryRecord

    nothing: list[HistoryRecord] = []
    shown = context.session.run.id if context.session.run is not None else ""
    busy = tr("A run is in progress.") if context.session.busy else ""
    for record in context.history.query(lambda store: store.records(store.ids(max_count=MAX_RUNS)), nothing):
        yield PaletteEntry(
            f"run.{record.id}",
            record.name,
            tr("Run"),
            partial(context.history.show, record.id),
            about=f"{history_wording.time_text(record.made, time.time())} · {history_wording.summary_text(record)}",
            reason=tr("This run is already shown.") if record.id == shown else busy,
        )


def _appearance_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every theme and the common text sizes."""
    for name in SCHEMES:
        reason = tr("This theme is already active.") if name == context.appearance.theme else ""
        yield PaletteEntry(
            f"theme.{name}", tr(_THEMES[name]), tr("Theme"), partial(context.appearance_control.set_theme, name),
            aliases=(_THEMES[name], f"{name} theme"), reason=reason,
        )  # fmt: skip
    for scale in SIZES:
        reason = tr("The text already has this size.") if scale == context.appearance.font_scale else ""
        yield PaletteEntry(
            f"size.{scale}",
            tr("Text size {percent} %").format(percent=round(100 * scale)),
            tr("Text size"),
            partial(context.appearance_control.set_font_scale, scale),
            aliases=(f"text size font zoom {round(100 * scale)}%",),
            reason=reason,
        )


def _tour_and_term_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every tour, then every term."""
    from decodescope.app.features.tours.state.tour_file import load_tours
    from decodescope.core import glossary

    busy = tr("A run is in progress.") if context.session.busy else ""
    for tour in load_tours()[0]:
        yield PaletteEntry(
            f"tour.{tour.name}", tr(tour.title), tr("Tour"), partial(context.start_tour, tour.name),
            aliases=(tour.title, f"tour {tour.name}"), penalty=_TITLE_PENALTY, reason=busy,
        )  # fmt: skip
    for term in glossary.terms().values():
        yield PaletteEntry(
            f"term.{term.id}", term.title, tr("Term"), partial(context.open_term, term.id), (term.term, *term.also),
            about=term.sentence, penalty=_TERM_PENALTY,
        )  # fmt: skip


def _button_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield visible buttons and drop-down lists, each name once, except those with an entry elsewhere."""
    listed = set(context.panel.prompt.chips)
    seen: set[str] = set()
    for widget in context.window.findChildren(QWidget):
        if widget.window() is not context.window:
            continue
        name = widget.accessibleName() or (
            widget.text().replace("&", "") if isinstance(widget, QAbstractButton) else ""
        )
        if not name or name in seen or widget in listed or not _is_pressable(widget):
            continue
        seen.add(name)
        yield PaletteEntry(
            f"control.{widget.objectName() or name}", name, tr("Button"), partial(_press, widget),
            about=widget.accessibleDescription() or widget.toolTip(),
            reason="" if widget.isEnabled() else widget.toolTip() or tr("Not available now."),
        )  # fmt: skip


def _is_pressable(widget: QWidget) -> bool:
    """Return whether a widget is visible and can be pressed."""
    if not isinstance(widget, QAbstractButton | QComboBox) or isinstance(widget, PickerCombo):
        return False
    return widget.isVisible() and not any(isinstance(above, ParameterRow) for above in _ancestors(widget))


def _ancestors(widget: QWidget) -> Iterator[QWidget]:
    above = widget.parentWidget()
    while above is not None:
        yield above
        above = above.parentWidget()


def _press(widget: QWidget) -> None:
    """Press a widget as a click would, if it still exists."""
    if not isValid(widget):
        return
    widget.setFocus(Qt.FocusReason.ShortcutFocusReason)
    if isinstance(widget, QComboBox):
        widget.showPopup()
    elif isinstance(widget, QToolButton | QPushButton) and widget.menu() is not None:
        widget.menu().popup(widget.mapToGlobal(widget.rect().bottomLeft()))  # the menu must not block
    elif isinstance(widget, QAbstractButton):
        widget.click()


_SOURCES: tuple[Callable[[PaletteContext], Iterator[PaletteEntry]], ...] = (
    _action_entries,
    _setting_entries,
    _view_entries,
    _menu_entries,
    _picker_entries,
    _example_entries,
    _run_entries,
    _appearance_entries,
    _tour_and_term_entries,
    _button_entries,
)
"""On equal scores, the entries of an earlier function come first."""


def all_entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield the current entries of all kinds."""
    for source in _SOURCES:
        yield from source(context)
