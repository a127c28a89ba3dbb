"""Where the stages of a funnel are drawn, and which of them is where."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLineF, QRect

from app.theme.theme import Theme
from app.widgets.funnel_painting import FunnelPainter, FunnelStage

MAX_SIDE_BY_SIDE = 5
"""More stages than this are listed below each other."""


@dataclass(frozen=True)
class FunnelLayout:
    """The stages in a room of this width and height, in pixels."""

    theme: Theme
    stages: tuple[FunnelStage, ...]
    width: int
    height: int

    @property
    def is_listed(self) -> bool:
        """Whether there are too many stages to stand side by side."""
        return len(self.stages) > MAX_SIDE_BY_SIDE

    @property
    def movable_stages(self) -> list[str]:
        """The stages that can change places, by name."""
        return [stage.name for stage in self.stages if stage.name]

    @property
    def painter(self) -> FunnelPainter:
        """What draws them there."""
        return FunnelPainter(self.theme, self.stages, self.width, self.is_listed)

    def stage_index(self, name: str) -> int:
        """The place of a stage that can be moved among all."""
        return next(number for number, stage in enumerate(self.stages) if stage.name == name)

    def rect(self, number: int) -> QRect:
        """Where a stage is drawn, its words included."""
        if self.is_listed:
            height = self.theme.px(24)
            return QRect(0, number * height, self.width, height)
        cell = self.painter.cells()[number].toAlignedRect()
        return cell.adjusted(0, 0, 0, self.height - cell.height())

    def stage_at(self, x: float, y: float) -> FunnelStage | None:
        """The stage at a point."""
        if not self.stages:
            return None
        stage_position = y / self.theme.px(24) if self.is_listed else x / max(1, self.width) * len(self.stages)
        return self.stages[int(stage_position)] if 0 <= stage_position < len(self.stages) else None

    def movable_at(self, x: float, y: float) -> str:
        """The name of the stage at a point, where it has another to change places with; else empty."""
        stage = self.stage_at(x, y)
        return stage.name if stage is not None and len(self.movable_stages) > 1 else ""

    def target_index(self, x: float, y: float) -> int:
        """The place among the movable ones that a point is nearest to."""
        middle = [self.rect(self.stage_index(name)).center() for name in self.movable_stages]
        ways = [abs(point.y() - y) if self.is_listed else abs(point.x() - x) for point in middle]
        return ways.index(min(ways))

    def insertion_line(self, dragged: str, target: int) -> QLineF:
        """The line at which the stage that is `dragged` would come to lie, at that place among the movable ones."""
        names = self.movable_stages
        rect, is_behind = self.rect(self.stage_index(names[target])), target > names.index(dragged)
        if self.is_listed:
            y = rect.bottom() + 1 if is_behind else rect.top()
            return QLineF(0, y, self.width, y)
        x = rect.right() + 1 + self.theme.px(4) if is_behind else rect.left() - self.theme.px(4)
        return QLineF(x, 0, x, self.height)
