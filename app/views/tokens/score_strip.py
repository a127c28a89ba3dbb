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

MOST = 8
"""Places that are listed."""


class ScoreStrip(TokenViewStrip):
    """`chosen(i)`: token i of the text is to be selected."""

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("scoreStrip", parent)
        self.figures, self.models = ElidedLabel("", self), ElidedLabel("", self)
        for label in (self.figures, self.models):
            label.setProperty("role", "muted")
        self.places = QWidget(self)
        self.places.setMinimumWidth(1)  # those that have no room are left out
        self._row = QHBoxLayout(self.places)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addStretch(1)
        self._chips: list[QPushButton] = []
        self._listed, self._two = 0, False
        for part in (self.figures, self.models, self.places):
            self._column.addWidget(part)

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's sizes."""
        self._set_spacing(theme, 4)
        for label in (self.figures, self.models):
            label.setFont(theme.font(12, tabular=True))
        self._row.setSpacing(theme.px(6))
        self._fit()

    def show_run(self, run: Run | None) -> None:
        """Tell of a scored run; hidden for any other."""
        self.setVisible(run is not None and run.is_scored)
        if run is None or not run.is_scored:
            return
        found = scores.scores_of(run.tokens)
        self._say(self.figures, f"{scores.told(found)} · {scores.bands_told(found)}")
        self._two = bool(run.compared)
        if run.compared:
            self._tell_second(run)
        self._fit()

    def _fit(self) -> None:
        """At most a third of the view; as many places as are wide enough."""
        self._choose_lines()
        room = self._room
        for number, chip in enumerate(self._chips):
            room -= chip.sizeHint().width() + self._row.spacing()
            chip.setVisible(number < self._listed and (room >= -self._row.spacing() or not number))

    def _choose_lines(self) -> None:
        line = self.figures.sizeHint().height() + self._column.spacing()
        chips = self._chips[0].sizeHint().height() if self._chips else 0
        room = self._height // 3 - 2 * line
        self.places.setVisible(self._two and room >= chips)
        self.models.setVisible(self._two and room >= chips + line)

    def _tell_second(self, run: Run) -> None:
        second = run.started.second if run.started else ""
        mean = words.decimal(scores.second_scores(run.compared))
        apart = words.decimal(scores.mean_divergence(run.compared))
        self._say(
            self.models,
            tr("{second}: {mean} · the two are {apart} bits apart a token, most at:").format(
                second=second, mean=mean, apart=apart
            ),
        )
        found = scores.partings(run.compared, MOST)
        while len(self._chips) < len(found):
            self._add()
        self._listed = len(found)
        for chip, place in zip(self._chips, found, strict=False):
            self._fill(chip, place, run)

    def _say(self, label: ElidedLabel, text: str) -> None:
        """In one line; the whole of it over it."""
        label.setText(text)
        label.setToolTip(tooltip(text))

    def _fill(self, chip: QPushButton, place: TokenCompared, run: Run) -> None:
        token = run.tokens[place.step]
        shown = token_text(token.piece, token.is_special).strip("␣")
        chip.setText(caption(f"{shown} {words.decimal(place.divergence, 1)}"))
        chip.setProperty("token", place.step)
        first, second = words.percent(token.raw_probability), words.percent(place.probability)
        said = tr("{divergence:.2f} bits apart here; its share is {first} against {second}").format(
            divergence=place.divergence, first=first, second=second
        )
        chip.setToolTip(tooltip(said))
        chip.setAccessibleName(
            tr("Token {step}, {piece}: {said}").format(
                step=run.number_of(place.step), piece=token_text(token.piece, token.is_special), said=said
            )
        )

    def _add(self) -> None:
        chip = QPushButton(self.places)
        chip.setProperty("role", "chip")
        chip.setCursor(Qt.CursorShape.PointingHandCursor)
        chip.clicked.connect(self._on_clicked)
        self._chips.append(chip)
        self._row.insertWidget(len(self._chips) - 1, chip)

    @Slot()
    def _on_clicked(self) -> None:
        self.chosen.emit(self.sender().property("token"))
