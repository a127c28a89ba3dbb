"""What the labs' pages have in common: a narrow column of settings, and beside it what scrolls."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QLabel, QScrollArea, QSpinBox, QVBoxLayout, QWidget

from app.theme.theme import Theme
from app.widgets.inputs import ComboBox
from app.widgets.plain_text import PlainLabel


class SettingsColumn(QScrollArea):
    """Settings below each other on `page`, in its `column`."""

    def __init__(self, label: str, width: int, parent: QWidget | None = None) -> None:
        """`width`: pixels at 100 %."""
        super().__init__(parent)
        self._width = width
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(label)
        self.page = QWidget(self)
        self.column = QVBoxLayout(self.page)
        self.column.setContentsMargins(0, 0, 12, 0)
        self.column.setSpacing(4)
        self.setWidget(self.page)

    def set_theme(self, theme: Theme) -> None:
        """Take other sizes."""
        self.setFixedWidth(theme.px(self._width))

    def make_heading(self, text: str) -> QLabel:
        """Names what follows."""
        label = PlainLabel(text.upper(), self.page)
        label.setProperty("role", "heading")
        return label

    def make_combo(self) -> QComboBox:
        """One that is no wider than the column, whatever can be chosen."""
        combo = ComboBox(self.page)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(8)
        return combo

    def editor_label(self, text: str, editor: QComboBox | QSpinBox, name: str) -> QLabel:
        """What stands above an editor, which is called `name` by the program."""
        label = PlainLabel(text, self.page)
        label.setWordWrap(True)
        label.setProperty("role", "muted")
        label.setBuddy(editor)
        editor.setObjectName(name)
        editor.setAccessibleName(text)
        return label


def lay_out_beside_settings(page: QWidget, settings: SettingsColumn, name: str) -> QVBoxLayout:
    """Lay `page` out: its settings to the left, beside them what scrolls, which is called `name` by a screen reader.
    Gives back the column of that."""
    shown = QWidget(page)
    column = QVBoxLayout(shown)
    column.setContentsMargins(0, 0, 8, 0)
    column.setSpacing(12)
    scroll = QScrollArea(page)
    scroll.setAccessibleName(name)
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setWidget(shown)
    row = QHBoxLayout(page)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(16)
    row.addWidget(settings)
    row.addWidget(scroll, 1)
    return column
