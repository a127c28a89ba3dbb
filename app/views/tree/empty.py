"""The tree view where there is no tree: what it would show, and how to come by one."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.state.run import Run
from app.theme.theme import Theme
from app.views.shared.empty_page import paint_empty_page, waiting_title
from resources.language import sentences, tr

_SAMPLE = (((0, 0), (1, -1), "best"), ((0, 0), (1, 1), "kept"), ((1, -1), (2, -1.5), "best"),
           ((1, -1), (2, -0.5), "pruned"), ((1, 1), (2, 1), "kept"))  # fmt: skip


def paint_empty(painter: QPainter, area: QRect, theme: Theme, run: Run | None) -> None:
    """A small tree, a title and a hint."""
    waiting = waiting_title(run) if run is not None and not run.tokens else ""
    title = waiting or tr("A tree of what might have been")
    hint = tr(
        "Choose beam search and press Ctrl+Enter: each continuation it considers appears here. Or have the same "
        "prompt written many times at once, and see where the texts part."
    )
    if run is not None and run.tokens:
        hint = sentences(tr("This run wrote one text, one token at a time."), hint)
    top = sample_top(area, theme)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _sample(painter, QPointF(area.center().x() - theme.px(62), top), theme)
    paint_empty_page(painter, area, theme, title, "" if waiting else hint)


def sample_top(area: QRect, theme: Theme) -> float:
    """Where the small tree stands in an empty page."""
    return QRectF(area).center().y() - theme.px(70)


def _sample(painter: QPainter, corner: QPointF, theme: Theme) -> None:
    step, rise, width, height = theme.px(50), theme.px(20), theme.px(24), theme.px(11)
    for (x0, y0), (x1, y1), colour in _SAMPLE:
        start = corner + QPointF(x0 * step + width, y0 * rise)
        end = corner + QPointF(x1 * step, y1 * rise)
        middle = (start.x() + end.x()) / 2
        path = QPainterPath(start)
        path.cubicTo(QPointF(middle, start.y()), QPointF(middle, end.y()), end)
        painter.strokePath(path, QPen(theme.color(colour), 1.6))
        _box(painter, end, width, height, theme, colour)
    _box(painter, corner, width, height, theme, "muted")


def _box(painter: QPainter, left: QPointF, width: float, height: float, theme: Theme, colour: str) -> None:
    painter.setPen(QPen(theme.color(colour), 1.6))
    painter.setBrush(theme.color("panel"))
    painter.drawRoundedRect(QRectF(left.x(), left.y() - height / 2, width, height), 3, 3)
