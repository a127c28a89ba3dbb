"""A view with nothing to show yet: what it is for, and how to come by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QWidget

from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import View
from app.widgets.empty_offer import FillButton
from resources.language import tr

TitleAndHint = tuple[str, str]
"""Title and hint."""
GAP, BUTTON_HEIGHT = 14, 40
"""Pixels at 100 % between the words and what is offered below them, and for that."""
_FLAGS = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap


def waiting_title(run: Run | None) -> str:
    """What a run is doing before its first token; empty where none is under way."""
    if run is None or run.finished is not None or run.outcome is not None:
        return ""
    return (
        tr("Loading {name}…").format(name=Path(run.request.model).name) if run.is_loading else tr("Reading the prompt…")
    )


def add_fill_button(
    view: View, parent: QWidget, text: str, action: str, title_and_hint: Callable[[], TitleAndHint], offset: int = 0
) -> FillButton:
    """The button below the words of an empty page, which asks for what is `action`; `title_and_hint()` are those words now, and
    `offset` how many pixels (at 100 %) lower than usual they stand."""
    offer = FillButton(text, parent, lambda area, theme: button_top(area, theme, title_and_hint(), offset))
    offer.fillRequested.connect(lambda: view.signals.fillRequested.emit(action))
    return offer


def button_top(area: QRect, theme: Theme, title_and_hint: TitleAndHint, offset: int = 0) -> float:
    """Where the words of an empty page end, and some room below them."""
    return title_and_hint_rects(area, theme, title_and_hint)[1].bottom() + theme.px(GAP + offset)


def title_and_hint_rects(
    area: QRect, theme: Theme, title_and_hint: TitleAndHint, extra: float = 0
) -> tuple[QRectF, QRectF]:
    """Where title and hint stand: in the middle, or higher where what is offered below them needs the room, and
    `extra` pixels more."""
    side = max(theme.px(16), (area.width() - theme.px(460)) / 2)
    room = QRectF(0, 0, area.width() - 2 * side, 10_000)
    title = QFontMetricsF(theme.font(18, 600)).boundingRect(room, int(_FLAGS), title_and_hint[0]).height()
    hint = QFontMetricsF(theme.font(14)).boundingRect(room, int(_FLAGS), title_and_hint[1]).height()
    title = max(title, theme.px(28))
    total = title + theme.px(4) + hint + theme.px(GAP + BUTTON_HEIGHT) + extra
    usual = QRectF(area).center().y() - theme.px(24)
    top = max(area.top() + 4.0, min(usual, area.bottom() - total))
    return QRectF(side, top, room.width(), title), QRectF(side, top + title + theme.px(4), room.width(), hint)


def paint_empty_page(
    painter: QPainter, area: QRect, theme: Theme, title_and_hint: TitleAndHint, extra: float = 0
) -> None:
    """A title and a hint below it."""
    places = title_and_hint_rects(area, theme, title_and_hint, extra)
    for text, place, font, color in zip(
        title_and_hint, places, (theme.font(18, 600), theme.font(14)), ("text", "muted"), strict=True
    ):
        painter.setFont(font)
        painter.setPen(theme.color(color))
        painter.drawText(place, int(_FLAGS), text)
