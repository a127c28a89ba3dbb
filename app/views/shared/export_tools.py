"""A view's Export button: its picture as PNG, its figures as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QHBoxLayout, QMessageBox, QWidget

from app.theme.theme import Theme
from app.widgets.ask_file import ask_where_to_save
from app.widgets.menu_button import MenuButton

Table = Sequence[Sequence[object]]


class ExportTools(QWidget):
    """For the right end of the tab bar. `picture()` and `table()` are asked when something is saved."""

    def __init__(
        self, name: str, picture: Callable[[], QPixmap], table: Callable[[], Table], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._name, self._picture, self._table = name, picture, table
        actions = (("Picture (PNG)…", self._ask_png), ("Figures (CSV)…", self._ask_csv))
        self.button = MenuButton("exportButton", "Export", "Save the picture or the figures", actions, self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.button)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self.button.setFont(theme.font(12))

    @Slot()
    def _ask_png(self) -> None:
        self._ask("Save the picture", "png", "Pictures (*.png)", self.save_png)

    @Slot()
    def _ask_csv(self) -> None:
        self._ask("Save the figures", "csv", "Tables (*.csv)", self.save_csv)

    def _ask(self, title: str, suffix: str, kinds: str, slot: Callable[[str], None]) -> None:
        ask_where_to_save(self, title, f"{self._name}.{suffix}", kinds, slot)

    @Slot(str)
    def save_png(self, path: str) -> None:
        """Write the picture."""
        if not self._picture().save(path, "PNG"):
            self._complain(path, "the file could not be written")

    @Slot(str)
    def save_csv(self, path: str) -> None:
        """Write the figures, a head first."""
        try:
            with Path(path).open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(self._table())
        except OSError as error:
            self._complain(path, error.strerror or str(error))

    def _complain(self, path: str, cause: str) -> None:
        box = QMessageBox(
            QMessageBox.Icon.Warning, "Not saved", f"{path} was not saved: {cause}.", parent=self.window()
        )
        box.setInformativeText("Choose another folder or another name.")
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()
