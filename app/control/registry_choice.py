"""Strategy and cache: a picker over a registry, and the panel of what the picked entry lets one set."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

from PySide6.QtCore import QObject, Signal, Slot

from app.panels.parameter_panel import ParameterPanel
from app.state import setting_values
from app.state.suggestions import unknown_name_message
from app.widgets.picker_combo import PickerCombo, PickerItem
from core import caches, strategies
from core.caches import CacheBackend
from core.strategies import Parameter, Strategy
from resources.language import tr

StoredValues = dict[str, dict[str, Any]]
"""Settings by the name of the entry they were made for."""


class RegistryChoiceSnapshot(NamedTuple):
    """The chosen strategy or cache, and the values of its parameters."""

    name: str
    changed: Mapping[str, Any]
    """Parameters of the chosen entry that differ from their defaults."""
    shared: Mapping[Parameter, Any]
    """Changed parameters of every entry that has been shown."""
    stored: Mapping[str, dict[str, Any]]
    """Values from the settings file of entries that have not been shown yet."""


class RegistryChoice(QObject):
    """One entry of a registry and its settings; `chosen` when it is another, `changed` when that or a setting is."""

    chosen = Signal()
    changed = Signal()
    registry: ClassVar[Mapping[str, Strategy | CacheBackend]]
    """What there is to choose from."""

    def __init__(self, picker: PickerCombo, panel: ParameterPanel, initial: str, stored: StoredValues) -> None:
        super().__init__(picker)
        self._picker, self._panel, self._stored = picker, panel, stored
        self.show_unsupported({})
        picker.select_data(initial)
        picker.currentIndexChanged.connect(self._on_chosen)
        panel.changed.connect(self.changed)
        self.show_parameters()

    @property
    def name(self) -> str:
        """The chosen entry's name."""
        return str(self._picker.currentData())

    @property
    def parameters(self) -> ParameterPanel:
        """The panel of its settings."""
        return self._panel

    def choose(self, name: str, kind: str) -> list[str]:
        """Choose by name or alias; gives back a sentence when there is none of that name."""
        if name not in self.registry:
            return [unknown_name_message(kind, name, self.registry)]
        self._picker.select_data(self.registry[name].name)
        return []

    def show_unsupported(self, reasons: Mapping[str, str]) -> None:
        """List every entry; those the model refuses greyed out, with the reason."""
        self._picker.set_items(
            PickerItem(
                tr(entry.title), name, tr(entry.summary), reasons.get(name, ""), entry.paper or tr(entry.summary)
            )
            for name, entry in self.registry.items()
        )

    def show_parameters(self) -> None:
        """Draw the chosen entry's settings, with the values they were left with."""
        self._panel.show_parameters(self.registry[self.name].parameters)
        if values := self._stored.pop(self.name, None):
            self._panel.set_values({**self._panel.changed_values(), **values})

    def store_values(self) -> str:
        """Keep what is changed for the next start; gives back the chosen entry's name."""
        self._stored[self.name] = self._panel.changed_values()
        return self.name

    def snapshot(self) -> RegistryChoiceSnapshot:
        """Copy the choice and the values of its parameters."""
        panel = self._panel
        return RegistryChoiceSnapshot(self.name, panel.changed_values(), panel.shared_values(), deepcopy(self._stored))

    def restore(self, snapshot: RegistryChoiceSnapshot) -> None:
        """Choose what was chosen when the snapshot was taken, with the values of that time."""
        self._stored.clear()
        self._stored.update(deepcopy(dict(snapshot.stored)))
        if self.name != snapshot.name:
            self._picker.select_data(snapshot.name)
        self._panel.restore_shared(snapshot.shared)

    @Slot()
    def _on_chosen(self) -> None:
        if self._picker.currentData() is not None:  # as while the list is filled anew
            self.show_parameters()
            self.chosen.emit()
            self.changed.emit()


class StrategyChoice(RegistryChoice):
    """The strategy; its picker's second line says what is changed."""

    registry = strategies.registry

    def __init__(self, picker: PickerCombo, panel: ParameterPanel, initial: str, stored: StoredValues) -> None:
        super().__init__(picker, panel, initial, stored)
        self.changed.connect(self._show_subtitle)
        self._show_subtitle()

    @property
    def strategy(self) -> Strategy:
        """The chosen entry."""
        return strategies.registry[self.name]

    @Slot()
    def _show_subtitle(self) -> None:
        words = setting_values.summary(self.strategy.parameters, self._panel.changed_values())
        self._picker.set_subtitle(words or tr("default settings"))


class CacheChoice(RegistryChoice):
    """The cache back end."""

    registry = caches.registry
