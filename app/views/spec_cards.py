"""Below a round: what the draft cost and gained, where it was accepted, how long it was, what checking costs."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.theme import Theme, theme_for
from app.views.spec_model import Rounds, worth
from app.views.wording import percent
from app.widgets.columns import Column, Columns
from core.events import Finished

LATEST = 40
"""Rounds the chart of draft lengths shows."""


class SpecCards(QWidget):
    """Four small cards side by side."""

    measureWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._drafted: Finished | None = None
        self._plain: Finished | None = None
        self._grid = QGridLayout()
        self._cells: list[list[QLabel]] = []
        self._button = QPushButton("Measure without draft", self, objectName="measurePlain")
        self._button.setToolTip("Runs the same prompt with the same settings and no draft, and puts the figures beside")
        self._button.clicked.connect(self.measureWanted)
        self.positions = Columns("Accepted by position in the draft", self)
        self.lengths = Columns("Draft length by round", self)
        self.costs = Columns("Cost of checking several tokens at once", self)
        self._titles: list[QLabel] = []
        self._row = QHBoxLayout(self)
        self._add("Was it worth it?", self._table(), 3)
        self._add("Accepted by position", self.positions, 2)
        self._add("Draft length", self.lengths, 2)
        self._add("Checking cost here", self.costs, 2)
        self._show_worth()

    def _add(self, title: str, part: QWidget, stretch: int) -> None:
        heading = QLabel(title.upper(), self)
        heading.setProperty("role", "heading")
        self._titles.append(heading)
        column = QVBoxLayout()
        column.addWidget(heading)
        column.addWidget(part, 1)
        self._row.addLayout(column, stretch)

    def _table(self) -> QWidget:
        table = QWidget(self)
        outer = QVBoxLayout(table)
        outer.setContentsMargins(0, 0, 0, 0)
        self._grid.setColumnStretch(0, 1)
        for row, texts in enumerate([("", "plain", "drafted"), *worth(None, None)]):
            cells = [QLabel(text, table) for text in texts]
            for column, label in enumerate(cells):
                label.setAlignment(Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft)
                label.setProperty("role", "muted" if row == 0 or column == 0 else "")
                self._grid.addWidget(label, row, column)
            self._cells.append(cells)
        outer.addLayout(self._grid)
        outer.addSpacing(6)
        outer.addWidget(self._button, 0, Qt.AlignmentFlag.AlignLeft)
        outer.addStretch(1)
        return table

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._row.setContentsMargins(theme.px(20), theme.px(8), theme.px(20), theme.px(8))
        self._row.setSpacing(theme.px(28))
        self._grid.setVerticalSpacing(theme.px(2))
        self._grid.setHorizontalSpacing(theme.px(16))
        for chart in (self.positions, self.lengths, self.costs):
            chart.set_theme(theme)
        for label in (label for cells in self._cells for label in cells):
            label.setFont(theme.font(12, tabular=True))

    def clear(self) -> None:
        """Another run: nothing is known of it."""
        self._drafted = self._plain = None
        self._show_worth()

    def show_rounds(self, rounds: Rounds, shown: int, chosen: int, finished: Finished | None) -> None:
        """Draw the charts for the first `shown` rounds."""
        self._drafted = finished
        self._show_worth()
        kept = rounds.by_position()
        self.positions.set_columns(
            [Column(share, str(depth), f"position {depth}: {percent(share)} accepted") for depth, share in kept],
            top=1.0,
        )
        latest = list(enumerate(rounds.rounds[:shown]))[-LATEST:]
        marked = next((i for i, (number, _) in enumerate(latest) if number == chosen), -1)
        self.lengths.set_columns(
            [Column(entry.length, str(n + 1), f"round {n + 1}: {entry.length} drafted") for n, entry in latest],
            marked=marked,
        )
        self.costs.set_columns(
            [Column(ratio, str(size), f"{size} tokens at once: ×{ratio:.2f} of one") for size, ratio in rounds.curve],
            level=1.0,
        )

    def show_plain(self, plain: Finished | None) -> None:
        """Put figures without a draft beside the drafted ones."""
        self._plain = plain
        self._show_worth()

    def set_measuring(self, on: bool) -> None:
        """While the comparison runs."""
        self._button.setEnabled(not on)
        self._button.setText("Measuring…" if on else "Measure without draft")

    def _show_worth(self) -> None:
        for cells, texts in zip(self._cells[1:], worth(self._drafted, self._plain), strict=True):
            for label, text in zip(cells, texts, strict=True):
                label.setText(text)
        self._button.setEnabled(self._drafted is not None)
