"""Strips above the text: scores of a scored text, and the media that the run read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from decodescope import core
from decodescope.app.state import token_stats
from decodescope.app.state.media import PICTURE, Medium
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.text.token_wording import token_text
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.labels import ElidedLabel, WrappedLabel
from decodescope.app.widgets.media_preview import MediumPositions, Peaks, PositionCells, image_from_rgb
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.core import words
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import MediumRead, TokenCompared


class TokenViewStrip(QWidget):
    """A strip that is hidden until it has content. Subclasses override `_update_visibility`."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._view_height = 10_000
        """Height of the surrounding view."""
        self._column = QVBoxLayout(self)
        self.hide()

    def set_view_height(self, height: int) -> None:
        """Set the view's height, of which the strip uses only a part: the text matters more."""
        self._view_height = height
        self._update_visibility()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as much as there is room for."""
        super().resizeEvent(event)
        self._update_visibility()

    def _update_visibility(self) -> None:
        """Hide what does not fit."""
        raise NotImplementedError

    @property
    def _available_width(self) -> int:
        """Width in pixels between the margins."""
        margins = self._column.contentsMargins()
        return self.width() - margins.left() - margins.right()

    def _set_spacing(self, theme: Theme, between: int) -> None:
        """Set the margins and the spacing between lines, in pixels at 100 %."""
        self._column.setSpacing(theme.px(between))
        self._column.setContentsMargins(theme.px(26), theme.px(10), theme.px(26), theme.px(2))


MAX_POSITIONS = 8
"""Maximum number of listed positions."""


class ScoreStrip(Themed, TokenViewStrip):
    """Emits `tokenChosen(i)` when the user picks token i of the text."""

    tokenChosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("scoreStrip", parent)
        self.summary, self.comparison = ElidedLabel("", self), ElidedLabel("", self)
        for label in (self.summary, self.comparison):
            label.setProperty("role", "muted")
        self.chip_row = QWidget(self)
        self.chip_row.setMinimumWidth(1)  # chips without room are hidden
        self._row = arrange(QHBoxLayout(self.chip_row), STRETCH, margins=0)
        self._chips: list[QPushButton] = []
        self._chip_count, self._has_comparison = 0, False
        arrange(self._column, self.summary, self.comparison, self.chip_row)

    def restyle(self, theme: Theme) -> None:
        self._set_spacing(theme, 4)
        for label in (self.summary, self.comparison):
            label.setFont(theme.font(12, tabular=True))
        self._row.setSpacing(theme.px(6))
        self._update_visibility()

    def show_run(self, run: Run | None) -> None:
        """Show the scores of a scored run; hide the strip for other runs."""
        self.setVisible(run is not None and run.is_scored)
        if run is None or not run.is_scored:
            return
        text_scores = token_stats.compute_score_stats(run.tokens)
        self._set_label(
            self.summary, f"{token_stats.summary_text(text_scores)} · {token_stats.bands_text(text_scores)}"
        )
        self._has_comparison = bool(run.comparisons)
        if run.comparisons:
            self._show_comparison(run)
        self._update_visibility()

    def _update_visibility(self) -> None:
        """Use at most a third of the view's height, and show as many chips as fit."""
        self._choose_lines()
        room = self._available_width
        for number, chip in enumerate(self._chips):
            room -= chip.sizeHint().width() + self._row.spacing()
            chip.setVisible(number < self._chip_count and (room >= -self._row.spacing() or not number))

    def _choose_lines(self) -> None:
        line = self.summary.sizeHint().height() + self._column.spacing()
        chips = self._chips[0].sizeHint().height() if self._chips else 0
        room = self._view_height // 3 - 2 * line
        self.chip_row.setVisible(self._has_comparison and room >= chips)
        self.comparison.setVisible(self._has_comparison and room >= chips + line)

    def _show_comparison(self, run: Run) -> None:
        second = run.started.second if run.started else ""
        mean = words.decimal(token_stats.comparison_mean_log_probability(run.comparisons))
        apart = words.decimal(token_stats.mean_divergence(run.comparisons))
        self._set_label(
            self.comparison,
            tr("{second}: {mean} · average difference {apart} bits per token, largest at:").format(
                second=second, mean=mean, apart=apart
            ),
        )
        differences = token_stats.largest_divergences(run.comparisons, MAX_POSITIONS)
        while len(self._chips) < len(differences):
            self._add_chip()
        self._chip_count = len(differences)
        for chip, place in zip(self._chips, differences, strict=False):
            self._update_chip(chip, place, run)

    def _set_label(self, label: ElidedLabel, text: str) -> None:
        """Show the text in one line, with the full text as tooltip."""
        label.setText(text)
        label.setToolTip(tooltip(text))

    def _update_chip(self, chip: QPushButton, comparison: TokenCompared, run: Run) -> None:
        token = run.tokens[comparison.step]
        shown = token_text(token.piece, token.is_special).strip("␣")
        chip.setText(caption(f"{shown} {words.decimal(comparison.divergence, 1)}"))
        chip.setProperty("token", comparison.step)
        first, second = words.percent(token.raw_probability), words.percent(comparison.probability)
        description = tr("{divergence:.2f} bits apart here; probability {first}, comparison model {second}").format(
            divergence=comparison.divergence, first=first, second=second
        )
        chip.setToolTip(tooltip(description))
        chip.setAccessibleName(
            tr("Token {step}, {piece}: {said}").format(
                step=run.number_of(comparison.step), piece=token_text(token.piece, token.is_special), said=description
            )
        )

    def _add_chip(self) -> None:
        chip = set_up(QPushButton(self.chip_row), clicked=self._on_clicked, role="chip")
        chip.setCursor(Qt.CursorShape.PointingHandCursor)
        self._chips.append(chip)
        self._row.insertWidget(len(self._chips) - 1, chip)

    @Slot()
    def _on_clicked(self) -> None:
        self.tokenChosen.emit(self.sender().property("token"))


MIN_DESCRIPTION_WIDTH = 240
"""Minimum width of a description beside a preview, in pixels at 100 %."""


class MediumCard(Themed, QWidget):
    """One media file: preview, name, how it is read, and the position under the pointer."""

    def __init__(self, medium: MediumRead, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.medium = medium
        self.setObjectName("mediumRead")
        self.preview = MediumPositions(self)
        self.preview.cellHovered.connect(self._on_pointed)
        self.name, self.description, self.position_label = (
            ElidedLabel("", self),
            WrappedLabel(parent=self),
            ElidedLabel("", self),
        )
        self.name.setText(f"{Path(medium.path).name} · {core.medium_label(medium)}")
        self.description.setText(core.medium_sentence(medium))
        self.description.setProperty("role", "muted")
        self.name.setToolTip(tooltip(self.description.text()))
        self.setAccessibleName(f"{self.name.text()}: {self.description.text()}")
        self._column = arrange(QVBoxLayout(), self.name, self.description, self.position_label, STRETCH)
        self._row = arrange(
            QHBoxLayout(self), (self.preview, 0, Qt.AlignmentFlag.AlignTop), (self._column, 1), margins=0
        )

    def show_medium(self, medium: Medium) -> None:
        """Show the file's preview, or why it can no longer be read."""
        if medium.error is not None:
            self.position_label.setText(medium.error.cause)
            self.preview.hide()
        elif medium.kind == PICTURE:
            image = image_from_rgb(*medium.thumbnail) if medium.thumbnail is not None else None
            self.preview.show_picture(image, PositionCells(max(self.medium.rows, 1), max(self.medium.columns, 1)))
        else:
            self.preview.show_sound(self._heard_peaks(medium), self._sound_cells())

    def restyle(self, theme: Theme) -> None:
        self._row.setSpacing(theme.px(14))
        self._column.setSpacing(theme.px(3))
        self.name.setFont(theme.font(13, 600))
        self.description.setFont(theme.font(12))
        self.position_label.setFont(theme.font(12, tabular=True))

    def _heard_peaks(self, medium: Medium) -> Peaks:
        """Return the waveform of what the model reads: the positions cover no more of a longer recording."""
        if not self.medium.seconds or not self.medium.heard:
            return medium.peaks
        share = min(1.0, self.medium.heard / self.medium.seconds)
        return medium.peaks[: max(1, round(share * len(medium.peaks)))]

    def _sound_cells(self) -> PositionCells:
        """Return the positions of an audio clip. Silence after its end is drawn as padding."""
        share = min(1.0, self.medium.seconds / self.medium.heard) if self.medium.heard else 1.0
        return PositionCells(1, self.medium.last - self.medium.first + 1, share)

    @Slot(int)
    def _on_pointed(self, cell: int) -> None:
        count = self.medium.last - self.medium.first + 1
        before = count - self.preview.cells.rows * self.preview.cells.columns if self.medium.rows else 0
        self.position_label.setText(
            core.medium_part(self.medium, self.medium.first + before + cell) if cell >= 0 else ""
        )


class MediaStrip(Themed, TokenViewStrip):
    """Emits `mediumRequested(path)` for each file to load; `show_medium` shows the result."""

    mediumRequested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("mediaStrip", parent)
        self._media: Sequence[MediumRead] = ()
        self.cards: list[MediumCard] = []

    def restyle(self, theme: Theme) -> None:
        self._set_spacing(theme, 8)

    def show_run(self, run: Run | None) -> None:
        """Show a card per audio clip or image that the run read; hide the strip if there is none."""
        read = run.started.media if run is not None and run.started is not None else ()
        if read == self._media:
            return
        self._media = read
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
        """Show the preview of a loaded file."""
        for card in self.cards:
            if card.medium.path == medium.path:
                card.show_medium(medium)

    def _update_visibility(self) -> None:
        """Use at most half of the view's height. In narrow strips only the names remain."""
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
