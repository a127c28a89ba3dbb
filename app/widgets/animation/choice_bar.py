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
from app.widgets.animation.motion import Animated, between, bounced, part
from resources.language import tr

BAR, FALL, BALL, GAP = 22, 14, 5, 1
"""Pixels at 100 %: the bar's height, the room above it, the ball's radius, between two shares."""
CLOSED = 0.5
"""Share of the motion in which the funnel closes; the ball falls in the rest."""


class ChoiceDistribution(NamedTuple):
    """What could have been chosen, and what was."""

    labels: tuple[str, ...]
    stages: tuple[tuple[float, ...], ...]
    """For each stage, the model's own first, the share of each of `labels`; what is left is of all others."""
    chosen: int
    by_chance: bool
    """Whether a die was thrown."""
    told: tuple[str, ...] = ()
    """The shares of the last stage in words."""


class ChoiceBar(Animated):
    """The shares side by side; the chosen one is filled."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("choiceBar")
        self._choice: ChoiceDistribution | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("What could have been chosen"))

    def show_choice(self, choice: ChoiceDistribution, moves: bool) -> None:
        """Show this one, as it comes about where it `moves`."""
        if choice == self._choice:
            return
        self._choice = choice
        told = (f"{label} {share}".strip() for label, share in zip_longest(choice.labels, choice.told, fillvalue=""))
        self.setAccessibleDescription("; ".join(told))
        self.begin(moves)

    def sizeHint(self) -> QSize:
        """A bar, and the room to fall."""
        return QSize(self._theme.px(200), self._theme.px(FALL + BAR))

    def minimumSizeHint(self) -> QSize:
        """Never cut off."""
        return QSize(self._theme.px(100), self._theme.px(FALL + BAR))

    def shares(self) -> tuple[float, ...]:
        """The shares that are painted now."""
        assert self._choice is not None, "nothing is painted before there is a choice"
        return closing(self._choice.stages, part(self.progress, 0.0, CLOSED if self._choice.by_chance else 1.0))

    def ball(self) -> QPointF:
        """The middle of the ball now: above the bar as the motion begins, on the chosen share at its end."""
        assert self._choice is not None, "nothing falls before there is a choice"
        left, width = self.spans()[self._choice.chosen]
        radius, top = self._theme.px(BALL), self._theme.px(FALL)
        fallen = bounced(part(self.progress, CLOSED, 1.0))
        return QPointF(left + width / 2, between(radius, top, fallen))

    def spans(self) -> list[tuple[float, float]]:
        """Left edge and width of each share, in pixels."""
        shares = self.shares()
        lefts = accumulate(shares, initial=0.0)
        return [(left * self.width(), share * self.width()) for left, share in zip(lefts, shares, strict=False)]

    def paintEvent(self, event: QPaintEvent) -> None:
        """The bar as it is now, and the ball."""
        choice = self._choice
        if choice is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, top, height = self._theme, self._theme.px(FALL), self._theme.px(BAR)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line", 0.5))
        painter.drawRoundedRect(QRectF(0, top, self.width(), height), 4, 4)
        for place, (left, width) in enumerate(self.spans()):
            box = QRectF(left, top, max(0.0, width - theme.px(GAP)), height)
            self._paint_share(painter, box, choice.labels[place], place == choice.chosen)
        if choice.by_chance and part(self.progress, CLOSED, 1.0) > 0:
            radius = theme.px(BALL)
            painter.setBrush(theme.color("best"))
            painter.drawEllipse(self.ball(), radius, radius)

    def _paint_share(self, painter: QPainter, box: QRectF, label: str, chosen: bool) -> None:
        theme = self._theme
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent", 1.0 if chosen else 0.25))
        painter.drawRoundedRect(box, 4, 4)
        painter.setFont(theme.font(13, 600 if chosen else 400))
        if QFontMetricsF(painter.font()).horizontalAdvance(label) + theme.px(4) <= box.width():
            painter.setPen(theme.color("on_accent" if chosen else "text"))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label)


def closing(stages: Sequence[Sequence[float]], share: float) -> tuple[float, ...]:
    """The distribution on its way from the first stage to the last: `share` of it, each stage as long as the others."""
    place = share * (len(stages) - 1)
    before = min(int(place), len(stages) - 1)
    after = min(before + 1, len(stages) - 1)
    return tuple(between(a, b, place - before) for a, b in zip(stages[before], stages[after], strict=True))
