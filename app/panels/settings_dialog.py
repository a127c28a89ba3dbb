"""The settings window: looks, where models run, what single models are allowed."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QFormLayout, QVBoxLayout, QWidget

from app.panels.settings.appearance import AppearanceSettings
from app.panels.settings.compute import ComputeSettings
from app.panels.settings.fields import make_remark
from app.panels.settings.history import HistorySettings
from app.panels.settings.memory import MemorySettings
from app.panels.settings.permissions import PermissionSettings
from app.panels.stage.stage_settings import StageSettings
from app.state.decode_backend import DecodeBackend
from app.storage.settings import Settings
from app.widgets.plain_text import PlainLabel
from app.widgets.scrolled import ScrolledDialog
from resources.language import tr


class SettingsDialog(ScrolledDialog):
    """Changes apply at once; `changed` names the section that did."""

    changed = Signal(str)
    forgetAllRequested = Signal()
    languageChosen = Signal(str)

    def __init__(self, settings: Settings, folder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("settingsDialog")
        self.setWindowTitle(tr("Settings"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._settings = settings
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(20, 18, 20, 8)
        column.setSpacing(8)
        for title, part in self._parts():
            heading = PlainLabel(title)
            heading.setProperty("role", "heading")
            column.addWidget(heading)
            column.addWidget(part)
            column.addSpacing(8)
        column.addWidget(make_remark(tr("Kept in {folder}").format(folder=folder)))
        self.set_content(content, self._footer())
        self._align_fields()

    def _parts(self) -> Iterator[tuple[str, QWidget]]:
        """Headings, and what stands below each."""
        kept = self._settings
        look, stage = AppearanceSettings(kept.appearance), StageSettings(kept.appearance)
        history, self.permissions = HistorySettings(kept.history), PermissionSettings(kept.models)
        self.compute, memory = ComputeSettings(kept.compute), MemorySettings(kept.compute)
        for part in (look, self.compute, memory, history, self.permissions):
            part.changed.connect(self.changed)
        stage.changed.connect(lambda: self.changed.emit("stage"))
        look.languageChosen.connect(self.languageChosen)
        history.forgetAllRequested.connect(self.forgetAllRequested)
        yield tr("APPEARANCE"), look
        yield tr("PRESENTING"), stage
        yield tr("WHERE MODELS RUN"), self.compute
        yield tr("MEMORY"), memory
        yield tr("HISTORY"), history
        yield tr("WHAT SINGLE MODELS MAY DO"), self.permissions

    def _footer(self) -> QWidget:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        return buttons

    @Slot(object)
    def show_backend(self, backend: DecodeBackend | None) -> None:
        """Who takes the steps of the model in memory."""
        self.compute.show_backend(backend)

    @property
    def scroll_position(self) -> int:
        """How far down the settings are scrolled, in pixels."""
        return self._scroll.verticalScrollBar().value()

    def scroll_to(self, position: int) -> None:
        """Show the settings that stand so far down."""
        self._scroll.verticalScrollBar().setValue(position)

    def _align_fields(self) -> None:
        """Let the fields of all sections begin at one edge."""
        forms = self.findChildren(QFormLayout)
        items = [form.itemAt(row, QFormLayout.ItemRole.LabelRole) for form in forms for row in range(form.rowCount())]
        labels = [label for item in items if item is not None and (label := item.widget()) is not None]
        for label in labels:
            label.ensurePolished()
        widest = max(label.sizeHint().width() for label in labels)
        for label in labels:
            label.setMinimumWidth(widest)
