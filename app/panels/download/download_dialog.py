"""Getting a model: a search of the hub, what it finds or what is on the disk, and the page on the picked one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.panels.download.model_page import ModelPage
from app.panels.download.model_rows import HubModelList, HubModelRow
from app.theme.theme import Theme
from app.widgets.dialog import BaseDialog
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr

_COLUMNS, _LINES = 104, 27
"""What is seen at once, in letters."""


class DownloadDialog(BaseDialog):
    """`searchRequested(text)`, `folderRequested`; the list says which model is picked, the page what is to be done with
    it."""

    searchRequested = Signal(str)
    folderRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("downloadDialog")
        self.setWindowTitle(tr("Get a model"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._make_search()
        self.list, self.page = HubModelList(self), ModelPage(self)
        self.note = WrappedLabel()
        self.note.setObjectName("downloadNote")
        self.note.setProperty("role", "muted")
        self.hint = WrappedLabel(
            tr(
                "Search the Hugging Face hub by a part of a name, for instance “TinyStories”. For every model found it "
                "is said whether it fits into this machine's memory, before any of it is downloaded. A download takes "
                "the weights in safetensors form, the configuration and the tokenizer; no program code. Nothing is "
                "asked of the network until you search."
            ),
            self,
        )
        self.hint.setObjectName("downloadHint")
        self.hint.setProperty("role", "muted")
        self._empty = QWidget(self)
        self._lay_out()

    def show_rows(self, rows: Sequence[HubModelRow], note: str) -> None:
        """List these models; `note` says what they are, or why there are none."""
        self.list.show_rows(rows)
        self.note.setText(note)
        self.note.setVisible(bool(note))
        self.list.setVisible(bool(rows))
        self.page.setVisible(bool(rows))
        self.hint.setVisible(not rows)
        self._empty.setVisible(not rows)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.list.set_theme(theme)
        self.page.set_theme(theme)

    def _make_search(self) -> None:
        self.field = QLineEdit(self)
        self.field.setObjectName("downloadSearch")
        self.field.setPlaceholderText(tr("Part of a name, or owner/name; nothing for the most downloaded"))
        self.field.setAccessibleName(tr("Search the hub"))
        self.field.setClearButtonEnabled(True)
        self.field.returnPressed.connect(self._search)
        self.button = QPushButton(tr("Search the hub"), self)
        self.button.setObjectName("searchHub")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._search)

    def _lay_out(self) -> None:
        buttons = QDialogButtonBox(self)
        folder = buttons.addButton(tr("Choose a folder on this disk…"), QDialogButtonBox.ButtonRole.ActionRole)
        folder.setObjectName("chooseFolder")
        folder.clicked.connect(self.folderRequested)
        buttons.addButton(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        for button in buttons.buttons():
            if isinstance(button, QPushButton):
                button.setAutoDefault(False)
        above, both, left = QHBoxLayout(), QHBoxLayout(), QVBoxLayout()
        above.addWidget(self.field, 1)
        above.addWidget(self.button)
        left.addWidget(self.note)
        left.addWidget(self.list, 1)
        both.setSpacing(18)
        both.addLayout(left, 5)
        both.addWidget(self.page, 6)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(12)
        column.addLayout(above)
        column.addWidget(self.hint)
        column.addLayout(both, 1)
        column.addWidget(self._empty, 1)
        column.addWidget(buttons)
        self.ensurePolished()
        metrics = self.field.fontMetrics()
        self.resize(metrics.horizontalAdvance("x") * _COLUMNS + 80, metrics.lineSpacing() * _LINES + 110)

    @Slot()
    def _search(self) -> None:
        self.searchRequested.emit(self.field.text().strip())
