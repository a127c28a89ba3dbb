"""What a model's weights are kept as: each kind with what it takes and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QRadioButton, QVBoxLayout, QWidget

from app.panels.weights_memory import WeightsMemorySelector
from app.widgets.plain_text import caption, window_title
from app.widgets.scrolled import ScrolledDialog
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr

_INDENT = 22
"""Points by which a sentence stands behind its button's circle."""


class WeightsOption(NamedTuple):
    """One kind of weights: what settings call it, its title, and a sentence on its bytes and speed."""

    kind: str
    title: str
    about: str
    reason: str = ""
    """Why it cannot be chosen; empty when it can."""


class WeightsDialog(ScrolledDialog):
    """`chosen(kind)` and `memoryChosen(MiB)` at once; `measureRequested` when somebody asks what a packed kind costs."""

    chosen = Signal(str)
    memoryChosen = Signal(int)
    measureRequested = Signal()

    def __init__(
        self,
        title: str,
        lines: Sequence[WeightsOption],
        kind: str,
        memory: WeightsMemorySelector,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("weightsDialog")
        self.setWindowTitle(window_title(title))
        self._lines = {line.kind: line for line in lines}
        self._buttons: dict[str, QRadioButton] = {}
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(20, 16, 20, 8)
        self._column.setSpacing(4)
        for line in lines:
            self._add(line, line.kind == kind)
        self.memory = memory
        memory.changed.connect(self.memoryChosen)
        self._column.addWidget(memory)
        self._column.addSpacing(8)
        self.foot = WrappedLabel(
            tr("Measuring scores the prompt twice: with these weights, and with the file's own in float32 beside them.")
        )
        self.foot.setProperty("role", "muted")
        self._column.addWidget(self.foot)
        self._column.addStretch(1)
        self.set_content(content, self._footer())
        self._show_measure()
        self.setMinimumWidth(460)

    @property
    def kind(self) -> str:
        """The one that is chosen."""
        return next((kind for kind, button in self._buttons.items() if button.isChecked()), "auto")

    def choose(self, kind: str) -> None:
        """Choose by name."""
        self._buttons[kind].setChecked(True)

    def _add(self, line: WeightsOption, is_chosen: bool) -> None:
        button = QRadioButton(caption(line.title))
        button.setObjectName(f"weights.{line.kind}")
        button.setChecked(is_chosen)
        button.setEnabled(not line.reason)
        button.setAccessibleDescription(line.reason or line.about)
        button.toggled.connect(self._on_toggled)
        about = WrappedLabel(line.reason or line.about)
        about.setProperty("role", "muted")
        below = QVBoxLayout()
        below.setContentsMargins(_INDENT, 0, 0, 6)
        below.addWidget(about)
        self._buttons[line.kind] = button
        self._column.addWidget(button)
        self._column.addLayout(below)

    def _footer(self) -> QWidget:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self.measure_button = buttons.addButton(tr("Measure what it costs"), QDialogButtonBox.ButtonRole.ActionRole)
        self.measure_button.setObjectName("measureWeights")
        self.measure_button.clicked.connect(self._on_measure)
        buttons.rejected.connect(self.close)
        return buttons

    def _show_measure(self) -> None:
        self.measure_button.setEnabled(self.kind not in ("auto", "float32"))
        is_packed = self.kind in ("int8", "int4")
        self.memory.set_reason(
            tr("Packed weights are all in memory; choose float32 or bfloat16 to leave some on the disk.")
            if is_packed
            else ""
        )

    @Slot(bool)
    def _on_toggled(self, on: bool) -> None:
        if on:
            self._show_measure()
            self.chosen.emit(self.kind)

    @Slot()
    def _on_measure(self) -> None:
        self.close()
        self.measureRequested.emit()
