"""Above the text: the sounds and pictures that the run read, with the positions that the model made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

import core
from app.state.media import PICTURE, Medium
from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.tokens.token_strip import TokenViewStrip
from app.widgets.elided_label import ElidedLabel
from app.widgets.media.drawing import image_of
from app.widgets.media.positions import Cells, PositionsFace
from app.widgets.plain_text import tooltip
from app.widgets.wrapped_label import WrappedLabel

if TYPE_CHECKING:
    from core.events import MediumRead


LEAST_WORDS = 240
"""Pixels at 100 %: what a sentence needs beside a face."""


class MediumCard(QWidget):
    """One of them: its face, its name, how it is read, and what the position under the pointer stands for."""

    def __init__(self, read: MediumRead, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.read = read
        self.setObjectName("mediumRead")
        self.face = PositionsFace(self)
        self.face.pointed.connect(self._on_pointed)
        self.name, self.told, self.part = ElidedLabel("", self), WrappedLabel(parent=self), ElidedLabel("", self)
        self.name.setText(f"{Path(read.path).name} · {core.medium_label(read)}")
        self.told.setText(core.medium_sentence(read))
        self.told.setProperty("role", "muted")
        self.name.setToolTip(tooltip(self.told.text()))
        self.setAccessibleName(f"{self.name.text()}: {self.told.text()}")
        self._column = QVBoxLayout()
        for label in (self.name, self.told, self.part):
            self._column.addWidget(label)
        self._column.addStretch(1)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addWidget(self.face, 0, Qt.AlignmentFlag.AlignTop)
        self._row.addLayout(self._column, 1)

    def tell(self, medium: Medium) -> None:
        """The file has been read, or cannot be any more."""
        if medium.trouble is not None:
            self.part.setText(medium.trouble.cause)
            self.face.hide()
        elif medium.kind == PICTURE:
            image = image_of(*medium.thumbnail) if medium.thumbnail is not None else None
            self.face.show_picture(image, Cells(max(self.read.rows, 1), max(self.read.columns, 1)))
        else:
            self.face.show_sound(medium.peaks, self._along())

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.face.set_theme(theme)
        self._row.setSpacing(theme.px(14))
        self._column.setSpacing(theme.px(3))
        self.name.setFont(theme.font(13, 600))
        self.told.setFont(theme.font(12))
        self.part.setFont(theme.font(12, tabular=True))

    def _along(self) -> Cells:
        """The positions of a sound; the silence behind its end is drawn as what it is."""
        share = min(1.0, self.read.seconds / self.read.heard) if self.read.heard else 1.0
        return Cells(1, self.read.last - self.read.first + 1, share)

    @Slot(int)
    def _on_pointed(self, cell: int) -> None:
        count = self.read.last - self.read.first + 1
        before = count - self.face.cells.rows * self.face.cells.columns if self.read.rows else 0
        self.part.setText(core.medium_part(self.read, self.read.first + before + cell) if cell >= 0 else "")


class MediaStrip(TokenViewStrip):
    """`wanted(path)`: how that file looks or sounds is to be found out, and said by `tell`."""

    wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("mediaStrip", parent)
        self._theme = theme_for("light")
        self._read: Sequence[MediumRead] = ()
        self.cards: list[MediumCard] = []

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's sizes."""
        self._theme = theme
        self._set_spacing(theme, 8)
        for card in self.cards:
            card.set_theme(theme)

    def show_run(self, run: Run | None) -> None:
        """A card for each sound or picture that the run has read; hidden where it read none."""
        read = run.started.media if run is not None and run.started is not None else ()
        if read == self._read:
            return
        self._read = read
        while self.cards:
            card = self.cards.pop()
            self._column.removeWidget(card)
            card.hide()
            card.deleteLater()
        for medium in read:
            self._add(medium)
        self.setVisible(bool(read))
        self.fit_into(self._height)
        for path in dict.fromkeys(medium.path for medium in read):
            self.wanted.emit(path)

    def tell(self, medium: Medium) -> None:
        """That file has been read."""
        for card in self.cards:
            if card.read.path == medium.path:
                card.tell(medium)

    def _fit(self) -> None:
        """At most half of the view; names stay longest, and a narrow strip has no more."""
        room = self._height // 2 - sum(card.face.height() for card in self.cards)
        for card in self.cards:
            card.told.setVisible(room >= 0 and self._room - card.face.width() >= self._theme.px(LEAST_WORDS))

    def _add(self, medium: MediumRead) -> None:
        card = MediumCard(medium, self)
        card.set_theme(self._theme)
        self.cards.append(card)
        self._column.addWidget(card)
        card.show()
