"""The tree view where there is no tree: what it would show, and how to come by one."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.state.run import Run
from app.theme.theme import Theme
from app.views.shared.empty_page import GAP, TitleAndHint, paint_empty_page, title_and_hint_rects, waiting_title
from resources.language import join_sentences, tr

BAR_HEIGHT = 44
"""Pixels at 100 % for the bar below the offer, which begins a chorus."""
_EXAMPLE_EDGES = (((0, 0), (1, -1), "best"), ((0, 0), (1, 1), "kept"), ((1, -1), (2, -1.5), "best"),
           ((1, -1), (2, -0.5), "pruned"), ((1, 1), (2, 1), "kept"))  # fmt: skip


def paint_empty_tree(painter: QPainter, area: QRect, theme: Theme, run: Run | None) -> None:
    """A small tree, a title and a hint."""
    words = empty_tree_texts(run)
    top = title_and_hint_rects(area, theme, words, theme.px(BAR_HEIGHT))[0].top() - theme.px(46)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if top - theme.px(36) > area.top():
        _paint_example(painter, QPointF(area.center().x() - theme.px(62), top), theme)
    paint_empty_page(painter, area, theme, words, theme.px(BAR_HEIGHT))


def empty_tree_texts(run: Run | None) -> TitleAndHint:
    """What it would show, and how to come by a tree; what is waited for, where a run is under way."""
    waiting = waiting_title(run) if run is not None and not run.tokens else ""
    hint = tr(
        "Choose beam search and press Ctrl+Enter: each continuation it considers appears here. Or have the same "
        "prompt written many times at once, and see where the texts part."
    )
    if run is not None and run.tokens:
        hint = join_sentences(tr("This run wrote one text, one token at a time."), hint)
    return waiting or tr("A tree of what might have been"), "" if waiting else hint


def offer_top(area: QRect, theme: Theme, run: Run | None) -> float:
    """Where what is offered begins."""
    return title_and_hint_rects(area, theme, empty_tree_texts(run), theme.px(BAR_HEIGHT))[1].bottom() + theme.px(GAP)


def _paint_example(painter: QPainter, corner: QPointF, theme: Theme) -> None:
    step, rise, width, height = theme.px(50), theme.px(20), theme.px(24), theme.px(11)
    for (x0, y0), (x1, y1), colour in _EXAMPLE_EDGES:
        start = corner + QPointF(x0 * step + width, y0 * rise)
        end = corner + QPointF(x1 * step, y1 * rise)
        middle = (start.x() + end.x()) / 2
        path = QPainterPath(start)
        path.cubicTo(QPointF(middle, start.y()), QPointF(middle, end.y()), end)
        painter.strokePath(path, QPen(theme.color(colour), 1.6))
        _paint_node(painter, end, width, height, theme, colour)
    _paint_node(painter, corner, width, height, theme, "muted")


def _paint_node(painter: QPainter, left: QPointF, width: float, height: float, theme: Theme, colour: str) -> None:
    painter.setPen(QPen(theme.color(colour), 1.6))
    painter.setBrush(theme.color("panel"))
    painter.drawRoundedRect(QRectF(left.x(), left.y() - height / 2, width, height), 3, 3)
