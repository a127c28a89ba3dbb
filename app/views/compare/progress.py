"""How far a comparison has come, and how long the rest will take."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar, QVBoxLayout, QWidget

from app.session.side_runs import MeasurementProgress
from app.theme.theme import Theme
from app.views.compare.comparison_wording import progress_text
from app.widgets.plain_text import PlainLabel
from resources.language import tr


class ProgressRow(QWidget):
    """A bar with its words below it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar, self.words = QProgressBar(self, textVisible=False), PlainLabel(self)
        self.bar.setObjectName("compareProgress")
        self.bar.setAccessibleName(tr("Runs that are done"))
        self.words.setProperty("role", "muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        for part in (self.bar, self.words):
            self._column.addWidget(part)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self._column.setSpacing(theme.px(4))

    def show_progress(self, progress: MeasurementProgress) -> None:
        """So far it has come."""
        self.bar.setMaximum(max(1, progress.total))
        self.bar.setValue(progress.done)
        self.words.setText(progress_text(progress))
