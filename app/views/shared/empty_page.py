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
from app.widgets.empty_offer import EmptyOffer
from resources.language import tr

Words = tuple[str, str]
"""Title and hint."""
GAP, OFFER = 14, 40
"""Pixels at 100 % between the words and what is offered below them, and for that."""
_FLAGS = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap


def waiting_title(run: Run | None) -> str:
    """What a run is doing before its first token; empty where none is under way."""
    if run is None or run.finished is not None or run.outcome is not None:
        return ""
    return (
        tr("Loading {name}…").format(name=Path(run.request.model).name) if run.is_loading else tr("Reading the prompt…")
    )


def offer_on(
    view: View, over: QWidget, text: str, wanted: str, words: Callable[[], Words], down: int = 0
) -> EmptyOffer:
    """The button below the words of an empty page, which asks for what is `wanted`; `words()` are those words now, and
    `down` how many pixels (at 100 %) lower than usual they stand."""
    offer = EmptyOffer(text, over, lambda area, theme: below(area, theme, words(), down))
    offer.wanted.connect(lambda: view.signals.fillWanted.emit(wanted))
    return offer


def below(area: QRect, theme: Theme, words: Words, down: int = 0) -> float:
    """Where the words of an empty page end, and some room below them."""
    return laid_out(area, theme, words)[1].bottom() + theme.px(GAP + down)


def laid_out(area: QRect, theme: Theme, words: Words, extra: float = 0) -> tuple[QRectF, QRectF]:
    """Where title and hint stand: in the middle, or higher where what is offered below them needs the room, and
    `extra` pixels more."""
    side = max(theme.px(16), (area.width() - theme.px(460)) / 2)
    room = QRectF(0, 0, area.width() - 2 * side, 10_000)
    title = QFontMetricsF(theme.font(18, 600)).boundingRect(room, int(_FLAGS), words[0]).height()
    hint = QFontMetricsF(theme.font(14)).boundingRect(room, int(_FLAGS), words[1]).height()
    title = max(title, theme.px(28))
    total = title + theme.px(4) + hint + theme.px(GAP + OFFER) + extra
    usual = QRectF(area).center().y() - theme.px(24)
    top = max(area.top() + 4.0, min(usual, area.bottom() - total))
    return QRectF(side, top, room.width(), title), QRectF(side, top + title + theme.px(4), room.width(), hint)


def paint_empty_page(painter: QPainter, area: QRect, theme: Theme, words: Words, extra: float = 0) -> None:
    """A title and a hint below it."""
    places = laid_out(area, theme, words, extra)
    for text, place, font, color in zip(
        words, places, (theme.font(18, 600), theme.font(14)), ("text", "muted"), strict=True
    ):
        painter.setFont(font)
        painter.setPen(theme.color(color))
        painter.drawText(place, int(_FLAGS), text)
