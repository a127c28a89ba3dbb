"""The key to a round's tree: who drafted, with marks and shares, what became of a token; on as many lines as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme
from app.views.tree.tools import TreeLegend
from app.widgets.drafter_marks import MARK_SIZE, drafter_letter, paint_drafter_mark
from core import words
from resources.language import mark, tr

_STATES = (
    ("kept", mark("accepted")),
    ("refused", mark("refused")),
    ("pruned", mark("never reached")),
    ("correction", mark("correction")),
    ("bonus", mark("bonus")),
)
_LINE_HEIGHT, _MARK_WIDTH, _GAP = 24, 30, 20
"""Pixels at 100 %: a line, a mark with the space behind it, between entries."""


def _drafter_text(name: str, accepted: int, verified: int) -> str:
    """`draft-small · 62 % kept`; the name alone where nothing was examined."""
    return tr("{name} · {share} kept").format(name=name, share=words.percent(accepted / verified)) if verified else name


class SpeculationLegend(TreeLegend):
    """Drafters where there are several, then the states."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.show_marks(_STATES, "")
        self._drafters: list[str] = []
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_drafters(self, names: Sequence[str], acceptance: Sequence[tuple[int, int]]) -> None:
        """`acceptance`: (accepted, examined) tokens of each; fewer than two drafters have no marks."""
        told = [_drafter_text(name, *share) for name, share in zip(names, acceptance, strict=True)]
        drafters = told if len(names) > 1 else []
        if drafters != self._drafters:
            self._drafters = drafters
            marked = [f"{drafter_letter(number)}: {text}" for number, text in enumerate(drafters)]
            marks = ", ".join(word for _, word in self._entries)
            self.setAccessibleName("; ".join([*marked, tr("Marks of the tree: {marks}").format(marks=marks)]))
            self.updateGeometry()
            self.update()

    @property
    def drafters(self) -> list[str]:
        """What stands behind each drafter's mark."""
        return list(self._drafters)

    def sizeHint(self) -> QSize:
        """All lines at the present width."""
        return QSize(self._style.theme.px(300), self.heightForWidth(max(self.width(), 1)))

    def minimumSizeHint(self) -> QSize:
        """Narrow, and as high as it has to be."""
        return QSize(self._style.theme.px(160), self.sizeHint().height())

    def heightForWidth(self, width: int) -> int:
        """Lines, and a little air."""
        last = max((place.y() for _, _, place in self._entry_positions(width)), default=0.0)
        return round(last) + self._style.theme.px(_LINE_HEIGHT + 6)

    def _entry_positions(self, width: float) -> Iterator[tuple[int | str, str, QPointF]]:
        """(drafter or state, words, upper left corner); drafters end with their line."""
        theme = self._style.theme
        fm, left = QFontMetricsF(theme.font(12)), float(theme.px(16))
        x, y, before = left, float(theme.px(2)), False
        entries: list[tuple[int | str, str]] = [*enumerate(self._drafters), *self._entries]
        for what, text in entries:
            wide = theme.px(_MARK_WIDTH) + fm.horizontalAdvance(text)
            changes = before and isinstance(what, str)
            if x > left and (changes or x + wide > width - theme.px(8)):
                x, y = left, y + theme.px(_LINE_HEIGHT)
            yield what, text, QPointF(x, y)
            x, before = x + wide + theme.px(_GAP), isinstance(what, int)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Mark, words, mark, words."""
        theme, painter = self._style.theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        for what, text, place in self._entry_positions(self.width()):
            self._paint_entry(painter, theme, what, text, place)
        painter.end()

    def _paint_entry(self, painter: QPainter, theme: Theme, what: int | str, text: str, place: QPointF) -> None:
        middle = place.y() + theme.px(_LINE_HEIGHT) / 2
        if isinstance(what, int):
            side = MARK_SIZE * theme.scale
            paint_drafter_mark(painter, theme, what, QRectF(place.x() + theme.px(5), middle - side / 2, side, side))
        else:
            self._paint_mark(painter, what, QRectF(place.x(), middle - theme.px(6), theme.px(24), theme.px(12)))
        painter.setPen(theme.color("muted"))
        left = place.x() + theme.px(_MARK_WIDTH)
        box = QRectF(left, place.y(), self.width() - left - theme.px(8), theme.px(_LINE_HEIGHT))
        shown = QFontMetricsF(painter.font()).elidedText(text, Qt.TextElideMode.ElideMiddle, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
