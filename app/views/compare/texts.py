"""The texts of a comparison side by side."""

from __future__ import annotations

import html

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.compare.comparison import Comparison, ids, said
from app.widgets.flow_layout import clear

_TEXT_WIDTH = 140


class TextCards(QWidget):
    """The texts side by side; where one parts from the first it is marked."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._columns: list[QWidget] = []
        self.texts: list[QLabel] = []

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes; texts are written anew."""
        self._theme = theme
        self._grid.setSpacing(theme.px(20))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """As many beside each other as there is room for."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        beside = max(1, min(len(self._columns), self.width() // self._theme.px(_TEXT_WIDTH)))
        for number, column in enumerate(self._columns):
            self._grid.addWidget(column, number // beside, number % beside)
        for number in range(max(self._grid.columnCount(), beside)):
            self._grid.setColumnStretch(number, 1 if number < beside else 0)

    def minimumSizeHint(self) -> QSize:
        """One text wide."""
        return QSize(self._theme.px(_TEXT_WIDTH), super().minimumSizeHint().height())

    def show_texts(self, comparison: Comparison) -> None:
        """A column for every result."""
        clear(self._grid)
        self.texts, self._columns = [], []
        for entry, run in comparison.runs:
            column = QWidget(self)
            inner = QVBoxLayout(column)
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setSpacing(self._theme.px(6))
            for text, role in ((entry.candidate.title.upper(), "heading"), (said(comparison, entry), "muted")):
                label = QLabel(text, column, wordWrap=True)
                label.setTextFormat(Qt.TextFormat.PlainText)
                label.setProperty("role", role)
                inner.addWidget(label)
            label = QLabel(marked_text(comparison.reference, run, self._theme), column, wordWrap=True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
            inner.addWidget(label, 1)
            self.texts.append(label)
            self._columns.append(column)
        self._arrange()


def marked_text(reference: Run | None, run: Run, theme: Theme) -> str:
    """The text as rich text: what it shares with the reference is muted, the token that parts them is marked."""
    tokens = run.sequences[0].tokens
    size = f"font-size: {theme.px(14)}px;"
    if reference is None or reference is run:
        return f'<p style="{size} line-height: 140%;">{_escaped(run.sequences[0].text)}</p>'
    own, other = ids(run), ids(reference)
    place = next((n for n, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), min(len(own), len(other)))
    before, at, after = ("".join(token.text for token in part) for part in
                         (tokens[:place], tokens[place : place + 1], tokens[place + 1 :]))  # fmt: skip
    mark = f'<span style="background: {theme.selection}; color: {theme.text};">{_escaped(at)}</span>' if at else ""
    return (
        f'<p style="{size} line-height: 140%;"><span style="color: {theme.muted};">{_escaped(before)}</span>'
        f"{mark}{_escaped(after)}</p>"
    )


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")
