"""Row of one parameter: name, editor, slider, and a dot if it differs from its default."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QObject, QPointF, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QMenu, QVBoxLayout, QWidget

from decodescope.app.panels.editors import ChoiceEditor, FloatEditor, IntEditor, make_editor
from decodescope.app.state import setting_values
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.accessibility import AccessibleValue, AccessibleWidget, Role
from decodescope.app.widgets.building import Gap, arrange, set_up, show_text
from decodescope.app.widgets.inputs import Slider
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, escape_html, rich_tooltip
from decodescope.core.strategies import Parameter
from decodescope.resources.language import tr

MAX_SLIDER_END = 10_000
"""Largest upper end of a range that gets a slider."""


class SliderScale(NamedTuple):
    """Linear or logarithmic slider scale over a setting's useful range; typed values may exceed both ends."""

    start: float
    end: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Return the slider position of `value`, from 0 to 1, clamped at both ends."""
        inside = min(self.end, max(self.start, value))
        if self.logarithmic:
            return math.log(inside / self.start) / math.log(self.end / self.start)
        return (inside - self.start) / (self.end - self.start)

    def value(self, position: float, step: float) -> float:
        """Return the value at a slider position, rounded to whole steps except at the ends."""
        if position <= 0 or position >= 1:
            return self.end if position >= 1 else self.start
        if self.logarithmic:
            exact = self.start * float((self.end / self.start) ** position)
        else:
            exact = self.start + (self.end - self.start) * position
        return min(self.end, max(self.start, round(exact / step) * step))


def scale_of(parameter: Parameter, lowest: float) -> SliderScale | None:
    """Return the slider scale of a numeric parameter whose editor starts at `lowest`; None if the range is too wide."""
    end = parameter.soft_maximum if parameter.soft_maximum is not None else parameter.maximum
    start = lowest if parameter.soft_minimum is None else parameter.soft_minimum
    if end is None or end > MAX_SLIDER_END:
        return None
    return SliderScale(start, end, parameter.logarithmic)


SLIDER_STEPS = 1000


class ValueSlider(Slider, AccessibleWidget):
    """Slider that follows and sets its editor; it ignores the wheel and leaves the keyboard to the editor."""

    accessible_role = Role.Slider

    def __init__(self, parameter: Parameter, editor: IntEditor | FloatEditor, scale: SliderScale) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._editor, self._scale = editor, scale
        self._step = parameter.step or (1 if isinstance(editor, IntEditor) else 0.01)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setRange(0, SLIDER_STEPS)
        self.setAccessibleName(tr("{title} slider").format(title=tr(parameter.title)))
        self.valueChanged.connect(self._on_value)

    def sync_from_editor(self) -> None:
        """Move to the editor's value."""
        with QSignalBlocker(self):
            self.setValue(round(self._scale.position(self._editor.value()) * SLIDER_STEPS))

    def accessible_value(self) -> AccessibleValue:
        """Return the parameter's value, not the slider position."""
        low, high = (self._scale.value(end, self._step) for end in (0.0, 1.0))
        editor = self._editor
        return AccessibleValue(editor.value(), low, high, self._step, editor.text(), self._set_value)

    def _set_value(self, value: float) -> None:
        self.setValue(round(self._scale.position(value) * SLIDER_STEPS))

    @Slot(int)
    def _on_value(self, position: int) -> None:
        value = self._scale.value(position / SLIDER_STEPS, self._step)
        if isinstance(self._editor, IntEditor):
            self._editor.setValue(round(value))
        else:
            self._editor.setValue(round(value, 6))


def make_slider(parameter: Parameter, editor: QWidget) -> ValueSlider | None:
    """Create a slider for a number with a range; None for other editors."""
    if not isinstance(editor, IntEditor | FloatEditor):
        return None
    scale = scale_of(parameter, editor.minimum())
    return ValueSlider(parameter, editor, scale) if scale is not None else None


MARGIN = 16
_FULL_WIDTH_KINDS = ("text", "lines", "tokens", "names", "grammar", "words", "word_values")
"""Kinds of parameters whose editor takes a line of its own."""


class ParameterRow(Themed, QWidget):
    """Row of one parameter. Emits `edited` when the user changes it, and `helpRequested(self)` when it is hovered or
    focused.
    """

    edited = Signal()
    helpRequested = Signal(object)

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"row.{parameter.name}")
        self.setProperty("row", True)
        self.parameter = parameter
        self.default: Any = parameter.default
        self.unavailable = ""
        """Why the parameter has no effect now; empty if it has one."""
        self._editor_width = 0
        """Preferred width of a choice editor in pixels; 0 for other editors."""
        self._build()
        self._lay_out()
        self._term = add_glossary_tooltip(self, f"param.{parameter.name}", described=self.editor)
        self.set_default(parameter.default)
        self.set_value(parameter.default)

    @property
    def value(self) -> Any:
        """The parameter's value; None if unset."""
        return self.editor.plain_value()

    @property
    def is_changed(self) -> bool:
        """Whether it differs from the default."""
        return bool(self.value != self.default)

    @property
    def problem(self) -> str:
        """The reason why the typed text is invalid; empty if it is valid."""
        return self.editor.problem

    def set_value(self, value: Any) -> None:
        """Show `value` without emitting `edited`."""
        with QSignalBlocker(self.editor):
            self.editor.set_plain_value(value)
        self._refresh()

    def set_default(self, default: Any) -> None:
        """Set the value that counts as unchanged: the parameter's default, or the model's own."""
        self.default = default
        self.setToolTip(rich_tooltip(_tooltip_text(self.parameter, self.unavailable, self.default)))
        self.update()

    @Slot()
    def reset(self) -> None:
        """Restore the default and emit `edited`."""
        if self.is_changed:
            self.set_value(self.default)
            self.edited.emit()

    def set_unavailable(self, reason: str) -> None:
        """Disable the row and show why in its tooltip; an empty reason enables it again."""
        self.unavailable = reason
        for part in (self.label, self.editor, self.slider):
            if part is not None:
                part.setEnabled(not reason)
        self.editor.setAccessibleDescription(reason or tr(self.parameter.help))
        self.setToolTip(rich_tooltip(_tooltip_text(self.parameter, self.unavailable, self.default)))

    def restyle(self, theme: Theme) -> None:
        if isinstance(self.editor, IntEditor | FloatEditor):
            font = theme.font(13, tabular=True)
            word = QFontMetrics(font).horizontalAdvance(str(self.default)) + theme.px(10) + theme.space(12)
            self.editor.setFixedSize(max(theme.px(52) + theme.space(6), word), theme.px(24))
            self.editor.setFont(font)
        if isinstance(self.editor, ChoiceEditor):
            frame = theme.px(22) + theme.space(12)
            self._editor_width = max(theme.px(112), self.editor.longest_width(theme.font(13)) + frame)
            self.editor.setMinimumWidth(theme.px(80))
            self.editor.setMaximumWidth(self._editor_width)
        self._fit()
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusIn:
            self._term.refresh_description()
            self.helpRequested.emit(self)
        if event.type() == QEvent.Type.MouseButtonDblClick and watched is self.label:
            self.reset()
        return super().eventFilter(watched, event)

    def enterEvent(self, event: Any) -> None:
        self.helpRequested.emit(self)
        super().enterEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        title = tr("Reset to {default}").format(default=setting_values.short_text(self.default))
        action = menu.addAction(caption(title), self.reset)
        action.setEnabled(self.is_changed)
        menu.popup(event.globalPos())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.reset()

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.is_changed:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("accent"))
        center = QPointF(MARGIN / 2, self.label.geometry().center().y() + 1)
        painter.drawEllipse(center, self._theme.px(5) / 2, self._theme.px(5) / 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Move the editor below the name if the name's longest word would not fit next to it."""
        word = self.label.fontMetrics().horizontalAdvance(max(tr(self.parameter.title).split(), key=len)) + 2
        needed = word + self._top.spacing() + (self._editor_width or self.editor.width())
        fits_on_one_line = self.parameter.kind in _FULL_WIDTH_KINDS or needed <= self.width() - 2 * MARGIN
        directions = QBoxLayout.Direction
        self._top.setDirection(directions.LeftToRight if fits_on_one_line else directions.TopToBottom)

    def _build(self) -> None:
        self.editor = make_editor(self.parameter, self)
        self.editor.edited.connect(self._on_edited)
        self.editor.installEventFilter(self)
        self.label = WrappedLabel(tr(self.parameter.title), self)
        self.label.setBuddy(self.editor)
        self.label.installEventFilter(self)
        self.note = set_up(PlainLabel(self, wordWrap=True), role="muted")
        self.note.hide()
        self.slider = make_slider(self.parameter, self.editor)

    def _lay_out(self) -> None:
        column = arrange(QVBoxLayout(self), margins=(MARGIN, 0, MARGIN, 0), spacing=0)
        self._top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._top.setSpacing(8)
        self._top.addWidget(self.label, 1)
        column.addLayout(self._top)
        if self.parameter.kind in _FULL_WIDTH_KINDS:
            arrange(column, Gap(3), self.editor)
        else:
            self._top.addWidget(self.editor)
        if self.slider is not None:
            column.addWidget(self.slider)
        column.addWidget(self.note)

    @Slot()
    def _on_edited(self) -> None:
        self._refresh()
        self.edited.emit()

    def _refresh(self) -> None:
        if self.slider is not None:
            self.slider.sync_from_editor()
        problem = self.editor.problem
        show_text(self.note, problem)
        self.update()


def _tooltip_text(parameter: Parameter, unavailable: str, default: Any) -> str:
    title, *lines = (escape_html(text) for text in (tr(parameter.title), unavailable, tr(parameter.help)))
    default_text = escape_html(setting_values.short_text(default))
    return "<br>".join([f"<b>{title}</b>", *filter(None, lines)]) + tr("<br>Default: {default}.").format(
        default=default_text
    )
