"""One way to lower latency: what it is, what its figures show, its plots, and what was left out and why."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.state.speed import SpeedResults
from app.theme.theme import Theme
from app.views.compare.charts import ChartGrid
from app.views.labs.speed.figures import technique_plots
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from core.labs import speed
from resources.language import tr


class TechniqueCard(QFrame):
    """Hidden until something came of its way."""

    def __init__(self, way: speed.Way, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"speedCard.{way}")
        self.way = way
        self.sentence = WrappedLabel("", self)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.charts = ChartGrid(self)
        self.skipped = WrappedLabel("", self)
        self.skipped.setProperty("role", "muted")
        self.skipped.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        heading = PlainLabel(tr(speed.TITLES[way]).upper(), self)
        heading.setProperty("role", "heading")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(8)
        for part in (heading, self.sentence, self.charts, self.skipped):
            column.addWidget(part)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.charts.set_theme(theme)

    def show_speeds(self, speeds: SpeedResults) -> None:
        """What came of its rows so far."""
        found, left = speeds.measurements_of(self.way), speeds.skipped_of(self.way)
        self.sentence.setText(str(speed.explain_way(self.way, found)) if len(found) > 1 else "")
        self.sentence.setVisible(bool(self.sentence.text()))
        self.charts.show_figures(technique_plots(self.way, found))
        self.charts.setVisible(bool(found))
        told = tr("{row} was left out: {reason}")
        self.skipped.setText("\n".join(told.format(row=speed.row_title(row), reason=reason) for row, reason in left))
        self.skipped.setVisible(bool(left))
        self.setVisible(bool(found or left))
