"""Layout shared by the labs' pages: a narrow column of settings beside a scrolling column."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QLabel, QScrollArea, QSpinBox, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.inputs import ComboBox
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.screen import available_rect

MAX_SHARE = 0.46
"""Largest part of the screen's width for the column."""


class SettingsColumn(Themed, QScrollArea):
    """A scrolling column of settings: widgets of `page` in the layout `column`."""

    def __init__(self, label: str, width: int, parent: QWidget | None = None) -> None:
        """Create the column; `width` is in pixels at 100 %."""
        super().__init__(parent)
        self._width = width
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(label)
        self.page = QWidget(self)
        self.column = arrange(QVBoxLayout(self.page), margins=(0, 0, 12, 0), spacing=4)
        self.setWidget(self.page)

    def restyle(self, theme: Theme) -> None:
        self.setFixedWidth(min(theme.px(self._width), round(MAX_SHARE * available_rect(self).width())))

    def make_heading(self, text: str) -> QLabel:
        """Return a heading for the settings below it."""
        return set_up(PlainLabel(text.upper(), self.page), role="heading")

    def make_combo(self) -> QComboBox:
        """Return a combo box that is not wider than the column."""
        combo = ComboBox(self.page)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(8)
        return combo

    def editor_label(self, text: str, editor: QComboBox | QSpinBox, name: str) -> QLabel:
        """Return the label of an editor, and set the editor's object name to `name`."""
        label = set_up(PlainLabel(text, self.page), role="muted")
        label.setWordWrap(True)
        label.setBuddy(editor)
        editor.setObjectName(name)
        editor.setAccessibleName(text)
        return label


def lay_out_beside_settings(page: QWidget, settings: SettingsColumn, name: str) -> QVBoxLayout:
    """Lay out `page` with its settings on the left and a scrolling column on the right; return that column's layout.
    `name` is the accessible name of the scroll area.
    """
    shown = QWidget(page)
    column = arrange(QVBoxLayout(shown), margins=(0, 0, 8, 0), spacing=12)
    scroll = set_up(QScrollArea(page), accessible_name=name)
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setWidget(shown)
    arrange(QHBoxLayout(page), settings, (scroll, 1), margins=0, spacing=16)
    return column
