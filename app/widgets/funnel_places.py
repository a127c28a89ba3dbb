"""Where the stages of a funnel are drawn, and which of them is where."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLineF, QRect

from app.theme.theme import Theme
from app.widgets.funnel_painting import FunnelPainter, PaintedStage

SIDE_BY_SIDE = 5
"""More stages than this are listed below each other."""


@dataclass(frozen=True)
class FunnelPlaces:
    """The stages in a room of this width and height, in pixels."""

    theme: Theme
    stages: tuple[PaintedStage, ...]
    width: int
    height: int

    @property
    def listed(self) -> bool:
        """Whether there are too many stages to stand side by side."""
        return len(self.stages) > SIDE_BY_SIDE

    @property
    def movable(self) -> list[str]:
        """The stages that can change places, by name."""
        return [stage.name for stage in self.stages if stage.name]

    @property
    def painter(self) -> FunnelPainter:
        """What draws them there."""
        return FunnelPainter(self.theme, self.stages, self.width, self.listed)

    def number(self, name: str) -> int:
        """The place of a stage that can be moved among all."""
        return next(number for number, stage in enumerate(self.stages) if stage.name == name)

    def rect(self, number: int) -> QRect:
        """Where a stage is drawn, its words included."""
        if self.listed:
            height = self.theme.px(24)
            return QRect(0, number * height, self.width, height)
        cell = self.painter.cells()[number].toAlignedRect()
        return cell.adjusted(0, 0, 0, self.height - cell.height())

    def stage_at(self, x: float, y: float) -> PaintedStage | None:
        """The stage at a point."""
        if not self.stages:
            return None
        share = y / self.theme.px(24) if self.listed else x / max(1, self.width) * len(self.stages)
        return self.stages[int(share)] if 0 <= share < len(self.stages) else None

    def movable_at(self, x: float, y: float) -> str:
        """The name of the stage at a point, where it has another to change places with; else empty."""
        stage = self.stage_at(x, y)
        return stage.name if stage is not None and len(self.movable) > 1 else ""

    def place_at(self, x: float, y: float) -> int:
        """The place among the movable ones that a point is nearest to."""
        middle = [self.rect(self.number(name)).center() for name in self.movable]
        ways = [abs(point.y() - y) if self.listed else abs(point.x() - x) for point in middle]
        return ways.index(min(ways))

    def gap(self, taken: str, place: int) -> QLineF:
        """The line at which the stage that is `taken` would come to lie, at that place among the movable ones."""
        names = self.movable
        rect, is_behind = self.rect(self.number(names[place])), place > names.index(taken)
        if self.listed:
            y = rect.bottom() + 1 if is_behind else rect.top()
            return QLineF(0, y, self.width, y)
        x = rect.right() + 1 + self.theme.px(4) if is_behind else rect.left() - self.theme.px(4)
        return QLineF(x, 0, x, self.height)
