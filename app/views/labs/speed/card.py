"""One way to lower latency: what it is, what its figures show, its plots, and what was left out and why."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.state.speed import Speeds
from app.theme.theme import Theme
from app.views.compare.charts import Charts
from app.views.labs.speed.figures import figures_of
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from core.labs import speed
from resources.language import tr


class WayCard(QFrame):
    """Hidden until something came of its way."""

    def __init__(self, way: speed.Way, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"speedCard.{way}")
        self.way = way
        self.sentence = WrappedLabel("", self)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.charts = Charts(self)
        self.left = WrappedLabel("", self)
        self.left.setProperty("role", "muted")
        self.left.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        heading = PlainLabel(tr(speed.TITLES[way]).upper(), self)
        heading.setProperty("role", "heading")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(8)
        for part in (heading, self.sentence, self.charts, self.left):
            column.addWidget(part)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.charts.set_theme(theme)

    def show_speeds(self, speeds: Speeds) -> None:
        """What came of its rows so far."""
        found, left = speeds.of(self.way), speeds.left_of(self.way)
        self.sentence.setText(str(speed.explain_way(self.way, found)) if len(found) > 1 else "")
        self.sentence.setVisible(bool(self.sentence.text()))
        self.charts.show_figures(figures_of(self.way, found))
        self.charts.setVisible(bool(found))
        told = tr("{row} was left out: {reason}")
        self.left.setText("\n".join(told.format(row=speed.row_title(row), reason=reason) for row, reason in left))
        self.left.setVisible(bool(left))
        self.setVisible(bool(found or left))
