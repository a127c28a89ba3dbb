"""The speculation view's tools: which round is shown, one back, one on."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from app.theme.theme import Theme
from app.widgets.plain_text import PlainLabel, tooltip
from resources.language import tr


class SpeculationTools(QWidget):
    """For the right end of the tab bar."""

    stepped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.label = PlainLabel("", self)
        self.label.setProperty("role", "muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.label)
        for text, name, slot in (("‹", tr("Previous round"), self._back), ("›", tr("Next round"), self._on)):
            button = QToolButton(self)
            button.setText(text)
            button.setAccessibleName(name)
            button.setToolTip(tooltip(name))
            button.clicked.connect(slot)
            row.addWidget(button)

    @Slot()
    def _back(self) -> None:
        self.stepped.emit(-1)

    @Slot()
    def _on(self) -> None:
        self.stepped.emit(1)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        for button in self.findChildren(QToolButton):
            button.setFont(theme.font(12))
