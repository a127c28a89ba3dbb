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
from app.widgets.media.drawing import image_from_rgb
from app.widgets.media.positions import MediumPositions, PositionCells
from app.widgets.plain_text import tooltip
from app.widgets.wrapped_label import WrappedLabel

if TYPE_CHECKING:
    from core.events import MediumRead


MIN_DESCRIPTION_WIDTH = 240
"""Pixels at 100 %: what a sentence needs beside a face."""


class MediumCard(QWidget):
    """One of them: its face, its name, how it is read, and what the position under the pointer stands for."""

    def __init__(self, read: MediumRead, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.read = read
        self.setObjectName("mediumRead")
        self.preview = MediumPositions(self)
        self.preview.cellHovered.connect(self._on_pointed)
        self.name, self.description, self.position_label = (
            ElidedLabel("", self),
            WrappedLabel(parent=self),
            ElidedLabel("", self),
        )
        self.name.setText(f"{Path(read.path).name} · {core.medium_label(read)}")
        self.description.setText(core.medium_sentence(read))
        self.description.setProperty("role", "muted")
        self.name.setToolTip(tooltip(self.description.text()))
        self.setAccessibleName(f"{self.name.text()}: {self.description.text()}")
        self._column = QVBoxLayout()
        for label in (self.name, self.description, self.position_label):
            self._column.addWidget(label)
        self._column.addStretch(1)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addWidget(self.preview, 0, Qt.AlignmentFlag.AlignTop)
        self._row.addLayout(self._column, 1)

    def show_medium(self, medium: Medium) -> None:
        """The file has been read, or cannot be any more."""
        if medium.error is not None:
            self.position_label.setText(medium.error.cause)
            self.preview.hide()
        elif medium.kind == PICTURE:
            image = image_from_rgb(*medium.thumbnail) if medium.thumbnail is not None else None
            self.preview.show_picture(image, PositionCells(max(self.read.rows, 1), max(self.read.columns, 1)))
        else:
            self.preview.show_sound(medium.peaks, self._sound_cells())

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.preview.set_theme(theme)
        self._row.setSpacing(theme.px(14))
        self._column.setSpacing(theme.px(3))
        self.name.setFont(theme.font(13, 600))
        self.description.setFont(theme.font(12))
        self.position_label.setFont(theme.font(12, tabular=True))

    def _sound_cells(self) -> PositionCells:
        """The positions of a sound; the silence behind its end is drawn as what it is."""
        share = min(1.0, self.read.seconds / self.read.heard) if self.read.heard else 1.0
        return PositionCells(1, self.read.last - self.read.first + 1, share)

    @Slot(int)
    def _on_pointed(self, cell: int) -> None:
        count = self.read.last - self.read.first + 1
        before = count - self.preview.cells.rows * self.preview.cells.columns if self.read.rows else 0
        self.position_label.setText(core.medium_part(self.read, self.read.first + before + cell) if cell >= 0 else "")


class MediaStrip(TokenViewStrip):
    """`mediumRequested(path)`: how that file looks or sounds is to be found out, and said by `show_medium`."""

    mediumRequested = Signal(str)

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
        self.set_view_height(self._view_height)
        for path in dict.fromkeys(medium.path for medium in read):
            self.mediumRequested.emit(path)

    def show_medium(self, medium: Medium) -> None:
        """That file has been read."""
        for card in self.cards:
            if card.read.path == medium.path:
                card.show_medium(medium)

    def _update_visibility(self) -> None:
        """At most half of the view; names stay longest, and a narrow strip has no more."""
        room = self._view_height // 2 - sum(card.preview.height() for card in self.cards)
        for card in self.cards:
            card.description.setVisible(
                room >= 0 and self._available_width - card.preview.width() >= self._theme.px(MIN_DESCRIPTION_WIDTH)
            )

    def _add(self, medium: MediumRead) -> None:
        card = MediumCard(medium, self)
        card.set_theme(self._theme)
        self.cards.append(card)
        self._column.addWidget(card)
        card.show()
