"""How a chorus is begun: the same prompt so many times at once."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.state.sample_tree import DEFAULT_SAMPLES, MAX_SAMPLES
from app.theme.theme import Theme
from app.widgets.inputs import SpinBox
from app.widgets.plain_text import PlainLabel
from resources.language import tr


class SamplesBar(QWidget):
    """`samplesRequested(count)`: write what is set so many times, each text with a seed of its own."""

    samplesRequested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.count, self.button = SpinBox(self), QPushButton(tr("Chorus"), self)
        self.count.setObjectName("chorusCount")
        self.count.setAccessibleName(tr("How many texts"))
        self.count.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.count.setRange(2, MAX_SAMPLES)
        self.count.setValue(DEFAULT_SAMPLES)
        self.count.setSuffix(tr(" times"))
        self.button.setObjectName("chorusButton")
        self.button.setToolTip(tr("Sample the prompt so many times at once, each with the next seed, as one tree"))
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._label = PlainLabel(tr("The same prompt"), self)
        self._label.setBuddy(self.count)
        self._row = QHBoxLayout(self)
        self._row.setSizeConstraint(QHBoxLayout.SizeConstraint.SetNoConstraint)  # it can be narrower than its words
        for part in (self._label, self.count, self.button):
            self._row.addWidget(part)
        self.button.clicked.connect(self._on_clicked)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self._row.setContentsMargins(theme.px(10), theme.px(3), theme.px(10), theme.px(3))
        self._row.setSpacing(theme.px(8))

    def minimumSizeHint(self) -> QSize:
        """Without its words."""
        sides = self._row.contentsMargins()
        parts = self.count.minimumSizeHint().width() + self._row.spacing() + self.button.minimumSizeHint().width()
        return QSize(sides.left() + parts + sides.right(), self._row.minimumSize().height())

    def fit_to_width(self, width: int) -> None:
        """Without its words where they do not fit into so many pixels."""
        self._label.show()
        self._label.setVisible(self._row.minimumSize().width() <= width)
        self.updateGeometry()

    @Slot()
    def _on_clicked(self) -> None:
        self.samplesRequested.emit(self.count.value())
