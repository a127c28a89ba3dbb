"""Buttons: menu button, segmented control, and the Run button."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLayout, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import icons
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.resources.language import mark, tr


class MenuButton(QToolButton):
    """A menu button. `actions` are (label, slot)."""

    def __init__(
        self,
        name: str,
        title: str,
        help_text: str,
        actions: tuple[tuple[str, Callable[[], None]], ...],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setText(caption(f"{title} ⌄"))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        set_up(self, accessible_name=title, tooltip=tooltip(help_text))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        menu = QMenu(self)
        for words, slot in actions:
            menu.addAction(caption(words), slot)
        self.setMenu(menu)


class SegmentButton(QPushButton):
    """Reserves the width of its bold label, so that nothing moves or is cut when it is selected."""

    def sizeHint(self) -> QSize:
        bold = QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold)
        size, text = super().sizeHint(), self.text()
        more = QFontMetrics(bold).horizontalAdvance(text) - self.fontMetrics().horizontalAdvance(text)
        return QSize(size.width() + max(0, more) + 2, size.height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class SegmentedControl(QWidget):
    """Exclusive buttons side by side. `chosen` emits the value of the pressed button."""

    chosen = Signal(str)

    def __init__(
        self, choices: Sequence[tuple[str, str]], label: str, parent: QWidget | None = None, wraps: bool = False
    ) -> None:
        """Create the buttons. `choices`: (value, title). `wraps`: break into several lines if there is little room."""
        super().__init__(parent)
        self.setAccessibleName(label)
        self._group = QButtonGroup(self)
        self._values = [value for value, _title in choices]
        self._buttons: dict[str, QPushButton] = {}
        row = self._lines() if wraps else QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for number, (value, title) in enumerate(choices):
            button = SegmentButton(title, self)
            button.setCheckable(True)
            button.setAutoExclusive(True)  # screen readers then announce it as one of several
            button.setObjectName(f"{value}Segment")
            button.setProperty("role", "quiet")
            button.setAccessibleName(f"{label}: {title}")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            self._group.addButton(button, number)
            self._buttons[value] = button
            row.addWidget(button)
        self._group.button(0).setChecked(True)
        self._group.idClicked.connect(self._on_clicked)

    def _lines(self) -> QLayout:
        outer, lines = QVBoxLayout(self), FlowRow(self, 0)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(lines)
        return lines.flow

    @property
    def value(self) -> str:
        """The selected value."""
        return self._values[self._group.checkedId()]

    def set_value(self, value: str) -> None:
        """Select a value without emitting a signal."""
        self._group.button(self._values.index(value)).setChecked(True)

    def focus_value(self) -> None:
        """Give the focus to the selected button, so that a window opens with the focus on the page that it shows."""
        self._buttons[self.value].setFocus(Qt.FocusReason.OtherFocusReason)

    def button(self, value: str) -> QPushButton:
        """Return the button of a value."""
        return self._buttons[value]

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self.chosen.emit(self._values[number])


RUN_BUTTON_MODES = {
    "run": ("play", mark("Run"), "Ctrl ↵"),
    "stop": ("stop", mark("Stop"), "Esc"),
    "stopping": ("stop", mark("Stopping…"), ""),
}


class RunButton(Themed, QPushButton):
    """Icon, label and shortcut in a button of constant width, so that its neighbours do not move."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "primary")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._face = ""
        self._is_compact = False
        self.set_mode("run")

    @property
    def mode(self) -> str:
        """`run`, `stop` or `stopping`."""
        return self._face

    @Slot(str)
    def set_mode(self, face: str) -> None:
        """Show one of RUN_BUTTON_MODES; the button is disabled while stopping."""
        if face == self._face:
            return
        self._face = face
        _icon, word, key = RUN_BUTTON_MODES[face]
        name = tr(word)
        set_up(self, accessible_name=name, tooltip=tooltip(f"{name} ({key})" if key else name))
        self.setEnabled(face != "stopping")
        self.update()

    def set_compact(self, brief: bool) -> None:
        """Show the shortcut only in the tooltip if there is little room."""
        if brief != self._is_compact:
            self._is_compact = brief
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(max(map(self._mode_width, RUN_BUTTON_MODES)), self._theme.px(34))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _mode_parts(self, face: str) -> tuple[str, str, str]:
        """Return icon, label and shortcut of a mode; the shortcut is empty if the button is compact."""
        name, word, key = RUN_BUTTON_MODES[face]
        return name, tr(word), "" if self._is_compact else key

    def _mode_width(self, face: str) -> int:
        """Return the width that a mode needs."""
        _name, word, key = self._mode_parts(face)
        words = QFontMetrics(self._theme.font(13, 600)).horizontalAdvance(word)
        keys = QFontMetrics(self._theme.font(11)).horizontalAdvance(key) + self._theme.px(7) if key else 0
        return self._theme.px(12) + self._theme.px(7) + words + keys + 2 * self._theme.space(14)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)  # paints the button without its text
        self._paint_face(QPainter(self), self._theme)

    def _paint_face(self, painter: QPainter, theme: Theme) -> None:
        name, word, key = self._mode_parts(self._face)
        color = theme.on_accent if self.isEnabled() else theme.muted
        fonts = (theme.font(13, 600), theme.font(11))
        gap, side = theme.px(7), theme.px(12)
        widths = [side, *(self._advance(painter, font, text) for font, text in zip(fonts, (word, key), strict=True))]
        x = (self.width() - sum(widths) - gap * (1 + bool(key))) / 2
        icons.paint_icon(painter, name, color, QRectF(x, (self.height() - side) / 2, side, side))
        painter.setPen(color)
        for font, text, width in zip(fonts, (word, key), widths[1:], strict=True):
            x += gap + (widths[0] if text == word else widths[1])
            painter.setFont(font)
            painter.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
            painter.setOpacity(0.8)

    @staticmethod
    def _advance(painter: QPainter, font: QFont, text: str) -> int:
        painter.setFont(font)
        return painter.fontMetrics().horizontalAdvance(text)
