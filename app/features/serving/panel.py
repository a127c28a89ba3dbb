"""The dialog that serves the selected model: on or off, port, address, key, and an example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.dialog import WINDOW_FRAME, ScrolledDialog
from decodescope.app.widgets.inputs import SpinBox
from decodescope.app.widgets.labels import ElidedLabel, WrappedLabel
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.app.widgets.screen import available_rect
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.resources.language import mark, tr

_INTRODUCTION = mark(
    "Programs on this computer can use the model through the API of OpenAI. Each request appears here as a run. "
    "Requests are answered one after another, and wait while a run of yours is in progress."
)


WIDTH = 620
"""Width of the sentences in pixels."""
EXAMPLE_COLUMNS = 60
"""Width of the example in letters, if the screen is wide enough."""
CALL_LINES = 5
"""Lines of the list of calls that are visible at once."""
MARGIN = 20


class CopyRow(QWidget):
    """A text that cannot be edited, with a button that copies it."""

    def __init__(self, name: str, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.field = set_up(QLineEdit(self), name=name, accessible_name=title)
        self.field.setReadOnly(True)
        self.button = QPushButton(caption(tr("Copy")), self)
        self.button.setAutoDefault(False)
        self.button.setAccessibleName(tr("Copy: {name}").format(name=title))
        self.button.clicked.connect(self._copy)
        arrange(QHBoxLayout(self), (self.field, 1), self.button, margins=0, spacing=8)

    def set_text(self, text: str) -> None:
        """Show a text; an empty one disables the button."""
        self.field.setText(text)
        self.field.setCursorPosition(0)
        self.button.setEnabled(bool(text))

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.field.text())


class ServerDialog(ScrolledDialog):
    """Dialog of the server; not modal, deleted on close, which leaves the server on. Emits `startRequested(port)` and
    `stopRequested`.
    """

    startRequested = Signal(int)
    stopRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "serverDialog", tr("Serve this model"))
        self.introduction = WrappedLabel(tr(_INTRODUCTION), self)
        self.model = ElidedLabel("", self)
        self.port = set_up(SpinBox(), name="serverPort", accessible_name=tr("Port"))
        self.port.setRange(0, 65535)
        self.port.setSpecialValueText(tr("any free one"))
        self.address = CopyRow("serverAddress", tr("Address"), self)
        self.key = CopyRow("serverKey", tr("Key"), self)
        self.example = set_up(
            ExactTextEdit(self), name="serverExample", role="code", accessible_name=tr("Example in Python")
        )
        self.example.setReadOnly(True)
        self.example.setLineWrapMode(ExactTextEdit.LineWrapMode.NoWrap)
        self.example.horizontalScrollBar().rangeChanged.connect(self._fit_example)
        self.copy_example = QPushButton(caption(tr("Copy")), self)
        self.copy_example.setAutoDefault(False)
        self.copy_example.setAccessibleName(tr("Copy: {name}").format(name=tr("Example in Python")))
        self.copy_example.clicked.connect(self._copy_example)
        self.calls = set_up(ExactTextEdit(self), name="serverCalls", accessible_name=tr("Calls"))
        self.calls.setReadOnly(True)
        self.calls.setTabChangesFocus(True)
        self.status = set_up(WrappedLabel("", self), role="muted")
        self.toggle = set_up(QPushButton(caption(tr("Start")), self), name="serverToggle", role="primary")
        self.toggle.clicked.connect(self._on_toggle)
        self._is_on = False
        self._lay_out()
        self.show_off("")

    def _lay_out(self) -> None:
        self._form = form = QFormLayout()
        form.setHorizontalSpacing(18)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for label, part in (
            (tr("Model"), self.model), (tr("Port"), self.port), (tr("Address"), self.address), (tr("Key"), self.key),
        ):  # fmt: skip
            form.addRow(label, part)
        form.setAlignment(self.port, Qt.AlignmentFlag.AlignLeft)
        self._example_row = QWidget(self)
        top = Qt.AlignmentFlag.AlignTop
        arrange(QHBoxLayout(self._example_row), (self.example, 1), (self.copy_example, 0, top), margins=0, spacing=8)
        form.addRow(tr("Example"), self._example_row)
        form.addRow(tr("Calls"), self.calls)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        content, foot = QWidget(self), QWidget(self)
        arrange(
            QVBoxLayout(content), self.introduction, form, self.status, STRETCH, margins=(MARGIN, 16, MARGIN, 4),
            spacing=12,
        )  # fmt: skip
        arrange(QHBoxLayout(foot), STRETCH, self.toggle, buttons, margins=0, spacing=8)
        self.set_content(content, foot)
        content.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fit the window to its contents whenever these change, for example when a sentence gets a second line."""
        if event.type() == QEvent.Type.LayoutRequest:
            QTimer.singleShot(0, self, self.fit_content)
        return super().eventFilter(watched, event)

    def show_on(self, model: str, port: int, address: str, key: str) -> None:
        """Show the address of the running server."""
        self._set_on(True)
        self._show_model(model)
        self.port.setValue(port)
        self.address.set_text(address)
        self.key.set_text(key)
        self.example.setPlainText(
            f"from openai import OpenAI\n\n"
            f'client = OpenAI(\n    base_url="{address}",\n    api_key="{key}",\n)\n'
            f'answer = client.chat.completions.create(\n    model="{model}",\n'
            f'    messages=[{{"role": "user", "content": "Hello"}}],\n)\n'
            f"print(answer.choices[0].message.content)"
        )
        self._fit_example()

    def show_off(self, model: str) -> None:
        """Show that nothing is served; `model` would be. Empty for none."""
        self._set_on(False)
        self._show_model(model or tr("No model is selected."))
        self.toggle.setEnabled(bool(model))
        for row in (self.address, self.key):
            row.set_text("")
        self.example.clear()

    def _show_model(self, text: str) -> None:
        """Show the name of the model; a long one is cut and does not widen the window."""
        self.model.setText(text)
        self.model.setToolTip(tooltip(text))

    def show_calls(self, lines: Sequence[str]) -> None:
        """List the calls so far, the latest last and in sight."""
        self._form.setRowVisible(self.calls, bool(lines))
        self.calls.setPlainText("\n".join(lines))
        bar = self.calls.verticalScrollBar()
        bar.setValue(bar.maximum())

    def show_status(self, text: str, role: str = "muted") -> None:
        """Show what the server does, or why it does not start; `role`: muted, finished or danger."""
        self.status.setText(text)
        self.status.setProperty("role", role)
        self.status.style().unpolish(self.status)
        self.status.style().polish(self.status)
        if text:
            announce(self, text)

    def restyle(self, theme: Theme) -> None:
        self.example.ensurePolished()
        metrics, room = self.example.fontMetrics(), available_rect(self).size() - WINDOW_FRAME
        bar = self._scroll.verticalScrollBar().sizeHint().width()
        width = min(theme.px(WIDTH), room.width() - 2 * MARGIN - bar)
        self.example.setMinimumWidth(min(metrics.horizontalAdvance("0") * EXAMPLE_COLUMNS, width - theme.px(150)))
        self.calls.ensurePolished()
        self.calls.setFixedHeight(CALL_LINES * self.calls.fontMetrics().lineSpacing() + theme.px(24))
        self.port.setFixedWidth(theme.px(120))
        for label in (self.introduction, self.status):
            label.setFixedWidth(width)
        self._fit_example()

    @Slot()
    def _fit_example(self) -> None:
        """Make the example as high as its lines, and a horizontal scroll bar if it needs one."""
        self.example.ensurePolished()
        margins, bar = self.example.viewportMargins(), self.example.horizontalScrollBar()
        frame = self.example.contentsMargins()
        beside = margins.top() + margins.bottom() + frame.top() + frame.bottom()
        document = self.example.document()
        blocks = (document.findBlockByNumber(n) for n in range(document.blockCount()))
        heights = (document.documentLayout().blockBoundingRect(block).height() for block in blocks)
        # the last line has the margin below it; Qt keeps one pixel more free before it scrolls
        lines = math.ceil(sum(heights) + document.documentMargin()) + 1
        room = bar.sizeHint().height() if bar.maximum() > 0 else 0
        self.example.setFixedHeight(lines + beside + room)

    def _set_on(self, is_on: bool) -> None:
        self._is_on = is_on
        self.port.setEnabled(not is_on)
        self.toggle.setEnabled(True)
        self.toggle.setText(caption(tr("Stop") if is_on else tr("Start")))
        for row in (self.address, self.key, self._example_row):
            self._form.setRowVisible(row, is_on)
        self._form.setRowVisible(self.calls, False)

    @Slot()
    def _on_toggle(self) -> None:
        emit = self.stopRequested.emit if self._is_on else partial(self.startRequested.emit, self.port.value())
        emit()

    @Slot()
    def _copy_example(self) -> None:
        QGuiApplication.clipboard().setText(self.example.toPlainText())
