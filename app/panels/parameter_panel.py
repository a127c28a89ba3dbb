"""Value of a setting whose row has not been shown yet, held without a widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from decodescope import core
from decodescope.app.panels.parameter_row import MARGIN, ParameterRow
from decodescope.app.state.setting_values import is_number
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import delete_widget
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core import strategies
from decodescope.core.strategies import Parameter
from decodescope.resources.language import tr, trn


class DeferredSetting:
    """Placeholder for a `ParameterRow` that has not been created yet, with the same interface."""

    problem = ""
    """Always empty: nothing can have been typed."""

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.default: Any = parameter.default
        self.value: Any = parameter.default
        self.unavailable = ""

    @property
    def is_changed(self) -> bool:
        """Whether it differs from the default."""
        return bool(self.value != self.default)

    def set_value(self, value: Any) -> None:
        """Set the value."""
        self.value = value

    def set_default(self, default: Any) -> None:
        """Set the value that counts as unchanged: the parameter's default, or the model's own."""
        self.default = default

    def set_unavailable(self, reason: str) -> None:
        """Set the reason why the setting has no effect now; an empty reason makes it usable again."""
        self.unavailable = reason


class ParameterFrame(QWidget):
    """Frame of a parameter panel: rows go into `common` and `advanced`; `more_button` unfolds the latter,
    `reset_button` is in the heading.
    """

    def __init__(self, heading: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._build(heading)

    @property
    def is_advanced(self) -> bool:
        """Whether the advanced parameters are unfolded."""
        return self.more_button.isChecked()

    def set_advanced(self, unfolded: bool) -> None:
        """Unfold or fold the advanced parameters."""
        self.more_button.setChecked(unfolded)

    def _build(self, heading_text: str) -> None:
        heading = set_up(PlainLabel(heading_text), role="heading")
        self.reset_button = QPushButton(tr("Reset"))
        self.reset_button.setObjectName("resetButton")
        self.reset_button.setProperty("role", "quiet")
        self.reset_button.setAccessibleName(tr("Reset all {heading}").format(heading=heading_text.lower()))
        top = arrange(QHBoxLayout(), (heading, 1), self.reset_button, margins=(MARGIN, 0, MARGIN - 6, 0))
        self.more_button = set_up(QPushButton(), name="moreButton", role="quiet")
        self.more_button.setCheckable(True)
        self.common, self.advanced = _column(), _column()
        self.advanced_section = QWidget()
        self.advanced_section.setLayout(self.advanced)
        self.advanced_section.hide()
        self._lay_out(top)

    def _lay_out(self, top: QHBoxLayout) -> None:
        column = arrange(QVBoxLayout(self), top, self.common, margins=0, spacing=4)
        line = QHBoxLayout()
        line.setContentsMargins(MARGIN - 6, 0, MARGIN, 0)
        line.addWidget(self.more_button, 0, Qt.AlignmentFlag.AlignLeft)
        arrange(column, line, self.advanced_section)


def _column() -> QVBoxLayout:
    return arrange(QVBoxLayout(), margins=0, spacing=4)


_SAMPLING_PARAMETERS = strategies.drawing()


class ParameterPanel(Themed, ParameterFrame):
    """Parameters of a strategy or cache. A parameter shared by two strategies keeps its value when the strategy
    changes.
    """

    changed = Signal()
    helpRequested = Signal(object)
    advancedToggled = Signal(bool)

    def __init__(self, heading: str = "", parent: QWidget | None = None) -> None:
        super().__init__(heading or tr("PARAMETERS"), parent)
        self._changed_values: dict[Parameter, Any] = {}
        self._model_defaults: Mapping[str, Any] = {}
        self._unsupported: Mapping[str, str] = {}
        """Parameters the model does not support, with the reason."""
        self._settings: dict[str, ParameterRow | DeferredSetting] = {}
        self._has_all_rows = False
        """Whether the folded advanced parameters have rows too; these are created later, when the program is idle."""
        self.reset_button.clicked.connect(self.reset)
        self.more_button.toggled.connect(self._on_more)

    @property
    def rows(self) -> Mapping[str, ParameterRow]:
        """The rows by parameter name."""
        self.create_all_rows()
        return {name: row for name, row in self._settings.items() if isinstance(row, ParameterRow)}

    @property
    def created_rows(self) -> Mapping[str, ParameterRow]:
        """The rows that exist already, by parameter name."""
        return {name: row for name, row in self._settings.items() if isinstance(row, ParameterRow)}

    def show_parameters(self, parameters: Sequence[Parameter]) -> None:
        """Show editors for `parameters`, with the values they had when last shown."""
        before = {row.parameter: row for row in self._settings.values() if isinstance(row, ParameterRow)}
        self._settings = {}
        for parameter in parameters:
            self._add(parameter, before.pop(parameter, None))
        for row in before.values():
            delete_widget(row)
        self.setVisible(bool(self._settings))
        self._after_change()

    @Slot()
    def create_all_rows(self) -> None:
        """Create rows for the folded parameters too, and from then on for all parameters."""
        self._has_all_rows = True
        for name, held in self._settings.items():
            if isinstance(held, DeferredSetting):
                row = self._settings[name] = self._create_row(held.parameter)
                row.set_value(held.value)
                row.set_unavailable(held.unavailable)

    def set_model_defaults(self, defaults: Mapping[str, Any]) -> None:
        """Use the numbers of a model's generation_config as defaults; unchanged parameters follow them."""
        self._model_defaults = {name: value for name, value in defaults.items() if is_number(value)}
        for row in self._settings.values():
            unchanged = not row.is_changed
            row.set_default(self._default(row.parameter))
            if unchanged:
                row.set_value(row.default)
        self._after_change()

    def set_unsupported(self, reasons: Mapping[str, str]) -> None:
        """Disable the parameters that the model does not support, with the reason; they are left out of `values()`."""
        self._unsupported = reasons
        self._after_change()

    def values(self) -> dict[str, Any]:
        """Return the values to pass to a run, without unset or unsupported parameters."""
        found = {}
        for name, row in self._settings.items():
            if name in self._unsupported:
                continue
            value = row.value
            if value is None and name in self._model_defaults:
                value = row.parameter.unset
            if value is not None:
                found[name] = value
        return found

    def changed_values(self) -> dict[str, Any]:
        """Return only the values that differ from their defaults."""
        return {name: row.value for name, row in self._settings.items() if row.is_changed}

    def shared_values(self) -> dict[Parameter, Any]:
        """Return the changed parameters of all strategies (or caches) shown so far."""
        return dict(self._changed_values)

    def restore_shared(self, values: Mapping[Parameter, Any]) -> None:
        """Restore the result of `shared_values`; all other parameters get their defaults."""
        self._changed_values = dict(values)
        for row in self._settings.values():
            row.set_value(values.get(row.parameter, row.default))
        self._after_change()
        self.changed.emit()

    def set_values(self, values: Mapping[str, Any]) -> list[str]:
        """Show `values`, with all other parameters at their defaults, and return the names that have no editor."""
        for name, row in self._settings.items():
            row.set_value(values.get(name, row.default))
        self._after_change()
        self.changed.emit()
        return [name for name in values if name not in self._settings]

    def problems(self) -> list[str]:
        """Return a sentence for each invalid input."""
        return [f"{tr(row.parameter.title)}: {row.problem}" for row in self._settings.values() if row.problem]

    @Slot()
    def reset(self) -> None:
        """Reset all parameters to their defaults."""
        self.set_values({})

    def _add(self, parameter: Parameter, existing_row: ParameterRow | None) -> None:
        """Append a parameter, reusing `existing_row` if its row already exists."""
        is_seen = self._has_all_rows or self.is_advanced or not parameter.advanced
        setting: ParameterRow | DeferredSetting
        if existing_row is not None:
            setting = existing_row
            existing_row.set_unavailable("")
            self._insert_row(existing_row)
        else:
            setting = self._create_row(parameter) if is_seen else DeferredSetting(parameter)
        setting.set_default(self._default(parameter))
        setting.set_value(self._changed_values.get(parameter, setting.default))
        self._settings[parameter.name] = setting

    def _create_row(self, parameter: Parameter) -> ParameterRow:
        row = ParameterRow(parameter)
        row.set_default(self._default(parameter))
        row.edited.connect(self._on_edited)
        row.helpRequested.connect(self.helpRequested)
        row.set_theme(self._theme)
        self._insert_row(row)
        return row

    def _insert_row(self, row: ParameterRow) -> None:
        (self.advanced if row.parameter.advanced else self.common).addWidget(row)

    def _default(self, parameter: Parameter) -> Any:
        if parameter.kind not in ("int", "float"):
            return parameter.default
        return self._model_defaults.get(parameter.name, parameter.default)

    @Slot()
    def _on_edited(self) -> None:
        self._after_change()
        self.changed.emit()

    @Slot(bool)
    def _on_more(self, unfolded: bool) -> None:
        if unfolded:
            self.create_all_rows()
        self.advanced_section.setVisible(unfolded)
        self._update_more_button()
        self.advancedToggled.emit(unfolded)

    def _after_change(self) -> None:
        """Store the changed values, and update the buttons and the disabled rows."""
        for row in self._settings.values():
            self._changed_values.pop(row.parameter, None)
            if row.is_changed:
                self._changed_values[row.parameter] = row.value
        self.reset_button.setEnabled(any(row.is_changed for row in self._settings.values()))
        _disable_rows(self._settings, self._unsupported)
        self._update_more_button()

    def _update_more_button(self) -> None:
        hidden = [row for row in self._settings.values() if row.parameter.advanced]
        changed = sum(row.is_changed for row in hidden)
        marks = tr(" · {changed} changed").format(changed=changed) if changed else ""
        self.more_button.setVisible(bool(hidden))
        self.more_button.setText(
            tr("Fewer settings")
            if self.is_advanced
            else trn("{count} more setting{marks}", "{count} more settings{marks}", len(hidden)).format(
                count=len(hidden), marks=marks
            )
        )


def _disable_rows(rows: Mapping[str, ParameterRow | DeferredSetting], unsupported: Mapping[str, str]) -> None:
    """Disable parameters that the model does not support or whose package is missing, and the sampling parameters while
    `do_sample` is off.
    """
    for name, row in rows.items():
        reason = unsupported.get(name) or core.why_missing(row.parameter.extra)
        if reason != row.unavailable:
            row.set_unavailable(reason)
    draws = rows.get("do_sample")
    if draws is None:
        return
    reason = "" if draws.value else tr("Only has an effect if “{title}” is on.").format(title=tr(draws.parameter.title))
    for row in rows.values():
        if row.parameter.name in _SAMPLING_PARAMETERS:
            row.set_unavailable(reason)
