"""The timeline: how surprised the model was at every token, and the one cursor that all views obey."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from app.state.run import Run
from app.state.uncertainty import MEASURES, bar_height
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.replay import SPEEDS, STEP_SPEED, Replay
from app.views.shared.table_export import timeline_table
from app.views.stage_curves import StageCurves
from app.views.text.token_wording import format_bits, surprise_bits, token_text
from app.views.timeline_buttons import PlayButton, create_measure_button, create_speed_button
from app.widgets.icons import IconButton
from app.widgets.plain_text import PlainLabel
from app.widgets.sparkline import MAX_BAR_VALUE, Sparkline
from core import share, words
from resources.depth import pick
from resources.language import tr, trn

if TYPE_CHECKING:
    from core.events import Event


_MIN_WIDTH_IN_LINES = 52
"""Lines of type that it must be wide, for what the bars show to be said beside them."""


class Timeline(View):
    """Where the cursor stands, and the replay that moves it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("timeline", parent)
        self.replay = Replay(self)
        self._values: list[float] = []
        self._shown: tuple[int, int] = (0, 0)
        self._curves = StageCurves()
        self.play_button = PlayButton(self)
        self.back_button = IconButton("step-back", tr("One token back"), self)
        self.forward_button = IconButton("step-forward", tr("One token forward"), self)
        self.sparkline = Sparkline(theme_for("light"), self)
        self.count_label = PlainLabel("", self)
        self.speed_button, self.measure_button = create_speed_button(self), create_measure_button(self)
        self.guess_button = QToolButton(self)
        self.guess_button.setObjectName("guessButton")
        self.guess_button.setText(tr("Guess"))
        self.measure = "surprise"
        """What the bars show: a name of `MEASURES`."""
        self._hides_future = False
        self._build()
        self.set_measure(self.measure)
        self.set_speed(self.replay.speed)
        self.set_theme(theme_for("light"))

    def _build(self) -> None:
        self.setProperty("role", "foot")
        self.setAccessibleName(tr("Timeline"))
        self.sparkline.set_tooltip_text(self._bar_tooltip)
        self.sparkline.picked.connect(self.replay.go_to)
        self.play_button.clicked.connect(self.replay.toggle)
        self.replay.cursorRequested.connect(self.signals.cursorRequested)
        self.replay.playingChanged.connect(self.play_button.set_playing)
        self.back_button.clicked.connect(self.step_back)
        self.forward_button.clicked.connect(self.step_forward)
        self.speed_button.chosen.connect(self.set_speed)
        self.measure_button.chosen.connect(self.set_measure)
        self.guess_button.setToolTip(tr("Guess first: the text holds before a word, and you say which it is"))
        self.count_label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = self._row = QHBoxLayout(self)
        for widget in (self.play_button, self.back_button, self.forward_button):
            row.addWidget(widget)
        row.addSpacing(6)
        row.addWidget(self.sparkline, 1)
        row.addSpacing(6)
        row.addWidget(self.count_label)
        row.addWidget(self.measure_button)
        row.addWidget(self.speed_button)
        row.addWidget(self.guess_button)

    def set_measure(self, name: str) -> None:
        """Show another of `MEASURES`."""
        self.measure, self._shown, title = name, (0, 0), tr(MEASURES[name].title)
        self.measure_button.show_choice(name, title)
        self.sparkline.setAccessibleName(tr("{measure} of every token").format(measure=title))
        self._update_bars()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where it is narrow the bars keep their room."""
        super().resizeEvent(event)
        self.measure_button.setVisible(self.width() >= _MIN_WIDTH_IN_LINES * self.fontMetrics().height())

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        for part in (self.play_button, self.back_button, self.forward_button, self.sparkline):
            part.set_theme(theme)
        self._row.setContentsMargins(theme.space(14), theme.space(8), theme.space(14), theme.space(8))
        self._row.setSpacing(theme.space(4))
        self.setFixedHeight(theme.space(62))
        font = theme.font(13, tabular=True)
        self.count_label.setFont(font)
        self._set_count_text(self.count_label.text())
        self.speed_button.setMinimumWidth(theme.px(44))

    # What the shell calls

    def export_table(self) -> Table:
        """Every place, with the surprise that its bar shows."""
        run = self.replay.run
        return timeline_table(run.cursor_tokens, len(run.beginning)) if run is not None and self._values else ()

    def wording_changed(self) -> None:
        """Say it all again."""
        self._update_bars()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning."""
        self.replay.pause()
        self.replay.run, self._values, self._shown = run, [], (0, 0)
        self._curves.clear()
        self._update_bars()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add bars for what was written."""
        self.replay.run = run
        self._update_bars()

    def cursor_moved(self, run: Run) -> None:
        """Move the cursor, and show another sequence where the run shows one."""
        self.replay.run = run
        self._update_bars()

    def _update_bars(self) -> None:
        run = self.replay.run
        tokens = run.cursor_tokens if run else []
        sequence_key = (id(run), run.shown_index if run else 0)
        if sequence_key != self._shown or len(tokens) < len(self._values):
            self._shown, self._values = sequence_key, []
            self._curves.clear()
        new = tokens[len(self._values) :]
        self._curves.add(new)
        measure = MEASURES[self.measure]
        self._values += [min(bar_height(measure, token), 4 * MAX_BAR_VALUE) for token in new]
        cursor = run.cursor if run else 0
        known = self._values[:cursor] if self._hides_future else self._values
        self.sparkline.set_values(known, cursor, self._expected_length())
        self.sparkline.set_curves(self._curves.curves(len(known)))
        before = len(run.beginning) if run else 0
        self._set_count_text(f"{before + cursor:,} / {before + len(tokens):,}" if tokens else "")
        for button in (self.play_button, self.back_button, self.forward_button, self.speed_button, self.guess_button,
                       self.measure_button):  # fmt: skip
            button.setEnabled(bool(tokens))
        description = trn("{cursor} of {count} token", "{cursor} of {count} tokens", before + len(tokens)).format(
            cursor=before + cursor, count=before + len(tokens)
        )
        self.sparkline.setAccessibleDescription(
            "; ".join((description, *self._curves.describe_token(cursor - 1 if cursor else 0)))
        )

    def _set_count_text(self, text: str) -> None:
        """A label of a fixed size: any other has the whole window laid out anew at each change of its text."""
        measured = self.count_label.fontMetrics()
        width = max(map(measured.horizontalAdvance, ("0,000 / 0,000", text)))
        self.count_label.setFixedSize(width, measured.height())
        self.count_label.setText(text)

    def _expected_length(self) -> int:
        """Room for what is still to come, so that bars do not shrink with every token."""
        run = self.replay.run
        if run is None or run.finished is not None or run.outcome is not None:
            return 0
        limit = run.request.config.get("max_new_tokens")
        return limit if isinstance(limit, int) and limit <= 400 else 0

    def _bar_tooltip(self, index: int) -> str:
        run = self.replay.run
        token = run.cursor_tokens[index] if run else None
        if run is None or token is None:
            return ""
        number = run.number_of(index)
        surprise = surprise_bits(token.raw_log_probability)
        if math.isnan(MEASURES[self.measure].compute(token)) or math.isnan(surprise):
            tip = tr("{number:,}  {piece}\nthe engine does not tell this figure")
            return tip.format(number=number, piece=token_text(token.piece, token.is_special))
        if self.measure != "surprise":
            measure = MEASURES[self.measure]
            value = tr(measure.describe(token)).format(value=measure.compute(token))
            tip = f"{number:,}  {token_text(token.piece, token.is_special)}\n{value}"
            return "\n".join((tip, *self._curves.describe_token(index)))
        tip = pick(
            tr("{number:,}  {piece}\nthe model saw it coming: {chance}"),
            tr("{number:,}  {piece}\nsurprise {surprise} ({share})"),
            tr("{number:,}  {piece}\n−log₂ p = {bits:.4f} bits, p = {chance}"),
        ).format(
            number=number, piece=token_text(token.piece, token.is_special), surprise=format_bits(surprise), bits=surprise,
            share=words.percent(token.raw_probability), chance=share(token.raw_probability),
        )  # fmt: skip
        return "\n".join((tip, *self._curves.describe_token(index)))

    @Slot()
    def hide_future(self) -> None:
        """Show nothing of what lies behind the cursor: somebody is to guess it."""
        self._hides_future = True
        self._update_bars()

    @Slot()
    def show_future(self) -> None:
        """Show the whole run again."""
        self._hides_future = False
        self._update_bars()

    @Slot()
    def step_back(self) -> None:
        """One token back."""
        self.replay.step(-1)

    @Slot()
    def step_forward(self) -> None:
        """One token forward."""
        self.replay.step(1)

    def set_speed(self, speed: float) -> None:
        """Replay at one of `SPEEDS`."""
        self.replay.set_speed(speed)
        self.speed_button.show_choice(speed, tr(SPEEDS[speed]))
        self.play_button.set_stepping(speed == STEP_SPEED)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space plays and pauses wherever the focus is in here."""
        if event.key() == Qt.Key.Key_Space:
            self.replay.toggle()
        else:
            super().keyPressEvent(event)
