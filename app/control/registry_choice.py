"""Strategy and cache selection: a picker over a registry and the parameter panel of the selected entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

from PySide6.QtCore import QObject, QSignalBlocker, Signal, Slot

from decodescope.app.panels.parameter_panel import ParameterPanel
from decodescope.app.state import setting_values
from decodescope.app.state.suggestions import unknown_name_message
from decodescope.app.widgets.picker_combo import PickerCombo
from decodescope.app.widgets.picker_items import PickerItem
from decodescope.core import caches, strategies
from decodescope.core.caches import CacheBackend
from decodescope.core.strategies import GROUPS, Parameter, Strategy
from decodescope.resources.language import tr

StoredValues = dict[str, dict[str, Any]]
"""Parameter values by entry name."""


class RegistryChoiceSnapshot(NamedTuple):
    """The selected strategy or cache and its parameter values."""

    name: str
    changed: Mapping[str, Any]
    """Parameters of the selected entry that differ from their defaults."""
    shared: Mapping[Parameter, Any]
    """Changed parameters of every entry shown so far."""
    stored: Mapping[str, dict[str, Any]]
    """Values from the settings file for entries not shown yet."""


class RegistryChoice(QObject):
    """Selects an entry of a registry and its parameters. `chosen`: another entry; `changed`: another entry or value."""

    chosen = Signal()
    changed = Signal()
    registry: ClassVar[Mapping[str, Strategy | CacheBackend]]
    """The registry to choose from."""

    def __init__(self, picker: PickerCombo, panel: ParameterPanel, initial: str, stored: StoredValues) -> None:
        super().__init__(picker)
        self._picker, self._panel, self._stored = picker, panel, stored
        self._absent = initial if initial not in self.registry else ""
        """Name of the selected entry of a plug-in that is not loaded, selected again once it is."""
        self._absent_values: dict[str, Any] = {}
        """Values of parameters that a plug-in adds, while it is not loaded."""
        self._reasons: Mapping[str, str] = {}
        self.show_unsupported({})
        picker.select_data(initial)
        picker.currentIndexChanged.connect(self._on_chosen)
        panel.changed.connect(self.changed)
        self.show_parameters()

    @property
    def name(self) -> str:
        """Name of the selected entry."""
        return str(self._picker.currentData())

    @property
    def parameters(self) -> ParameterPanel:
        """The panel with its parameters."""
        return self._panel

    def choose(self, name: str, kind: str) -> list[str]:
        """Select an entry by name or alias; return a sentence if there is none."""
        if name not in self.registry:
            return [unknown_name_message(kind, name, self.registry)]
        self._picker.select_data(self.registry[name].name)
        return []

    def show_unsupported(self, reasons: Mapping[str, str]) -> None:
        """List every entry; disable those that the model does not support and show the reason."""
        self._reasons = reasons
        self._picker.set_items(self._item(name, entry) for name, entry in self._entries_in_order())

    def _entries_in_order(self) -> Iterable[tuple[str, Strategy | CacheBackend]]:
        """Return names and entries in the order of the picker."""
        return self.registry.items()

    def _item(self, name: str, entry: Strategy | CacheBackend) -> PickerItem:
        summary = tr(entry.summary)
        keywords = " ".join((entry.title, name.replace("_", " "), *entry.aliases))
        return PickerItem(
            tr(entry.title), name, summary, self._reasons.get(name, ""), entry.paper or summary, keywords=keywords
        )

    def show_parameters(self) -> None:
        """Show the parameters of the selected entry with their last values."""
        self._panel.show_parameters(self._parameters_of(self.name))
        if values := self._stored.pop(self.name, None):
            unknown = self._panel.set_values({**self._panel.changed_values(), **values})
            self._absent_values.update((name, values[name]) for name in unknown if name in values)

    def _parameters_of(self, name: str) -> Sequence[Parameter] | Mapping[str, Sequence[Parameter]]:
        """Return the parameters of an entry, by group if it has groups."""
        return self.registry[name].parameters

    def refresh_registry(self) -> None:
        """Show the entries and parameters that plug-ins have added or removed; keep selection and values.

        An entry that disappears, for example because its file has an error, is selected again when it comes back.
        """
        name, wanted = self.name, self._absent or self.name
        values = {**self._absent_values, **self._panel.changed_values()}
        selected = wanted if wanted in self.registry else name if name in self.registry else next(iter(self.registry))
        self._absent = wanted if wanted not in self.registry else ""
        with QSignalBlocker(self._picker):
            self.show_unsupported(self._reasons)
            self._picker.select_data(selected)
        self._panel.show_parameters(self._parameters_of(selected))
        stored = self._stored.pop(selected, {}) if selected != name else {}
        merged = {**values, **stored}
        if selected == name or stored:
            self._absent_values = {key: merged[key] for key in self._panel.set_values(merged)}
        if selected != name:
            self.chosen.emit()
        self.changed.emit()

    def snapshot(self) -> RegistryChoiceSnapshot:
        """Copy the selection and the parameter values."""
        panel = self._panel
        return RegistryChoiceSnapshot(self.name, panel.changed_values(), panel.shared_values(), deepcopy(self._stored))

    def restore(self, snapshot: RegistryChoiceSnapshot) -> None:
        """Restore the selection and values of a snapshot."""
        self._stored.clear()
        self._stored.update(deepcopy(dict(snapshot.stored)))
        if self.name != snapshot.name:
            self._picker.select_data(snapshot.name)
        self._panel.restore_shared(snapshot.shared)

    @Slot()
    def _on_chosen(self) -> None:
        if self._picker.currentData() is not None:  # None while the list is refilled
            self._absent = ""
            self.show_parameters()
            self.chosen.emit()
            self.changed.emit()


class StrategyChoice(RegistryChoice):
    """Selection of the strategy; the picker's subtitle shows the changed parameters."""

    registry = strategies.registry

    def _entries_in_order(self) -> Iterable[tuple[str, Strategy | CacheBackend]]:
        """Return the strategies by group: those of the program, then groups that plug-ins add."""
        titles = dict.fromkeys((*GROUPS, *(entry.group_title for entry in strategies.registry.values())))
        places = {title: place for place, title in enumerate(titles)}
        return sorted(strategies.registry.items(), key=lambda item: places[item[1].group_title])

    def _parameters_of(self, name: str) -> Mapping[str, Sequence[Parameter]]:
        return strategies.grouped_settings(strategies.registry[name])

    def _item(self, name: str, entry: Strategy | CacheBackend) -> PickerItem:
        item = super()._item(name, entry)
        if not isinstance(entry, Strategy):
            return item
        badge = tr("Start here") if entry.is_starting_point and not item.reason else ""
        return item._replace(group=tr(entry.group_title), badge=badge)

    def __init__(self, picker: PickerCombo, panel: ParameterPanel, initial: str, stored: StoredValues) -> None:
        super().__init__(picker, panel, initial, stored)
        self.changed.connect(self._show_subtitle)
        self._show_subtitle()

    @property
    def strategy(self) -> Strategy:
        """The selected strategy."""
        return strategies.registry[self.name]

    @Slot()
    def _show_subtitle(self) -> None:
        words = setting_values.summary(self.strategy.parameters, self._panel.effective_changes())
        self._picker.set_subtitle(words or tr("default settings"))


class CacheChoice(RegistryChoice):
    """Selection of the cache backend."""

    registry = caches.registry
