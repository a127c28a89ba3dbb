"""The parameters of a strategy or cache, in groups that can be closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QPointF, QRect, QRectF, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from decodescope import core
from decodescope.app.panels.parameter_row import MARGIN, ParameterRow
from decodescope.app.state import setting_values
from decodescope.app.state.setting_values import is_number
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import delete_widget
from decodescope.app.widgets.icons import paint_icon
from decodescope.app.widgets.painted_rows import paint_line
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.core import strategies
from decodescope.core.strategies import Parameter
from decodescope.resources.language import join_names, tr, trn


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


class GroupHead(Themed, QAbstractButton):
    """Head of a group of settings, which opens and closes it: title, and the group's summary while it is closed."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setText(title)
        self.setAccessibleName(title)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.summary = ""
        self.is_changed = False
        """Whether the summary lists changed settings."""

    def set_summary(self, text: str, is_changed: bool) -> None:
        """Show what the group contains, or its changed settings."""
        if (text, is_changed) != (self.summary, self.is_changed):
            self.summary, self.is_changed = text, is_changed
            self.setAccessibleDescription(text)
            self.setToolTip(tooltip(text))
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(80, self._theme.px(26))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close on Left and open on Right, besides Space."""
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.setChecked(event.key() == Qt.Key.Key_Right)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.toggle()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.hasFocus() or self.underMouse():
            painter.setPen(theme.color("accent") if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("hover") if self.underMouse() else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(4.5, 0.5, -4.5, -0.5), theme.px(6), theme.px(6))
        if self.is_changed and not self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            painter.drawEllipse(QPointF(MARGIN / 2, self.height() / 2), theme.px(5) / 2, theme.px(5) / 2)
        side = theme.px(14)
        icon = QRectF(self.width() - MARGIN - side, (self.height() - side) / 2, side, side)
        paint_icon(painter, "chevron-down" if self.isChecked() else "chevron-right", theme.muted, icon)
        title = theme.font(12, 600)
        width = QFontMetrics(title).horizontalAdvance(self.text())
        line = QRect(MARGIN, 0, width + 2, self.height())
        paint_line(painter, line, title, theme.color("text"), self.text())
        if self.summary and not self.isChecked():
            left = line.right() + theme.px(10)
            room = QRect(left, 0, max(0, int(icon.left()) - theme.px(8) - left), self.height())
            color = theme.color("text" if self.is_changed else "muted")
            painter.setFont(theme.font(12))
            painter.setPen(color)
            shown = painter.fontMetrics().elidedText(self.summary, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, shown)


class SettingsGroup(QWidget):
    """Rows of one group below its head; a group without a title has no head. `toggled`: opened, closed or unfolded."""

    toggled = Signal()

    def __init__(self, key: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.key = key
        """The title in English; empty without one."""
        self.setObjectName(f"group.{key}" if key else "group")
        self.head = GroupHead(title)
        self.head.setObjectName(f"groupHead.{key}")
        self.head.setVisible(bool(key))
        self.more_button = set_up(QPushButton(), name="moreButton", role="quiet")
        self.more_button.setCheckable(True)
        self._is_rare = False
        self.common, self.advanced = _column(), _column()
        self._advanced_section, self._body = QWidget(), QWidget()
        self._advanced_section.setLayout(self.advanced)
        self._advanced_section.hide()
        self._body.setHidden(bool(key))
        line = arrange(QHBoxLayout(), margins=(MARGIN - 6, 0, MARGIN, 0))
        line.addWidget(self.more_button, 0, Qt.AlignmentFlag.AlignLeft)
        self._rows = arrange(QVBoxLayout(self._body), self.common, line, self._advanced_section, spacing=4)
        self._rows.setContentsMargins(0, 2, 0, 8)
        arrange(QVBoxLayout(self), self.head, self._body, margins=0, spacing=0)
        self.head.toggled.connect(self._on_head)
        self.more_button.toggled.connect(self._on_more)

    @property
    def is_open(self) -> bool:
        """Whether the usual rows are shown."""
        return self.head.isChecked() or not self.key

    @property
    def is_unfolded(self) -> bool:
        """Whether the rarely used rows are shown too."""
        return self.is_open and (self._is_rare or self.more_button.isChecked())

    def take_row(self, row: ParameterRow) -> None:
        """Remove a row from the layout, if it is in it."""
        self.common.removeWidget(row)
        self.advanced.removeWidget(row)

    def set_rare(self, is_rare: bool) -> None:
        """Set whether all its rows are rarely used ones, which then need no button."""
        self._is_rare = is_rare
        self._advanced_section.setVisible(is_rare or self.more_button.isChecked())

    def set_open(self, is_open: bool) -> None:
        """Open or close the group."""
        self.head.setChecked(is_open)

    def set_unfolded(self, is_unfolded: bool) -> None:
        """Show or hide the rarely used rows."""
        self.more_button.setChecked(is_unfolded)

    def show_summary(self, settings: Sequence[ParameterRow | DeferredSetting]) -> None:
        """Update the head's summary and the button for the rarely used rows."""
        changed = {each.parameter.name: each.value for each in settings if each.is_changed and not each.unavailable}
        parameters = [each.parameter for each in settings]
        names = join_names(tr(parameter.title) for parameter in parameters)
        self.head.set_summary(setting_values.summary(parameters, changed) or names, bool(changed))
        hidden = [each for each in settings if each.parameter.advanced]
        count = sum(each.is_changed for each in hidden)
        marks = tr(" · {changed} changed").format(changed=count) if count else ""
        self.more_button.setHidden(not hidden or self._is_rare)
        self.more_button.setText(
            tr("Fewer settings")
            if self.more_button.isChecked()
            else trn("{count} more setting{marks}", "{count} more settings{marks}", len(hidden)).format(
                count=len(hidden), marks=marks
            )
        )

    @Slot(bool)
    def _on_head(self, is_open: bool) -> None:
        self._body.setVisible(is_open)
        self.toggled.emit()

    @Slot(bool)
    def _on_more(self, is_unfolded: bool) -> None:
        self._advanced_section.setVisible(is_unfolded or self._is_rare)
        self.toggled.emit()


def _column() -> QVBoxLayout:
    return arrange(QVBoxLayout(), margins=0, spacing=4)


MORE = "/more"
"""Suffix of a group's key for its rarely used rows, in the stored states."""
OPEN_GROUPS = 2
"""Number of groups that are open at first."""
_SAMPLING_PARAMETERS = strategies.drawing()


class ParameterPanel(Themed, QWidget):
    """Parameters of a strategy or cache. A parameter shared by two strategies keeps its value when the strategy
    changes.
    """

    changed = Signal()
    helpRequested = Signal(object)
    groupsToggled = Signal()

    def __init__(self, heading: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._changed_values: dict[Parameter, Any] = {}
        self._model_defaults: Mapping[str, Any] = {}
        self._unsupported: Mapping[str, str] = {}
        """Parameters the model does not support, with the reason."""
        self._settings: dict[str, ParameterRow | DeferredSetting] = {}
        self._has_all_rows = False
        """Whether settings that cannot be seen have rows too; these are created later, when the program is idle."""
        self.groups: dict[str, SettingsGroup] = {}
        """The shown groups by their English titles, in the order of the panel."""
        self._group_of: dict[str, str] = {}
        self._unused_groups: list[SettingsGroup] = []
        self._states: dict[str, bool] = {}
        """Which groups were opened or closed by hand."""
        self._build(heading or tr("PARAMETERS"))
        self.reset_button.clicked.connect(self.reset)

    def _build(self, heading_text: str) -> None:
        heading = set_up(PlainLabel(heading_text), role="heading")
        self.reset_button = set_up(QPushButton(tr("Reset")), name="resetButton", role="quiet")
        self.reset_button.setAccessibleName(tr("Reset all {heading}").format(heading=heading_text.lower()))
        top = arrange(QHBoxLayout(), (heading, 1), self.reset_button, margins=(MARGIN, 0, MARGIN - 6, 0))
        self._column = arrange(QVBoxLayout(self), top, margins=0, spacing=2)

    @property
    def rows(self) -> Mapping[str, ParameterRow]:
        """The rows by parameter name."""
        self.create_all_rows()
        return {name: row for name, row in self._settings.items() if isinstance(row, ParameterRow)}

    @property
    def created_rows(self) -> Mapping[str, ParameterRow]:
        """The rows that exist already, by parameter name."""
        return {name: row for name, row in self._settings.items() if isinstance(row, ParameterRow)}

    @property
    def open_groups(self) -> dict[str, bool]:
        """The groups that were opened or closed by hand, by English title; with `/more`, their rarely used rows."""
        return dict(self._states)

    def restore_groups(self, states: Mapping[str, bool]) -> None:
        """Restore the result of `open_groups`."""
        self._states = dict(states)
        self._apply_states()

    def set_all_open(self, is_open: bool) -> None:
        """Open all groups with all rows, or close them."""
        for group in self.groups.values():
            group.set_unfolded(is_open)
            group.set_open(is_open)

    def reveal(self, name: str) -> None:
        """Open the group of a parameter. Raises KeyError."""
        group = self.groups[self._group_of[name]]
        group.set_open(True)
        if self._settings[name].parameter.advanced:
            group.set_unfolded(True)

    def show_parameters(self, parameters: Sequence[Parameter] | Mapping[str, Sequence[Parameter]]) -> None:
        """Show editors for the parameters, with the values they had when last shown; `parameters` are those of each
        group by its English title, or one list without groups.
        """
        grouped = dict(parameters) if isinstance(parameters, Mapping) else {"": parameters}
        before = {row.parameter: row for row in self._settings.values() if isinstance(row, ParameterRow)}
        self._settings = {}
        self._group_of = {parameter.name: key for key, members in grouped.items() for parameter in members}
        old_groups = dict(self.groups)
        self._show_groups({key: members for key, members in grouped.items() if members})
        for row in before.values():
            for group in old_groups.values():
                group.take_row(row)  # the place of a row is counted without those of the strategy before
        for parameter in (parameter for members in grouped.values() for parameter in members):
            self._add(parameter, before.pop(parameter, None))
        for row in before.values():
            delete_widget(row)
        for group in list(self._unused_groups):
            self._unused_groups.remove(group)
            delete_widget(group)
        self.setVisible(bool(self._settings))
        self._after_change()

    def _show_groups(self, grouped: Mapping[str, Sequence[Parameter]]) -> None:
        """Show these groups in this order; the rows of groups that are not needed any more may be moved."""
        existing = self.groups
        self.groups = {}
        for place, (key, members) in enumerate(grouped.items()):
            group = existing.pop(key, None) or self._create_group(key)
            group.set_rare(all(parameter.advanced for parameter in members))
            self.groups[key] = group
            self._column.insertWidget(place + 1, group)
        self._unused_groups = list(existing.values())
        for group in self._unused_groups:
            self._column.removeWidget(group)
        self._apply_states()

    def _create_group(self, key: str) -> SettingsGroup:
        group = SettingsGroup(key, tr(key) if key else "", self)
        group.toggled.connect(self._on_toggled)
        if self.is_themed:
            group.head.set_theme(self._theme)
        return group

    def _apply_states(self) -> None:
        """Open and close the groups as they were left; the first ones are open at first."""
        for place, (key, group) in enumerate(self.groups.items()):
            with QSignalBlocker(group):
                group.set_open(self._states.get(key, place < OPEN_GROUPS))
                group.set_unfolded(self._states.get(key + MORE, False))
        self._create_seen_rows()

    @Slot()
    def _on_toggled(self) -> None:
        """Remember what is open, and create the rows that are now visible."""
        group = self.sender()
        if isinstance(group, SettingsGroup):
            self._states[group.key] = group.is_open
            self._states[group.key + MORE] = group.more_button.isChecked()
        self._create_seen_rows()
        self._update_groups()
        self.groupsToggled.emit()

    @Slot()
    def create_all_rows(self) -> None:
        """Create rows for the settings of closed groups too, and from then on for all settings."""
        self._has_all_rows = True
        self._create_seen_rows()

    def _create_seen_rows(self) -> None:
        for name, held in self._settings.items():
            if isinstance(held, DeferredSetting) and self._is_seen(held.parameter):
                row = self._settings[name] = self._create_row(held.parameter)
                row.set_value(held.value)
                row.set_unavailable(held.unavailable)

    def _is_seen(self, parameter: Parameter) -> bool:
        """Return whether a setting needs a row now."""
        group = self.groups[self._group_of[parameter.name]]
        return self._has_all_rows or (group.is_unfolded if parameter.advanced else group.is_open)

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
        """Return the values to pass to a run, without those that are unset, unsupported, or have no effect now."""
        return {name: value for name, value in self.all_values().items() if name not in self._names_without_effect()}

    def _names_without_effect(self) -> frozenset[str]:
        """Return the names of sampling parameters while sampling is off."""
        draws = self._settings.get("do_sample")
        return _SAMPLING_PARAMETERS if draws is not None and not draws.value else frozenset()

    def effective_changes(self) -> dict[str, Any]:
        """Return the values that differ from their defaults and have an effect now."""
        idle = self._names_without_effect()
        return {name: value for name, value in self.changed_values().items() if name not in idle}

    def all_values(self) -> dict[str, Any]:
        """Return all values, without unset or unsupported parameters; also those that have no effect now."""
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
        setting: ParameterRow | DeferredSetting
        if existing_row is not None:
            setting = existing_row
            existing_row.set_unavailable("")
            self._insert_row(existing_row)
        else:
            setting = self._create_row(parameter) if self._is_seen(parameter) else DeferredSetting(parameter)
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
        group = self.groups[self._group_of[row.parameter.name]]
        (group.advanced if row.parameter.advanced else group.common).insertWidget(self._place_in_group(row), row)

    def _place_in_group(self, row: ParameterRow) -> int:
        """Return the number of rows above a row in its part of the group; rows are created in any order."""
        wanted, place = row.parameter, 0
        group = self._group_of[wanted.name]
        for name in self._group_of:
            if name == wanted.name:
                break
            other = self._settings.get(name)
            if isinstance(other, ParameterRow) and self._group_of[name] == group:
                place += other.parameter.advanced == wanted.advanced
        return place

    def _default(self, parameter: Parameter) -> Any:
        if parameter.kind not in ("int", "float"):
            return parameter.default
        return self._model_defaults.get(parameter.name, parameter.default)

    @Slot()
    def _on_edited(self) -> None:
        self._after_change()
        self.changed.emit()

    def _after_change(self) -> None:
        """Store the changed values, and update the buttons and the disabled rows."""
        for row in self._settings.values():
            self._changed_values.pop(row.parameter, None)
            if row.is_changed:
                self._changed_values[row.parameter] = row.value
        self.reset_button.setEnabled(any(row.is_changed for row in self._settings.values()))
        _disable_rows(self._settings, self._unsupported)
        self._update_groups()

    def _update_groups(self) -> None:
        """Update the summaries of the groups."""
        for key, group in self.groups.items():
            group.show_summary([row for name, row in self._settings.items() if self._group_of[name] == key])


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
