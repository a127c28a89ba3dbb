"""Animated displays of a choice: the probability bar, the ranking of beams, and the stamps of a draft."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, zip_longest
from typing import Literal, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.animation.motion import AnimatedWidget, bounce, interpolate, sub_progress
from decodescope.app.widgets.bars import paint_gap_dots
from decodescope.resources.language import tr

BAR_HEIGHT, FALL_HEIGHT, BALL_RADIUS, SEGMENT_GAP = 22, 14, 5, 1
"""Pixels at 100 %: bar height, room above it, radius of the ball, gap between segments."""
NARROWING_FRACTION = 0.5
"""Fraction of the motion in which the bar narrows; the ball falls in the rest."""


GAP_WIDTH = 18
"""Width of the gap that stands for tokens left out, in pixels at 100 %."""


class ChoiceDistribution(NamedTuple):
    """The possible choices of a step, and the chosen one."""

    labels: tuple[str, ...]
    stages: tuple[tuple[float, ...], ...]
    """Probabilities of `labels` per stage, starting with the model's own. The rest belongs to all other tokens."""
    chosen: int
    is_sampled: bool
    """Whether the choice was random."""
    formatted_probabilities: tuple[str, ...] = ()
    """The probabilities of the last stage, formatted."""
    has_gap: bool = False
    """Whether tokens between the last label and the one before it are left out."""


class ChoiceBar(AnimatedWidget):
    """The probabilities side by side; the chosen one is filled."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("choiceBar")
        self._choice: ChoiceDistribution | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Possible choices"))

    def show_choice(self, choice: ChoiceDistribution, animate: bool) -> None:
        """Show a choice, with its motion if `animate`."""
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
        """Return the size of the bar with room for the ball to fall."""
        return QSize(self._theme.px(200), self._theme.px(FALL_HEIGHT + BAR_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """Return a size that shows the full height."""
        return QSize(self._theme.px(100), self._theme.px(FALL_HEIGHT + BAR_HEIGHT))

    def probabilities(self) -> tuple[float, ...]:
        """Return the probabilities as painted at this moment."""
        assert self._choice is not None, "nothing is painted before there is a choice"
        return interpolate_stages(
            self._choice.stages,
            sub_progress(self.progress, 0.0, NARROWING_FRACTION if self._choice.is_sampled else 1.0),
        )

    def ball_center(self) -> QPointF:
        """Return the centre of the ball: above the bar at the start, on the chosen segment at the end."""
        assert self._choice is not None, "nothing falls before there is a choice"
        left, width = self.spans()[self._choice.chosen]
        radius, top = self._theme.px(BALL_RADIUS), self._theme.px(FALL_HEIGHT)
        fallen = bounce(sub_progress(self.progress, NARROWING_FRACTION, 1.0))
        return QPointF(left + width / 2, interpolate(radius, top, fallen))

    def spans(self) -> list[tuple[float, float]]:
        """Return the left edge and width of each segment in pixels."""
        shares, width = self.probabilities(), self.width()
        lefts = accumulate(shares, initial=0.0)
        spans = [(left * width, share * width) for left, share in zip(lefts, shares, strict=False)]
        if self._choice is not None and self._choice.has_gap:
            left, last = spans[-1]
            spans[-1] = (min(left + self._gap_width, max(left, width - last)), last)
        return spans

    @property
    def _gap_width(self) -> float:
        return float(self._theme.px(GAP_WIDTH))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bar and the ball at the current progress."""
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
        if choice.has_gap:
            left = self.spans()[-1][0] - self._gap_width
            paint_gap_dots(painter, theme, QPointF(left + theme.px(1), top + height / 2))
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
    """Interpolate from the first stage to the last: `fraction` of the way, with equal time per stage."""
    stage_position = fraction * (len(stages) - 1)
    before = min(int(stage_position), len(stages) - 1)
    after = min(before + 1, len(stages) - 1)
    return tuple(interpolate(a, b, stage_position - before) for a, b in zip(stages[before], stages[after], strict=True))


ROW_HEIGHT = 18
"""Height of a row in pixels at 100 %."""
MAX_ROWS = 3
"""Maximum number of shown rows."""


class BeamRow(NamedTuple):
    """One beam."""

    node: int
    parent: int
    """The node that this beam continues; its own node if it has ended."""
    text: str
    figure: str


class BeamLadder(AnimatedWidget):
    """The best beams; `row_positions` returns where each is painted."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("beamLadder")
        self._beams: tuple[BeamRow, ...] = ()
        self._previous_rows: dict[int, float] = {}
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Beams by rank"))

    def show_beams(self, beams: Sequence[BeamRow], animate: bool) -> None:
        """Show the beams, best first. Each starts from the row of the beam that it continues."""
        if tuple(beams) == self._beams:
            return
        self._previous_rows = {rung.node: float(place) for place, rung in enumerate(self._beams)}
        self._beams = tuple(beams)
        self.setAccessibleDescription("; ".join(f"{rung.text} {rung.figure}" for rung in beams))
        self.updateGeometry()
        self.start_motion(animate)

    def row_positions(self) -> list[float]:
        """Return the current row of each beam; a whole number when the motion ends."""
        last = float(len(self._beams))
        starts = [
            self._previous_rows.get(rung.node, self._previous_rows.get(rung.parent, last)) for rung in self._beams
        ]
        return [interpolate(start, place, self.progress) for place, start in enumerate(starts)]

    def sizeHint(self) -> QSize:
        """Return a height with one row per beam."""
        return QSize(self._theme.px(200), self._row_height * min(MAX_ROWS, max(1, len(self._beams))))

    def minimumSizeHint(self) -> QSize:
        """Return a size that shows the full height."""
        return QSize(self._theme.px(100), self.sizeHint().height())

    @property
    def _row_height(self) -> int:
        return max(self._theme.px(ROW_HEIGHT), round(QFontMetricsF(self._theme.font(13)).height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the beams at their current rows, the leader last and therefore in front."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, rung in reversed(list(zip(self.row_positions(), self._beams, strict=True))):
            box = QRectF(0, place * self._row_height, self.width(), self._row_height)
            self._paint_beam(painter, box, rung, leads=rung is self._beams[0])

    def _paint_beam(self, painter: QPainter, box: QRectF, rung: BeamRow, leads: bool) -> None:
        theme = self._theme
        painter.setFont(theme.font(13, 600 if leads else 400, tabular=True))
        metrics = QFontMetricsF(painter.font())
        room = box.width() - metrics.horizontalAdvance(rung.figure) - theme.px(14)
        painter.fillRect(box, theme.color("panel", 0.85))
        painter.setPen(theme.color("best" if leads else "text"))
        shown = metrics.elidedText(rung.text, Qt.TextElideMode.ElideLeft, room)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, rung.figure)


CHIP_HEIGHT, STAMP_SIZE, CHIP_PADDING, CHIP_GAP = 24, 11, 8, 5
"""Pixels at 100 %: height of a chip, side of its stamp, padding at its ends, gap between chips."""
STAMP_START_SCALE = 2.2
"""Scale at which a stamp starts its motion."""
DraftOutcome = Literal["accepted", "refused", "unreached", "bonus", "correction"]
OUTCOME_COLOURS: dict[DraftOutcome, str] = {
    "accepted": "kept",
    "refused": "refused",
    "unreached": "pruned",
    "bonus": "finished",
    "correction": "refused",
}


class DraftChip(NamedTuple):
    """One token of the draft, or the model's own token after it."""

    label: str
    outcome: DraftOutcome


class DraftStamps(AnimatedWidget):
    """Chips in order; those that do not fit are counted at the end."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("draftStamps")
        self._chips: tuple[DraftChip, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("The draft, checked"))

    def show_chips(self, chips: Sequence[DraftChip], animate: bool) -> None:
        """Show the chips; their stamps come down one after another if `animate`."""
        if tuple(chips) == self._chips:
            return
        self._chips = tuple(chips)
        self.setAccessibleDescription("; ".join(f"{chip.label} {chip.outcome}" for chip in chips))
        self.start_motion(animate)

    def stamp_progress(self, index: int) -> float:
        """Return how far the stamp of a chip has come down, 0 to 1."""
        duration = 1 / max(1, len(self._chips))
        return sub_progress(self.progress, index * duration, (index + 1) * duration)

    def sizeHint(self) -> QSize:
        """Return the size of one line."""
        return QSize(self._theme.px(200), self._theme.px(CHIP_HEIGHT + 4))

    def minimumSizeHint(self) -> QSize:
        """Return a size that shows the full height."""
        return QSize(self._theme.px(100), self._theme.px(CHIP_HEIGHT + 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint as many chips as fit."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(13))
        metrics, theme, left = QFontMetricsF(painter.font()), self._theme, 2.0
        for index, chip in enumerate(self._chips):
            width = metrics.horizontalAdvance(chip.label) + theme.px(2 * CHIP_PADDING + STAMP_SIZE + 4)
            more = f"+{len(self._chips) - index}"
            rest = metrics.horizontalAdvance(more) + theme.px(CHIP_GAP) if index + 1 < len(self._chips) else 0.0
            if left + width + rest > self.width():
                painter.setPen(theme.color("muted"))
                painter.drawText(
                    QRectF(left, 0, self.width() - left, self.height()), Qt.AlignmentFlag.AlignVCenter, more
                )
                return
            self._paint_chip(painter, QRectF(left, 2, width, theme.px(CHIP_HEIGHT)), chip, self.stamp_progress(index))
            left += width + theme.px(CHIP_GAP)

    def _paint_chip(self, painter: QPainter, box: QRectF, chip: DraftChip, down: float) -> None:
        theme, colour = self._theme, self._theme.color(OUTCOME_COLOURS[chip.outcome])
        reached = chip.outcome != "unreached"
        line = Qt.PenStyle.SolidLine if reached else Qt.PenStyle.DashLine
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour if down > 0 else theme.color("line"), theme.px(1.5), line))
        painter.drawRoundedRect(box, theme.px(6), theme.px(6))
        painter.setPen(theme.color("text" if reached else "muted"))
        words = box.adjusted(theme.px(CHIP_PADDING), 0, 0, 0)
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, chip.label)
        if reached and down > 0:
            colour.setAlphaF(min(1.0, 0.3 + 0.7 * down))
            middle = QPointF(box.right() - theme.px(CHIP_PADDING + STAMP_SIZE / 2), box.center().y())
            side = theme.px(STAMP_SIZE) * interpolate(STAMP_START_SCALE, 1.0, down) / 2
            painter.setPen(QPen(colour, theme.px(2.4), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            _paint_stamp(painter, middle, side, chip.outcome in ("refused", "correction"))


def _paint_stamp(painter: QPainter, middle: QPointF, half: float, crossed: bool) -> None:
    """Paint a cross or a check mark."""
    x, y = middle.x(), middle.y()
    if crossed:
        painter.drawLine(QPointF(x - half, y - half), QPointF(x + half, y + half))
        painter.drawLine(QPointF(x - half, y + half), QPointF(x + half, y - half))
    else:
        painter.drawPolyline(
            [QPointF(x - half, y), QPointF(x - half / 4, y + half * 0.8), QPointF(x + half, y - half * 0.8)]
        )
