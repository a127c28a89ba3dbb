"""A short row of choices of which exactly one is on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLayout, QPushButton, QVBoxLayout, QWidget

from app.widgets.flow_layout import FlowRow


class SegmentButton(QPushButton):
    """Asks for the room of its words in bold, as they are when it is on: nothing moves or is cut when it is chosen."""

    def sizeHint(self) -> QSize:
        bold = QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold)
        size, text = super().sizeHint(), self.text()
        more = QFontMetrics(bold).horizontalAdvance(text) - self.fontMetrics().horizontalAdvance(text)
        return QSize(size.width() + max(0, more) + 2, size.height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class SegmentedControl(QWidget):
    """Exclusive buttons side by side; `chosen` tells the value of the one the user pressed."""

    chosen = Signal(str)

    def __init__(
        self, choices: Sequence[tuple[str, str]], label: str, parent: QWidget | None = None, wraps: bool = False
    ) -> None:
        """`choices`: (value, title). One that `wraps` fills several lines where it is narrow."""
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
            button.setAutoExclusive(True)  # screen readers then call it one of several
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
        """The value that is on."""
        return self._values[self._group.checkedId()]

    def set_value(self, value: str) -> None:
        """Switch that one on, without a signal."""
        self._group.button(self._values.index(value)).setChecked(True)

    def button(self, value: str) -> QPushButton:
        """The button of one value."""
        return self._buttons[value]

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self.chosen.emit(self._values[number])
