"""The timeline: the surprise of every token, curves of step details, and the cursor shared by all views."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from decodescope.app.state.run import Run
from decodescope.app.state.token_stats import MEASURES, bar_height
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table, View
from decodescope.app.views.replay import SPEEDS, STEP_SPEED, Replay
from decodescope.app.views.shared.table_export import timeline_table
from decodescope.app.views.text.token_wording import format_bits, surprise_bits, token_text
from decodescope.app.widgets.building import Gap, arrange, set_up
from decodescope.app.widgets.icons import IconButton, create_icon
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.app.widgets.sparkline import MAX_BAR_VALUE, Sparkline, SparklineCurve, height_fraction
from decodescope.core import explain_watermark, share, watermark_found, words
from decodescope.resources.depth import pick
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    from decodescope.core.events import Event, StageDetail, TokenChosen, WatermarkSign

WATERMARK_THRESHOLD, _MAX_Z = 3.0, 9.0
"""Standard deviations from which a text counts as watermarked, and those at full height."""


def _z_height(z: float) -> float:
    return max(z, 0.0) / _MAX_Z


class StageCurves:
    """Collects the step details token by token, reading each token once."""

    def __init__(self) -> None:
        self._details: list[tuple[StageDetail, ...]] = []
        self._signs: list[WatermarkSign] = []
        self._has_details = False

    def clear(self) -> None:
        """Clear the details for another text."""
        self._details, self._signs, self._has_details = [], [], False

    def add(self, tokens: Iterable[TokenChosen]) -> None:
        """Read the details of new tokens."""
        for token in tokens:
            details = token.details
            self._details.append(details)
            if details:
                self._has_details = True
                self._signs += [detail.sign for detail in details if detail.sign is not None][:1]

    def curves(self, count: int) -> list[SparklineCurve]:
        """Return the curves of the first `count` tokens; empty if no stage reported details."""
        if not self._has_details:
            return []
        surprise, target, heat = [], [], []
        for details in self._details[:count]:
            aim = next((detail.aim for detail in details if detail.aim is not None), None)
            surprise.append(height_fraction(aim.surprise) if aim else None)
            target.append(height_fraction(aim.target) if aim else None)
            warm = next((detail.heat for detail in details if detail.heat is not None), None)
            heat.append(warm.temperature / warm.high if warm else None)
        watermark = watermark_found(self._signs[:count])
        curves = (
            SparklineCurve(tr("watermark"), "finished", tuple(_z_height(one.z) for one in watermark)),
            SparklineCurve(tr("threshold"), "muted", (_z_height(WATERMARK_THRESHOLD),) * len(watermark), dashed=True),
            SparklineCurve(tr("surprise"), "best", tuple(surprise)),
            SparklineCurve(tr("target"), "best", tuple(target), dashed=True),
            SparklineCurve(tr("temperature"), "refused", tuple(heat)),
        )
        return [curve for curve in curves if any(value is not None for value in curve.values)]

    def describe_token(self, index: int) -> list[str]:
        """Return the curves' values at one token as text."""
        lines = []
        for detail in self._details[index] if index < len(self._details) else ():
            if detail.aim is not None:
                line = tr("mirostat: {surprise} bits, target {target:g}, limit {limit}")
                surprise, limit = words.decimal(detail.aim.surprise, 1), words.decimal(detail.aim.limit, 1)
                lines.append(line.format(surprise=surprise, target=detail.aim.target, limit=limit))
            if detail.heat is not None:
                lines.append(tr("temperature {heat}").format(heat=words.decimal(detail.heat.temperature)))
            if detail.sign is not None and index < len(self._signs):
                lines.append(explain_watermark(watermark_found(self._signs[: index + 1])[-1]))
        return lines


class PlayButton(Themed, QToolButton):
    """Shows a triangle, or two bars while playing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._is_stepping = theme_for("light"), False
        self._shown: tuple[bool, bool, Theme] | None = None
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_playing(False)

    def restyle(self, theme: Theme) -> None:
        self.set_playing(self.is_playing)

    def set_stepping(self, stepping: bool) -> None:
        """Set whether a press moves one token instead of playing."""
        self._is_stepping = stepping
        self.set_playing(self.is_playing)

    @Slot(bool)
    def set_playing(self, playing: bool) -> None:
        """Show the action of the next press."""
        self.is_playing = playing
        before, self._shown = self._shown, (playing, self._is_stepping, self._theme)
        if self._shown == before:  # every new run calls this, and icons take a while to draw
            return
        px = self._theme.px(16)
        self.setIconSize(QSize(px, px))
        self.setIcon(create_icon("pause" if playing else "play", self._theme.text, px))
        label = tr("Pause") if playing else tr("One token forward") if self._is_stepping else tr("Replay the run")
        set_up(self, accessible_name=label, tooltip=tooltip(tr("{what} (Space)").format(what=label)))


class ChoiceButton(QToolButton):
    """A button with a menu of exclusive choices. `chosen(value)`: the user picked another one."""

    chosen = Signal(object)

    def __init__(self, name: str, label: str, entries: Mapping[Any, str], parent: QWidget) -> None:
        """Create the button. `entries`: menu text of each value; `label`: the button's accessible name."""
        super().__init__(parent)
        self.setObjectName(name)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setAccessibleName(label)
        menu = QMenu(self)
        self._actions = QActionGroup(menu)
        for value, title in entries.items():
            action = menu.addAction(caption(title))
            action.setCheckable(True)
            action.setData(value)
            self._actions.addAction(action)
        self._actions.triggered.connect(self._on_triggered)
        self.setMenu(menu)

    def show_choice(self, value: float | str, text: str) -> None:
        """Check the entry of that value and show `text` on the button."""
        self.setText(text)
        for action in self._actions.actions():
            action.setChecked(action.data() == value)

    @Slot(QAction)
    def _on_triggered(self, action: QAction) -> None:
        self.chosen.emit(action.data())


def create_speed_button(parent: QWidget) -> ChoiceButton:
    """Return the button for the replay speed, one of `SPEEDS`."""
    entries = {speed: tr("Step by step") if speed == STEP_SPEED else title for speed, title in SPEEDS.items()}
    return set_up(ChoiceButton("speedButton", tr("Speed"), entries, parent), tooltip=tr("Replay speed"))


def create_measure_button(parent: QWidget) -> ChoiceButton:
    """Return the button for the measure of the bars, one of `MEASURES`."""
    entries = {name: tr(measure.title) for name, measure in MEASURES.items()}
    button = ChoiceButton("measureButton", tr("What the bars show"), entries, parent)
    button.setToolTip(tr("What the bars show: higher = more uncertain"))
    return button


_MIN_WIDTH_IN_LINES = 52
"""Minimum width, in line heights, for showing the measure beside the bars."""


class Timeline(View):
    """Shows the cursor position and replays the run."""

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
        self.guess_button = set_up(QToolButton(self), name="guessButton")
        self.guess_button.setText(tr("Guess"))
        self.measure = "surprise"
        """The measure of the bars: a name in `MEASURES`."""
        self._hides_future = False
        self._build()
        self.set_measure(self.measure)
        self.set_speed(self.replay.speed)
        self.set_theme(theme_for("light"))

    def _build(self) -> None:
        set_up(self, role="foot", accessible_name=tr("Timeline"))
        self.sparkline.set_tooltip_text(self._bar_tooltip)
        self.sparkline.picked.connect(self.replay.go_to)
        self.play_button.clicked.connect(self.replay.toggle)
        self.replay.cursorRequested.connect(self.signals.cursorRequested)
        self.replay.playingChanged.connect(self.play_button.set_playing)
        self.back_button.clicked.connect(self.step_back)
        self.forward_button.clicked.connect(self.step_forward)
        self.speed_button.chosen.connect(self.set_speed)
        self.measure_button.chosen.connect(self.set_measure)
        self.guess_button.setToolTip(tr("Guess mode: the text pauses before a word, and you guess it"))
        self.count_label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = self._row = arrange(QHBoxLayout(self), self.play_button, self.back_button, self.forward_button)
        arrange(row, Gap(6), (self.sparkline, 1))
        arrange(row, Gap(6), self.count_label, self.measure_button, self.speed_button, self.guess_button)

    def set_measure(self, name: str) -> None:
        """Show another of `MEASURES`."""
        self.measure, self._shown, title = name, (0, 0), tr(MEASURES[name].title)
        self.measure_button.show_choice(name, title)
        self.sparkline.setAccessibleName(tr("{measure} of every token").format(measure=title))
        self._update_bars()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the measure button if there is little room, in favour of the bars."""
        super().resizeEvent(event)
        self.measure_button.setVisible(self.width() >= _MIN_WIDTH_IN_LINES * self.fontMetrics().height())

    def restyle(self, theme: Theme) -> None:
        self._row.setContentsMargins(theme.space(14), theme.space(8), theme.space(14), theme.space(8))
        self._row.setSpacing(theme.space(4))
        self.setFixedHeight(theme.space(62))
        font = theme.font(13, tabular=True)
        self.count_label.setFont(font)
        self._set_count_text(self.count_label.text())
        self.speed_button.setMinimumWidth(theme.px(44))

    # Called by the window

    def add_context_actions(self, menu: QMenu, position: QPoint) -> None:
        """Add the actions of the token under the pointer, of the replay and of the bars."""
        run = self.replay.run
        if run is None or not self._values:
            return
        index = self.sparkline.index_at(self.sparkline.mapFrom(self, position).x())
        if index is not None and self.sparkline.geometry().contains(position):
            token = run.cursor_tokens[index]
            name = words.quote(token.piece, token.is_special)
            if run.beams is None:
                menu.addAction(caption(tr("Explain {name}").format(name=name)), partial(self._explain_token, index))
            menu.addAction(caption(tr("Go to {name}").format(name=name)), partial(self.replay.go_to, index + 1))
            menu.addSeparator()
        menu.addAction(caption(self.play_button.accessibleName()), self.replay.toggle)
        for button in (self.measure_button, self.speed_button):
            submenu = button.menu()
            submenu.setTitle(caption(button.accessibleName()))
            menu.addMenu(submenu)

    def _explain_token(self, index: int) -> None:
        self.signals.tokenActivated.emit(index)
        self.signals.inspectorRequested.emit()

    def export_table(self) -> Table:
        """Return one row per position, with its surprise."""
        run = self.replay.run
        return timeline_table(run.cursor_tokens, len(run.beginning)) if run is not None and self._values else ()

    def wording_changed(self) -> None:
        """Update all texts."""
        self._update_bars()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its start."""
        self.replay.pause()
        self.replay.run, self._values, self._shown = run, [], (0, 0)
        self._curves.clear()
        self._update_bars()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add bars for new tokens."""
        self.replay.run = run
        self._update_bars()

    def cursor_moved(self, run: Run) -> None:
        """Move the cursor, and switch to another sequence if the run does."""
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
        """Set the label's text and fix its size, because other labels trigger a layout of the whole window on every
        change.
        """
        measured = self.count_label.fontMetrics()
        width = max(map(measured.horizontalAdvance, ("0,000 / 0,000", text)))
        self.count_label.setFixedSize(width, measured.height())
        self.count_label.setText(text)

    def _expected_length(self) -> int:
        """Return the expected number of tokens, so that bars do not shrink with every token."""
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
            tip = tr("{number:,}  {piece}\nnot reported by the engine")
            return tip.format(number=number, piece=token_text(token.piece, token.is_special))
        if self.measure != "surprise":
            measure = MEASURES[self.measure]
            value = tr(measure.describe(token)).format(value=measure.compute(token))
            tip = f"{number:,}  {token_text(token.piece, token.is_special)}\n{value}"
            return "\n".join((tip, *self._curves.describe_token(index)))
        tip = pick(
            tr("{number:,}  {piece}\nmodel probability: {chance}"),
            tr("{number:,}  {piece}\nsurprise {surprise} ({share})"),
            tr("{number:,}  {piece}\n−log₂ p = {bits:.4f} bits, p = {chance}"),
        ).format(
            number=number,
            piece=token_text(token.piece, token.is_special),
            surprise=format_bits(surprise),
            bits=surprise,
            share=words.percent(token.raw_probability),
            chance=share(token.raw_probability),
        )
        return "\n".join((tip, *self._curves.describe_token(index)))

    @Slot()
    def hide_future(self) -> None:
        """Hide everything after the cursor while the user guesses."""
        self._hides_future = True
        self._update_bars()

    @Slot()
    def show_future(self) -> None:
        """Show the full run again."""
        self._hides_future = False
        self._update_bars()

    @Slot()
    def step_back(self) -> None:
        """Move one token back."""
        self.replay.step(-1)

    @Slot()
    def step_forward(self) -> None:
        """Move one token forward."""
        self.replay.step(1)

    def set_speed(self, speed: float) -> None:
        """Replay at one of `SPEEDS`."""
        self.replay.set_speed(speed)
        self.speed_button.show_choice(speed, tr(SPEEDS[speed]))
        self.play_button.set_stepping(speed == STEP_SPEED)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Play or pause with Space, wherever the focus is in the timeline."""
        if event.key() == Qt.Key.Key_Space:
            self.replay.toggle()
        else:
            super().keyPressEvent(event)
