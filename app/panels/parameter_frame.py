"""What holds the rows of settings: a heading with its button, and the rarer ones behind a fold."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.panels.parameter_row import MARGIN
from app.widgets.plain_text import PlainLabel
from resources.language import tr


class ParameterFrame(QWidget):
    """`common` and `advanced` are where rows go; `more_button` unfolds the latter, `reset_button` is the heading's."""

    def __init__(self, heading: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._build(heading)

    @property
    def is_advanced(self) -> bool:
        """Whether the rarer settings are unfolded."""
        return self.more_button.isChecked()

    def set_advanced(self, unfolded: bool) -> None:
        """Unfold or fold the rarer settings."""
        self.more_button.setChecked(unfolded)

    def _build(self, heading_text: str) -> None:
        heading = PlainLabel(heading_text)
        heading.setProperty("role", "heading")
        self.reset_button = QPushButton(tr("Reset"))
        self.reset_button.setObjectName("resetButton")
        self.reset_button.setProperty("role", "quiet")
        self.reset_button.setAccessibleName(tr("Reset all {heading}").format(heading=heading_text.lower()))
        top = QHBoxLayout()
        top.setContentsMargins(MARGIN, 0, MARGIN - 6, 0)
        top.addWidget(heading, 1)
        top.addWidget(self.reset_button)
        self.more_button = QPushButton()
        self.more_button.setCheckable(True)
        self.more_button.setObjectName("moreButton")
        self.more_button.setProperty("role", "quiet")
        self.common, self.advanced = _column(), _column()
        self.advanced_section = QWidget()
        self.advanced_section.setLayout(self.advanced)
        self.advanced_section.hide()
        self._lay_out(top)

    def _lay_out(self, top: QHBoxLayout) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(top)
        column.addLayout(self.common)
        line = QHBoxLayout()
        line.setContentsMargins(MARGIN - 6, 0, MARGIN, 0)
        line.addWidget(self.more_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addLayout(line)
        column.addWidget(self.advanced_section)


def _column() -> QVBoxLayout:
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(4)
    return column
