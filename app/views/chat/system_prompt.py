"""The system prompt above the conversation: one line, which opens an editor."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.labels import ElidedLabel
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.resources.language import tr

LINES = 5


class SystemPromptBar(Themed, QFrame):
    """Emits `changed(text)` when the user has written another system prompt."""

    changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("systemPromptBar")
        self.toggle = set_up(QToolButton(), name="systemPromptToggle", accessible_name=tr("System prompt"))
        self.toggle.setCheckable(True)
        self.toggle.setCursor(Qt.CursorShape.PointingHandCursor)
        self.toggle.setToolTip(tr("Instructions that the model reads before the conversation"))
        self.toggle.toggled.connect(self._on_toggled)
        self.summary = set_up(ElidedLabel(), role="muted")
        self.editor = set_up(ExactTextEdit(), name="systemPromptEdit", accessible_name=tr("System prompt"))
        self.editor.setTabChangesFocus(True)
        self.editor.setPlaceholderText(tr("For example: Answer in one short sentence."))
        self.editor.textChanged.connect(self._on_edited)
        self.editor.installEventFilter(self)
        self.editor.hide()
        self._head = arrange(QHBoxLayout(), self.toggle, (self.summary, 1), margins=0, spacing=8)
        self._column = arrange(QVBoxLayout(self), self._head, self.editor, spacing=4)
        self._update()

    def show_text(self, text: str) -> None:
        """Show the system prompt of another chat."""
        if text != self.editor.toPlainText():
            self.editor.blockSignals(True)
            self.editor.setPlainText(text)
            self.editor.blockSignals(False)
        self._update()

    def restyle(self, theme: Theme) -> None:
        self._column.setContentsMargins(theme.px(20), theme.space(4), theme.px(26), theme.space(4))
        self.toggle.setFont(theme.font(12))
        self.summary.setFont(theme.font(12))
        self.editor.setFont(theme.font(13))
        self.editor.setFixedHeight(LINES * self.editor.fontMetrics().lineSpacing() + theme.px(12))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Close the editor with Esc."""
        if not isinstance(event, QKeyEvent) or event.key() != Qt.Key.Key_Escape:
            return False
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # otherwise it is a shortcut of the window
        elif event.type() == QEvent.Type.KeyPress:
            self.toggle.setChecked(False)
            self.toggle.setFocus()
        return True

    @Slot(bool)
    def _on_toggled(self, on: bool) -> None:
        self.editor.setVisible(on)
        if on:
            self.editor.setFocus()
        self._update()

    @Slot()
    def _on_edited(self) -> None:
        self._update()
        self.changed.emit(self.editor.toPlainText())

    def _update(self) -> None:
        is_open, text = self.toggle.isChecked(), self.editor.toPlainText()
        self.toggle.setText(f"{tr('System prompt')} {'▾' if is_open else '▸'}")
        self.summary.setText("" if is_open else " ".join(text[:400].split()) or tr("none"))
