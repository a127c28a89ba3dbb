"""The window that the preference lab's room stands in, beside the main one."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from app.theme.theme import Theme
from app.views.labs.preference.view import PreferenceView
from app.views.labs.speed.view import SpeedView
from app.widgets.dialog import BaseDialog
from resources.language import tr


class PreferenceLabDialog(BaseDialog):
    """Not modal: runs go on in the main window meanwhile."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preferenceLab")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Preference lab"))
        self.view = PreferenceView(self)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        buttons.setContentsMargins(20, 0, 20, 16)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.view)
        column.addWidget(buttons)
        self.resize(960, 720)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.view.set_theme(theme)

    def words_changed(self) -> None:
        """Its sentences are the same at every depth."""


SIZE = (1080, 760)
"""Pixels at 100 %, where the screen has room."""


class SpeedLabDialog(BaseDialog):
    """Not modal; goes when it is closed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("speedLab")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Speed lab: the ways to lower latency, measured"))
        self.view = SpeedView(self)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(14)
        column.addWidget(self.view, 1)
        column.addWidget(buttons)
        self.resize(*SIZE)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.view.set_theme(theme)

    def words_changed(self) -> None:
        """Another depth of words."""
        self.view.wording_changed()
