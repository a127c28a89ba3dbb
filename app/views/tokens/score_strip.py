"""Above a scored text: its figures, and with a second model the places where the two part most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.state import scores
from app.state.run import Run
from app.theme.theme import Theme
from app.views.text.token_wording import token_text
from app.views.tokens.token_strip import TokenViewStrip
from app.widgets.elided_label import ElidedLabel
from app.widgets.plain_text import caption, tooltip
from core import words
from resources.language import tr

if TYPE_CHECKING:
    from core.events import TokenCompared

MAX_POSITIONS = 8
"""Places that are listed."""


class ScoreStrip(TokenViewStrip):
    """`tokenChosen(i)`: token i of the text is to be selected."""

    tokenChosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("scoreStrip", parent)
        self.summary, self.comparison = ElidedLabel("", self), ElidedLabel("", self)
        for label in (self.summary, self.comparison):
            label.setProperty("role", "muted")
        self.chip_row = QWidget(self)
        self.chip_row.setMinimumWidth(1)  # those that have no room are left out
        self._row = QHBoxLayout(self.chip_row)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addStretch(1)
        self._chips: list[QPushButton] = []
        self._chip_count, self._has_comparison = 0, False
        for part in (self.summary, self.comparison, self.chip_row):
            self._column.addWidget(part)

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's sizes."""
        self._set_spacing(theme, 4)
        for label in (self.summary, self.comparison):
            label.setFont(theme.font(12, tabular=True))
        self._row.setSpacing(theme.px(6))
        self._update_visibility()

    def show_run(self, run: Run | None) -> None:
        """Tell of a scored run; hidden for any other."""
        self.setVisible(run is not None and run.is_scored)
        if run is None or not run.is_scored:
            return
        text_scores = scores.compute_score_stats(run.tokens)
        self._set_label(self.summary, f"{scores.summary_text(text_scores)} · {scores.bands_text(text_scores)}")
        self._has_comparison = bool(run.comparisons)
        if run.comparisons:
            self._show_comparison(run)
        self._update_visibility()

    def _update_visibility(self) -> None:
        """At most a third of the view; as many places as are wide enough."""
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
        mean = words.decimal(scores.comparison_mean_log_probability(run.comparisons))
        apart = words.decimal(scores.mean_divergence(run.comparisons))
        self._set_label(
            self.comparison,
            tr("{second}: {mean} · the two are {apart} bits apart a token, most at:").format(
                second=second, mean=mean, apart=apart
            ),
        )
        differences = scores.largest_divergences(run.comparisons, MAX_POSITIONS)
        while len(self._chips) < len(differences):
            self._add_chip()
        self._chip_count = len(differences)
        for chip, place in zip(self._chips, differences, strict=False):
            self._update_chip(chip, place, run)

    def _set_label(self, label: ElidedLabel, text: str) -> None:
        """In one line; the whole of it over it."""
        label.setText(text)
        label.setToolTip(tooltip(text))

    def _update_chip(self, chip: QPushButton, compared: TokenCompared, run: Run) -> None:
        token = run.tokens[compared.step]
        shown = token_text(token.piece, token.is_special).strip("␣")
        chip.setText(caption(f"{shown} {words.decimal(compared.divergence, 1)}"))
        chip.setProperty("token", compared.step)
        first, second = words.percent(token.raw_probability), words.percent(compared.probability)
        description = tr("{divergence:.2f} bits apart here; its share is {first} against {second}").format(
            divergence=compared.divergence, first=first, second=second
        )
        chip.setToolTip(tooltip(description))
        chip.setAccessibleName(
            tr("Token {step}, {piece}: {said}").format(
                step=run.number_of(compared.step), piece=token_text(token.piece, token.is_special), said=description
            )
        )

    def _add_chip(self) -> None:
        chip = QPushButton(self.chip_row)
        chip.setProperty("role", "chip")
        chip.setCursor(Qt.CursorShape.PointingHandCursor)
        chip.clicked.connect(self._on_clicked)
        self._chips.append(chip)
        self._row.insertWidget(len(self._chips) - 1, chip)

    @Slot()
    def _on_clicked(self) -> None:
        self.tokenChosen.emit(self.sender().property("token"))
