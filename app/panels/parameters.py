"""The parameter panel, generated from a registry's entry: every setting with type, range, default and help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

import core
from app.panels.deferred_setting import HeldSetting
from app.panels.parameter_frame import ParameterFrame
from app.panels.parameter_row import ParameterRow
from app.state.number_checks import is_number
from app.theme.theme import Theme
from app.widgets.widget_disposal import discard
from core import strategies
from core.strategies import Parameter
from resources.language import tr, trn

_DRAWING = strategies.drawing()


class ParameterPanel(ParameterFrame):
    """Settings of one strategy (or cache). A setting that two strategies share keeps its value between them."""

    changed = Signal()
    helpWanted = Signal(object)
    advancedToggled = Signal(bool)

    def __init__(self, heading: str = "", parent: QWidget | None = None) -> None:
        super().__init__(heading or tr("PARAMETERS"), parent)
        self._kept: dict[Parameter, Any] = {}
        self._model: Mapping[str, Any] = {}
        self._refused: Mapping[str, str] = {}
        """Settings that the model has not → why."""
        self._settings: dict[str, ParameterRow | HeldSetting] = {}
        self._is_whole = False
        """Whether the rarer settings have rows as well while they are folded: not before there is time for them."""
        self._theme: Theme | None = None
        self.reset_button.clicked.connect(self.reset)
        self.more.toggled.connect(self._on_more)

    @property
    def rows(self) -> Mapping[str, ParameterRow]:
        """The rows by the setting's name."""
        self.make_all()
        return {name: row for name, row in self._settings.items() if isinstance(row, ParameterRow)}

    def show_parameters(self, parameters: Sequence[Parameter]) -> None:
        """Draw editors for `parameters`, with the values they had when they were last shown."""
        before = {row.parameter: row for row in self._settings.values() if isinstance(row, ParameterRow)}
        self._settings = {}
        for parameter in parameters:
            self._add(parameter, before.pop(parameter, None))
        for row in before.values():
            discard(row)
        self.setVisible(bool(self._settings))
        self._after_change()

    @Slot()
    def make_all(self) -> None:
        """Give the folded settings their rows, too: from now on all have one."""
        self._is_whole = True
        for name, held in self._settings.items():
            if isinstance(held, HeldSetting):
                row = self._settings[name] = self._row(held.parameter)
                row.set_value(held.value)
                row.set_unavailable(held.unavailable)

    def set_model_defaults(self, own: Mapping[str, Any]) -> None:
        """The numbers a model's own generation_config sets become the defaults; unchanged settings follow them."""
        self._model = {name: value for name, value in own.items() if is_number(value)}
        for row in self._settings.values():
            unchanged = not row.is_changed
            row.set_default(self._default(row.parameter))
            if unchanged:
                row.set_value(row.default)
        self._after_change()

    def set_refused(self, refused: Mapping[str, str]) -> None:
        """Grey out the settings that the model has not, with the reason; a run is not told them."""
        self._refused = refused
        self._after_change()

    def values(self) -> dict[str, Any]:
        """Every setting that a run must be told: not those that are unset, or that the model has not."""
        found = {}
        for name, row in self._settings.items():
            if name in self._refused:
                continue
            value = row.value
            if value is None and name in self._model:
                value = row.parameter.unset
            if value is not None:
                found[name] = value
        return found

    def changed_values(self) -> dict[str, Any]:
        """Only what differs from the defaults."""
        return {name: row.value for name, row in self._settings.items() if row.is_changed}

    def shared_values(self) -> dict[Parameter, Any]:
        """Changed settings of every strategy (or cache) that has been shown."""
        return dict(self._kept)

    def restore_shared(self, kept: Mapping[Parameter, Any]) -> None:
        """Set everything as `shared_values` gave it; settings that are not in it go back to their defaults."""
        self._kept = dict(kept)
        for row in self._settings.values():
            row.set_value(kept.get(row.parameter, row.default))
        self._after_change()
        self.changed.emit()

    def set_values(self, new: Mapping[str, Any]) -> list[str]:
        """Show `new`, everything else at its default; gives back the names there is no editor for."""
        for name, row in self._settings.items():
            row.set_value(new.get(name, row.default))
        self._after_change()
        self.changed.emit()
        return [name for name in new if name not in self._settings]

    def problems(self) -> list[str]:
        """Why some of what is typed cannot be used, a sentence each."""
        return [f"{tr(row.parameter.title)}: {row.problem}" for row in self._settings.values() if row.problem]

    @Slot()
    def reset(self) -> None:
        """Everything back to its default."""
        self.set_values({})

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        for row in self._settings.values():
            if isinstance(row, ParameterRow):
                row.set_theme(theme)

    def _add(self, parameter: Parameter, made: ParameterRow | None) -> None:
        """At the end; a row that was made for it before is taken again."""
        is_seen = self._is_whole or self.is_advanced or not parameter.advanced
        setting: ParameterRow | HeldSetting
        if made is not None:
            setting = made
            made.set_unavailable("")
            self._place(made)
        else:
            setting = self._row(parameter) if is_seen else HeldSetting(parameter)
        setting.set_default(self._default(parameter))
        setting.set_value(self._kept.get(parameter, setting.default))
        self._settings[parameter.name] = setting

    def _row(self, parameter: Parameter) -> ParameterRow:
        row = ParameterRow(parameter)
        row.set_default(self._default(parameter))
        row.edited.connect(self._on_edited)
        row.helpWanted.connect(self.helpWanted)
        if self._theme is not None:
            row.set_theme(self._theme)
        self._place(row)
        return row

    def _place(self, row: ParameterRow) -> None:
        (self.advanced if row.parameter.advanced else self.common).addWidget(row)

    def _default(self, parameter: Parameter) -> Any:
        if parameter.kind not in ("int", "float"):
            return parameter.default
        return self._model.get(parameter.name, parameter.default)

    @Slot()
    def _on_edited(self) -> None:
        self._after_change()
        self.changed.emit()

    @Slot(bool)
    def _on_more(self, unfolded: bool) -> None:
        if unfolded:
            self.make_all()
        self.folded.setVisible(unfolded)
        self._name_more()
        self.advancedToggled.emit(unfolded)

    def _after_change(self) -> None:
        """Remember what differs, and bring the buttons and greyed rows up to date."""
        for row in self._settings.values():
            self._kept.pop(row.parameter, None)
            if row.is_changed:
                self._kept[row.parameter] = row.value
        self.reset_button.setEnabled(any(row.is_changed for row in self._settings.values()))
        _grey_out(self._settings, self._refused)
        self._name_more()

    def _name_more(self) -> None:
        hidden = [row for row in self._settings.values() if row.parameter.advanced]
        changed = sum(row.is_changed for row in hidden)
        marks = tr(" · {changed} changed").format(changed=changed) if changed else ""
        self.more.setVisible(bool(hidden))
        self.more.setText(
            tr("Fewer settings")
            if self.is_advanced
            else trn("{count} more setting{marks}", "{count} more settings{marks}", len(hidden)).format(
                count=len(hidden), marks=marks
            )
        )


def _grey_out(rows: Mapping[str, ParameterRow | HeldSetting], refused: Mapping[str, str]) -> None:
    """Settings that the model has not, those whose package is not there, and those of the draw while a strategy that
    could draw does not."""
    for name, row in rows.items():
        reason = refused.get(name) or core.why_missing(row.parameter.extra)
        if reason != row.unavailable:
            row.set_unavailable(reason)
    draws = rows.get("do_sample")
    if draws is None:
        return
    reason = "" if draws.value else tr("Has an effect only with “{title}” on.").format(title=tr(draws.parameter.title))
    for row in rows.values():
        if row.parameter.name in _DRAWING:
            row.set_unavailable(reason)
