"""Which of the compared runs the other views show, and the way back to the run that the comparison began from."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QPushButton, QWidget

from app.state.comparison.results import ComparisonEntry
from app.state.run import Run
from app.theme.theme import Theme
from app.widgets.plain_text import PlainLabel, caption
from core import strategies
from resources.language import tr, trc


class BackToBaseRow(QWidget):
    """A line with a button; hidden while the other views show the run that the comparison began from."""

    clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = PlainLabel(self, wordWrap=True)
        self._words.setProperty("role", "muted")
        self.button = QPushButton(trc("to the other run", "Back"), self)
        self.button.setObjectName("compareBack")
        self.button.setProperty("role", "quiet")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.button.clicked.connect(self.clicked)
        row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._words, 1)
        row.addWidget(self.button)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self.button.setFont(theme.font(12, 500))

    def show_run(self, shown: ComparisonEntry | None, base: Run | None) -> None:
        """`shown` is the result in the other views, if it is one; `base` is where the button leads."""
        self.setVisible(shown is not None and base is not None and shown.result is not base)
        if shown is not None and base is not None:
            self._words.setText(tr("The other views show “{title}”.").format(title=shown.candidate.title))
            strategy = strategies.registry.get(base.request.strategy)  # a recorded run's may not be here
            title = tr(strategy.title) if strategy is not None else base.request.strategy
            self.button.setText(caption(tr("Back to {title}, seed {seed}").format(title=title, seed=base.request.seed)))
