"""The page of the effects of a run's settings: a row per setting, with bars, intervals and sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.features.same_noise.state import EffectsResult, PageState, effects_table
from decodescope.app.features.same_noise.view.page import NoisePage, heading
from decodescope.app.theme.theme import Theme, fill_rect
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Excerpt, Table
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import escape_html
from decodescope.core import SettingEffect, setting_title, words
from decodescope.resources.language import join_names, join_sentences, mark, tr, trn

_ROW_HEIGHT, _HEAD_HEIGHT, _NAME_WIDTH, _GAP, _BAR_HEIGHT = 40, 26, 150, 18, 8
"""Pixels at 100 %."""
_COLUMNS = (mark("Removed"), mark("Moved"), mark("Distance"), mark("Words that would differ"), mark("Share"))
_HELP = mark(
    "Removed and moved: probability between the distributions before and after the stage. Distance: total variation "
    "between the final distributions with and without the setting. Words that would differ: expected number without "
    "the setting, each after the same text and averaged over all noise that explains the run; the line is an interval "
    "of at least 95 %. Share: the setting's part of the distance between the model's own distribution and the final "
    "one (Shapley value)."
)


class EffectRows(Themed, QWidget, AccessibleWidget):
    """A row per setting with a bar for each measure; a measure that is not known has a dash."""

    accessible_role = Role.List

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="effectRows", accessible_name=tr("Effects of the settings"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.rows: Sequence[SettingEffect] = ()

    def show_rows(self, rows: Sequence[SettingEffect]) -> None:
        """Show these rows."""
        self.rows = rows
        self.restyle(self.current_theme)

    def restyle(self, theme: Theme) -> None:
        self.setFixedHeight(theme.px(_HEAD_HEIGHT + _ROW_HEIGHT * len(self.rows)))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(640), self.minimumHeight())

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(420), self.minimumHeight())

    def _column(self, number: int) -> tuple[float, float]:
        """Return left end and width of a column."""
        left, gap = self._theme.px(_NAME_WIDTH), self._theme.px(_GAP)
        width = (self.width() - left) / len(_COLUMNS)
        return left + number * width + gap, width - gap

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the heads and the rows."""
        painter, theme = QPainter(self), self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(11, 600))
        painter.setPen(theme.color("muted"))
        fm = QFontMetricsF(painter.font())
        for number, title in enumerate(_COLUMNS):
            left, width = self._column(number)
            shown = fm.elidedText(tr(title), Qt.TextElideMode.ElideRight, width)
            painter.drawText(QRectF(left, 0, width, theme.px(_HEAD_HEIGHT)), Qt.AlignmentFlag.AlignVCenter, shown)
        for number, row in enumerate(self.rows):
            self._paint_row(painter, theme.px(_HEAD_HEIGHT) + number * theme.px(_ROW_HEIGHT), row)

    def _paint_row(self, painter: QPainter, top: float, row: SettingEffect) -> None:
        theme, height = self._theme, self._theme.px(_ROW_HEIGHT)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(0, round(top), self.width(), round(top))
        painter.setFont(theme.font(13, 500))
        painter.setPen(theme.color("text"))
        name = QFontMetricsF(painter.font()).elidedText(row.label, Qt.TextElideMode.ElideRight, theme.px(_NAME_WIDTH))
        painter.drawText(QRectF(0, top, theme.px(_NAME_WIDTH), height), Qt.AlignmentFlag.AlignVCenter, name)
        painter.setFont(theme.font(12, tabular=True))
        for number, bar in enumerate(_bars(row)):
            self._paint_bar(painter, number, top, bar)

    def _paint_bar(self, painter: QPainter, number: int, top: float, bar: _Bar) -> None:
        """Paint one measure: its text, a bar, and a line over its interval."""
        theme = self._theme
        left, width = self._column(number)
        painter.setPen(theme.color("text" if bar.value is not None else "muted"))
        painter.drawText(QRectF(left, top + theme.px(3), width, theme.px(18)), Qt.AlignmentFlag.AlignVCenter, bar.text)
        if bar.value is None:
            return
        place = QRectF(left, top + theme.px(24), width, theme.px(_BAR_HEIGHT))
        fill_rect(painter, place, theme.color("field"))
        fill_rect(
            painter, QRectF(left, place.top(), width * min(1.0, bar.value), place.height()), theme.color(bar.color)
        )
        if bar.high > bar.low:
            first, last = (left + width * min(1.0, end) for end in (bar.low, bar.high))
            stroke = max(1.0, theme.px(1.5))
            fill_rect(
                painter, QRectF(first, place.center().y() - stroke / 2, last - first, stroke), theme.color("text")
            )

    def _row_rect(self, number: int) -> QRect:
        top, height = self._theme.px(_HEAD_HEIGHT), self._theme.px(_ROW_HEIGHT)
        return QRect(0, top + number * height, self.width(), height)

    def accessible_parts(self) -> Sequence[AccessiblePart]:
        """Return the sentence of each row."""
        return [
            AccessiblePart(f"{row.label}: {row.sentence}", partial(self._row_rect, number))
            for number, row in enumerate(self.rows)
        ]  # fmt: skip


class _Bar(NamedTuple):
    """One measure of a row."""

    text: str
    value: float | None
    """Length of the bar as a fraction; None if it is not known."""
    color: str
    low: float = 0.0
    """The interval, as fractions; none if both ends are equal."""
    high: float = 0.0


def _bars(row: SettingEffect) -> list[_Bar]:
    """Return the measures in the order of the columns."""
    low, high = row.moved
    moved = words.percent(low) if low == high else f"{words.percent(low)} – {words.percent(high)}"
    differing = _Bar("–", None, "refused")
    if row.differing is not None and row.interval is not None:
        first, last = row.interval
        number = f"{row.differing:.1f}" if row.differing >= 0.05 else "< 0.1"
        text = tr("{number} ({low:,} to {high:,})").format(number=number, low=first, high=last)
        text = text if row.differing else "0"
        differing = _Bar(text, row.differing / row.steps, "refused", first / row.steps, last / row.steps)
    return [
        _Bar(words.percent(row.removed), row.removed, "pruned"), _Bar(moved, low, "accent", low, high),
        _share_bar(row.distance, "best"), differing, _share_bar(row.share, "finished"),
    ]  # fmt: skip


def _share_bar(value: float | None, color: str) -> _Bar:
    if value is None:
        return _Bar("–", None, color)
    text = words.percent(value) if value >= 0 else f"−{words.percent(-value)}"
    return _Bar(text, max(0.0, value), color)


def _nothing_text(idle: Sequence[SettingEffect], title_of: Callable[[str], str]) -> str:
    """Return the stages that changed nothing, and the settings that are switched off."""
    neutral = [one for one in idle if one.label.startswith(f"{one.name} ")]
    lines = [one.sentence for one in idle if one not in neutral]
    if neutral:
        names = join_names(title_of(one.name) for one in neutral)
        lines.append(tr("Switched off, so without any effect: {names}.").format(names=names))
    return "\n".join(lines)


class EffectsPage(NoisePage):
    """The page; its button computes exact values."""

    introduction = mark("Run something first: the page says what each setting of the shown run did.")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("effectsPage", tr("What each setting did"), tr("Compute exactly"), parent)
        self._result: EffectsResult | None = None
        self.length = 0
        """Tokens of the shown text."""
        self.rows = EffectRows(self.results)
        self.sentences = set_up(WrappedLabel("", self.results), name="effectSentences")
        self.sentences.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.nothing = set_up(WrappedLabel("", self.results), name="effectNothing")
        self.help = set_up(WrappedLabel(tr(_HELP), self.results), role="muted")
        self._nothing_heading = heading(tr("Changed nothing"), self.results)
        arrange(
            self.results_column, self.rows, heading(tr("In words"), self.results), self.sentences,
            self._nothing_heading, self.nothing, self.help,
        )  # fmt: skip
        self.inputs.hide()

    def show_progress(self, progress: Any) -> None:
        if progress is None:
            super().show_progress(progress)
            return
        self.bar.setRange(0, max(1, self.length))
        self.bar.setValue(progress)
        text = trn("Read {done:,} of {n:,} token.", "Read {done:,} of {n:,} tokens.", self.length)
        self.status.setText(text.format(done=progress, n=self.length))

    def show_result(self, state: PageState) -> None:
        result: EffectsResult = state.result
        self._result = result
        acting = [one for one in result.effects if not one.changed_nothing]
        idle = [one for one in result.effects if one.changed_nothing]
        if result.is_exact:
            text = join_sentences(tr("Exact: computed from the model's scores at each token."), result.effects.missing)
        else:
            bounds = tr("Removed probability is exact, and moved probability lies within bounds.")
            missing = tr("The run recorded too few probabilities per step for the rest.")
            text = join_sentences(bounds, missing if result.effects.missing else "")
        self.status.setText(text)
        self.rows.show_rows(acting)
        self.rows.setVisible(bool(acting))
        lines = [one.sentence for one in acting]
        self.sentences.setText(
            "\n".join(lines) or tr("No setting changed anything: the model's own distribution was used.")
        )
        started = state.subject.started if state.subject is not None else None
        self.nothing.setText(
            _nothing_text(idle, lambda name: setting_title(started, name) if started is not None else name)
        )
        for part in (self.nothing, self._nothing_heading):
            part.setVisible(bool(idle))

    def export_table(self) -> Table:
        """Return a row per setting."""
        return effects_table(self._result.effects) if self._result is not None else ()

    def excerpt(self) -> Excerpt | None:
        """Return the sentences."""
        if self._result is None:
            return None
        lines = self._result.effects.sentences
        return Excerpt("\n".join(lines), "<br>".join(map(escape_html, lines)))
