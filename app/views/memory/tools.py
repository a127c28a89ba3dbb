"""The memory view's tools: prefixes to and from files."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.theme.theme import Theme
from app.widgets.ask_file import open_file_dialog, open_save_dialog
from app.widgets.menu_button import MenuButton
from resources.language import mark, tr

_FILE_FILTER = mark("Prefixes (*.safetensors)")


class MemoryTools(QWidget):
    """`saveWanted(path)`, `loadWanted(path)`."""

    saveWanted = Signal(str)
    loadWanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        words = tr("Save what this run has read, or start from what was read before")
        actions = ((tr("Save prefix…"), self._choose_save_path), (tr("Load prefix…"), self._choose_load_path))
        self.button = MenuButton("prefixButton", tr("Prefix"), words, actions, self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.button)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self.button.setFont(theme.font(12))

    @Slot()
    def _choose_save_path(self) -> None:
        open_save_dialog(self, tr("Save the prefix"), "prefix.safetensors", tr(_FILE_FILTER), self.saveWanted.emit)

    @Slot()
    def _choose_load_path(self) -> None:
        open_file_dialog(self, tr("Load a prefix"), tr(_FILE_FILTER), self.loadWanted.emit)
