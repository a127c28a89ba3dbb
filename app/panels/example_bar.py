"""A line above the prompt while an example is set: its title, and the way back to the user's own settings."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.panels.parameter_row import MARGIN
from app.widgets.elided_label import ElidedLabel
from resources.language import tr


class ExampleBar(QWidget):
    """`backRequested`: the button was pressed."""

    backRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("exampleBar")
        self.title = ElidedLabel()
        self.title.setProperty("role", "muted")
        self.back = QPushButton(tr("Back to my settings"))
        self.back.setObjectName("leaveExample")
        self.back.setProperty("role", "quiet")
        self.back.setToolTip(
            tr("Restore the model, strategy, cache, parameters, seed and prompt from before the example")
        )
        self.back.clicked.connect(self.backRequested)
        row = QHBoxLayout(self)
        row.setContentsMargins(MARGIN, 0, MARGIN, 0)
        row.addWidget(self.title, 1)
        row.addWidget(self.back)
        self.hide()

    def show_example(self, title: str) -> None:
        """Name the example."""
        self.title.setText(tr("Example: {title}").format(title=title))
        self.show()
