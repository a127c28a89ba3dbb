"""The window that shows a run as code, to be copied."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from app.theme.tabs import tab_distance
from app.widgets.dialog import BaseDialog
from app.widgets.exact_text import ExactTextEdit
from app.widgets.segmented import SegmentedControl
from app.widgets.wrapped_label import WrappedLabel
from resources.language import mark, tr

TITLES = {"transformers": mark("For transformers"), "core": mark("For Decodescope")}
_COLUMNS, _LINES = 92, 24
"""What is seen at once."""


class CodeDialog(BaseDialog):
    """One script at a time of `scripts` (by flavour); `reason` says why there is but one, where there is."""

    def __init__(self, scripts: Mapping[str, str], reason: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("codeDialog")
        self.setWindowTitle(tr("Copy as code"))
        self._scripts = dict(scripts)
        self.flavour = SegmentedControl([(name, tr(TITLES[name])) for name in scripts], tr("Code"), self)
        self.flavour.setVisible(len(scripts) > 1)
        self.flavour.chosen.connect(self.show_flavour)
        self.reason = WrappedLabel(reason)
        self.reason.setProperty("role", "muted")
        self.reason.setVisible(bool(reason))
        self.code = ExactTextEdit(self)
        self.code.setObjectName("code")
        self.code.setProperty("role", "code")
        self.code.setAccessibleName(tr("Code of the run"))
        self.code.setReadOnly(True)
        self.code.setTabStopDistance(tab_distance(self.code.font()))
        self.code.setLineWrapMode(ExactTextEdit.LineWrapMode.NoWrap)
        self._lay_out()
        self._resize_to_script()
        self.show_flavour(self.flavour.value)

    def _lay_out(self) -> None:
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self.copy = self.buttons.addButton(tr("Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy.setDefault(True)
        self.copy.clicked.connect(self._on_copy)
        self.buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(12)
        column.addWidget(self.flavour, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.reason)
        column.addWidget(self.code, 1)
        column.addWidget(self.buttons)

    def _resize_to_script(self) -> None:
        """As large as a usual script needs."""
        self.code.ensurePolished()
        metrics = self.code.fontMetrics()
        self.resize(metrics.horizontalAdvance("x") * _COLUMNS + 80, metrics.lineSpacing() * _LINES + 150)

    @Slot(str)
    def show_flavour(self, name: str) -> None:
        """Show the script of that flavour."""
        self.code.setPlainText(self._scripts[name])

    @Slot()
    def _on_copy(self) -> None:
        """The button says that it is done; there is nothing else to be seen of it."""
        QGuiApplication.clipboard().setText(self.code.toPlainText())
        self.copy.setText(tr("Copied"))
