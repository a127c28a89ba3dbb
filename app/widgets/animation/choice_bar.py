"""A distribution as one bar: stage by stage the settings close it like a funnel, then a ball falls into it.

It comes to rest in the middle of the chosen share. Where in it a die fell cannot be told: torch draws by a race (the
token of the greatest p ÷ exponential noise wins), so there is no one number that falls into the bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, zip_longest
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets.animation.motion import AnimatedWidget, bounce, interpolate, sub_progress
from resources.language import tr

BAR_HEIGHT, FALL_HEIGHT, BALL_RADIUS, SEGMENT_GAP = 22, 14, 5, 1
"""Pixels at 100 %: the bar's height, the room above it, the ball's radius, between two shares."""
NARROWING_FRACTION = 0.5
"""Share of the motion in which the funnel closes; the ball falls in the rest."""


class ChoiceDistribution(NamedTuple):
    """What could have been chosen, and what was."""

    labels: tuple[str, ...]
    stages: tuple[tuple[float, ...], ...]
    """For each stage, the model's own first, the share of each of `labels`; what is left is of all others."""
    chosen: int
    is_sampled: bool
    """Whether a die was thrown."""
    formatted_probabilities: tuple[str, ...] = ()
    """The shares of the last stage in words."""


class ChoiceBar(AnimatedWidget):
    """The shares side by side; the chosen one is filled."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("choiceBar")
        self._choice: ChoiceDistribution | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("What could have been chosen"))

    def show_choice(self, choice: ChoiceDistribution, animate: bool) -> None:
        """Show this one, as it comes about where it `animate`."""
        if choice == self._choice:
            return
        self._choice = choice
        descriptions = (
            f"{label} {probability}".strip()
            for label, probability in zip_longest(choice.labels, choice.formatted_probabilities, fillvalue="")
        )
        self.setAccessibleDescription("; ".join(descriptions))
        self.start_motion(animate)

    def sizeHint(self) -> QSize:
        """A bar, and the room to fall."""
        return QSize(self._theme.px(200), self._theme.px(FALL_HEIGHT + BAR_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """Never cut off."""
        return QSize(self._theme.px(100), self._theme.px(FALL_HEIGHT + BAR_HEIGHT))

    def probabilities(self) -> tuple[float, ...]:
        """The shares that are painted now."""
        assert self._choice is not None, "nothing is painted before there is a choice"
        return interpolate_stages(
            self._choice.stages,
            sub_progress(self.progress, 0.0, NARROWING_FRACTION if self._choice.is_sampled else 1.0),
        )

    def ball_center(self) -> QPointF:
        """The middle of the ball now: above the bar as the motion begins, on the chosen share at its end."""
        assert self._choice is not None, "nothing falls before there is a choice"
        left, width = self.spans()[self._choice.chosen]
        radius, top = self._theme.px(BALL_RADIUS), self._theme.px(FALL_HEIGHT)
        fallen = bounce(sub_progress(self.progress, NARROWING_FRACTION, 1.0))
        return QPointF(left + width / 2, interpolate(radius, top, fallen))

    def spans(self) -> list[tuple[float, float]]:
        """Left edge and width of each share, in pixels."""
        shares = self.probabilities()
        lefts = accumulate(shares, initial=0.0)
        return [
            (left * self.width(), probability * self.width()) for left, probability in zip(lefts, shares, strict=False)
        ]

    def paintEvent(self, event: QPaintEvent) -> None:
        """The bar as it is now, and the ball."""
        choice = self._choice
        if choice is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, top, height = self._theme, self._theme.px(FALL_HEIGHT), self._theme.px(BAR_HEIGHT)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line", 0.5))
        painter.drawRoundedRect(QRectF(0, top, self.width(), height), 4, 4)
        for index, (left, width) in enumerate(self.spans()):
            box = QRectF(left, top, max(0.0, width - theme.px(SEGMENT_GAP)), height)
            self._paint_segment(painter, box, choice.labels[index], index == choice.chosen)
        if choice.is_sampled and sub_progress(self.progress, NARROWING_FRACTION, 1.0) > 0:
            radius = theme.px(BALL_RADIUS)
            painter.setBrush(theme.color("best"))
            painter.drawEllipse(self.ball_center(), radius, radius)

    def _paint_segment(self, painter: QPainter, box: QRectF, label: str, chosen: bool) -> None:
        theme = self._theme
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent", 1.0 if chosen else 0.25))
        painter.drawRoundedRect(box, 4, 4)
        painter.setFont(theme.font(13, 600 if chosen else 400))
        if QFontMetricsF(painter.font()).horizontalAdvance(label) + theme.px(4) <= box.width():
            painter.setPen(theme.color("on_accent" if chosen else "text"))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label)


def interpolate_stages(stages: Sequence[Sequence[float]], fraction: float) -> tuple[float, ...]:
    """The distribution on its way from the first stage to the last: `fraction` of it, each stage as long as the others."""
    stage_position = fraction * (len(stages) - 1)
    before = min(int(stage_position), len(stages) - 1)
    after = min(before + 1, len(stages) - 1)
    return tuple(interpolate(a, b, stage_position - before) for a, b in zip(stages[before], stages[after], strict=True))
