"""Style of node states: the same colour, line and shape in trees, tables and legends."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainterPath, QPen

from decodescope.app.theme.theme import Theme, blend

STAR = "★"
_COLOURS = {
    "root": "muted", "kept": "kept", "accepted": "kept", "pruned": "pruned", "unreached": "pruned", "best": "best",
    "finished": "finished", "lone": "pruned", "cut": "muted", "stopped": "pruned", "bonus": "finished",
    "refused": "refused", "correction": "refused",
}  # fmt: skip
DASHED = frozenset({"pruned", "unreached", "refused", "stopped"})
PILLS = frozenset({"finished", "bonus"})
CUT = frozenset({"cut", "stopped"})
"""States whose boxes have a slanting right end: the text was cut by the limit, or the search ended before it."""
STRUCK = frozenset({"refused"})
DIMMED = frozenset({"pruned", "unreached", "lone"})
"""States that the setting for pruned branches affects."""
DIMMED_OPACITY = 0.85
"""Opacity of dimmed branches: the lowest that still stands out from the background."""
PAINT_ORDER = (
    "unreached",
    "pruned",
    "lone",
    "refused",
    "root",
    "kept",
    "accepted",
    "correction",
    "stopped",
    "cut",
    "finished",
    "bonus",
    "best",
)
"""Paint order: the first state is at the bottom."""


@dataclass(slots=True)
class TreeStyle:
    """Options for drawing besides the tree."""

    theme: Theme
    pruned: str = "dimmed"
    best_path: list[int] = field(default_factory=list)
    """Path of the best node, from the root."""
    selected_path: list[int] = field(default_factory=list)
    """Path of the selected node, from the root."""
    search_matches: frozenset[int] = frozenset()
    hovered: int | None = None
    focused: bool = False
    lane_titles: dict[int, str] = field(default_factory=dict)
    """Titles of the lanes."""
    _colours: dict[tuple[str, float], QColor] = field(default_factory=dict)
    _plain: dict[str, QColor] = field(default_factory=dict)

    @property
    def selected(self) -> int | None:
        """The selected node."""
        return self.selected_path[-1] if self.selected_path else None

    def set_theme(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        self._colours.clear()
        self._plain.clear()

    def theme_colour(self, name: str) -> QColor:
        """Return a colour of the theme, cached."""
        if name not in self._plain:
            self._plain[name] = self.theme.color(name)
        return self._plain[name]

    def state_colour(self, state: str, opacity: float = 1.0) -> QColor:
        """Return the line colour of a state, mixed with the window's background by `opacity`."""
        if state in DIMMED and self.pruned == "dimmed":
            opacity *= DIMMED_OPACITY
        key = (state, opacity)
        if key not in self._colours:
            over = self.theme_colour(_COLOURS[state])
            self._colours[key] = over if opacity >= 1 else blend(over, self.theme_colour("window"), opacity)
        return self._colours[key]

    def label_colour(self, state: str) -> QColor:
        """Return the colour of the label in a box."""
        if state in DIMMED:
            return self.theme_colour("muted" if self.pruned == "dimmed" else "text")
        return self.theme_colour("muted" if state in STRUCK else "text")

    def outline_pen(self, state: str, scale: float = 1.0) -> QPen:
        """Return the pen around a box."""
        pen = QPen(self.state_colour(state), (2.6 if state == "best" else 1.5) * scale)
        return dashed_pen(pen) if state in DASHED else pen


def node_outline(state: str, box: QRectF, radius: float) -> QPainterPath:
    """Return the outline of a node's box: a pill, a box with a slanting right end, or one with corners of `radius`."""
    path = QPainterPath()
    if state in PILLS:
        path.addRoundedRect(box, box.height() / 2, box.height() / 2)
    elif state in CUT:
        slant = box.height() * 0.4
        path.moveTo(box.left() + radius, box.top())
        path.lineTo(box.right(), box.top())
        path.lineTo(box.right() - slant, box.bottom())
        path.lineTo(box.left() + radius, box.bottom())
        path.quadTo(box.bottomLeft(), QPointF(box.left(), box.bottom() - radius))
        path.lineTo(box.left(), box.top() + radius)
        path.quadTo(box.topLeft(), QPointF(box.left() + radius, box.top()))
        path.closeSubpath()
    else:
        path.addRoundedRect(box, radius, radius)
    return path


def edge_width(weight: float) -> float:
    """Return the edge width in pixels at zoom 1 for a weight from 0 to 1."""
    return 1.0 + 4.0 * min(1.0, max(0.0, weight))


def dashed_pen(pen: QPen) -> QPen:
    """Return the pen with short dashes whose length does not depend on its width."""
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    unit = max(pen.widthF(), 0.1)
    pen.setDashPattern([3.2 / unit, 2.6 / unit])
    return pen
