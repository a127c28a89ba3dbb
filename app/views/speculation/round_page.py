"""Compare drafting with plain decoding: repeat the shown run without a draft, then with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest, without_speculation
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import ViewSignals
from decodescope.app.views.speculation.cards import SpeculationCards
from decodescope.app.views.speculation.round_report import EXTRA_NODE, RoundSelection, describe_round, round_tree
from decodescope.app.views.tree.tools import CELL, TreeLegend
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.drafter_marks import MARK_SIZE, drafter_letter, paint_drafter_mark
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.tree_canvas import TreeCanvas
from decodescope.app.widgets.tree_canvas.geometry import LINE_GAP, TreeMetrics
from decodescope.app.widgets.tree_canvas.navigation import LINE_MARGIN
from decodescope.core import words
from decodescope.core.events import DraftRound
from decodescope.resources.language import mark, tr


class DraftComparison(QObject):
    """Request both runs for the cards, and pass their metrics to the cards."""

    def __init__(self, cards: SpeculationCards, round_selection: RoundSelection, signals: ViewSignals) -> None:
        super().__init__(cards)
        self._cards, self._selection, self._signals = cards, round_selection, signals
        cards.measureWanted.connect(self._request_runs)

    @Slot()
    def _request_runs(self) -> None:
        if self._selection.run is not None:
            request = self._selection.run.request
            self._signals.sideRunsRequested.emit([without_speculation(request), request])

    def add_result(self, run: Run) -> None:
        """Use the metrics of a measured run if it is one of the two."""
        shown = self._selection.run
        if shown is None:
            return
        if _is_same_request(run.request, without_speculation(shown.request)):
            self._cards.show_plain(run.finished)
        elif _is_same_request(run.request, shown.request):
            self._cards.show_drafted(run.finished)


def _is_same_request(one: RunRequest, other: RunRequest) -> bool:
    """Return whether two requests are the same, ignoring settings that measurements change."""
    return replace(one, prefix_budget=0, memory_fallback=False) == replace(
        other, prefix_budget=0, memory_fallback=False
    )


_STATES = (
    ("kept", mark("accepted")),
    ("refused", mark("rejected")),
    ("pruned", mark("not reached")),
    ("correction", mark("correction")),
    ("bonus", mark("bonus")),
    (CELL, mark("not accepted")),
)
MAX_WIDGET_SIZE = 16_777_215
"""Qt's largest size of a widget: no limit."""
_LINE_HEIGHT, _MARK_WIDTH, _GAP = 24, 30, 14
"""Pixels at 100 %: height of a line, width of a mark with its space, gap between entries."""


def _drafter_text(name: str, accepted: int, verified: int) -> str:
    """Return `draft-small · 62 % accepted`, or the name alone if no token was verified."""
    return (
        tr("{name} · {share} accepted").format(name=name, share=words.percent(accepted / verified, is_exact=True))
        if verified
        else name
    )


class SpeculationLegend(TreeLegend):
    """Drafters if there are several, then the states."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.show_marks(_STATES, "")
        self._drafters: list[str] = []
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_drafters(self, names: Sequence[str], acceptance: Sequence[tuple[int, int]]) -> None:
        """Show the drafters; `acceptance` is (accepted, verified) tokens of each. A single drafter has no mark."""
        texts = [_drafter_text(name, *share) for name, share in zip(names, acceptance, strict=True)]
        drafters = texts if len(names) > 1 else []
        if drafters != self._drafters:
            self._drafters = drafters
            marked = [f"{drafter_letter(number)}: {text}" for number, text in enumerate(drafters)]
            marks = ", ".join(word for _, word in self._entries)
            self.setAccessibleName("; ".join([*marked, tr("Tree legend: {marks}").format(marks=marks)]))
            self.updateGeometry()
            self.update()

    @property
    def drafters(self) -> list[str]:
        """The text of each drafter's entry."""
        return list(self._drafters)

    def sizeHint(self) -> QSize:
        """Return the size of all lines at the current width."""
        return QSize(self._style.theme.px(300), self.heightForWidth(max(self.width(), 1)))

    def minimumSizeHint(self) -> QSize:
        """Return a narrow width with the required height."""
        return QSize(self._style.theme.px(160), self.sizeHint().height())

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines, with a margin."""
        last = max((place.y() for _, _, place in self._entry_positions(width)), default=0.0)
        return round(last) + self._style.theme.px(_LINE_HEIGHT + 6)

    def _entry_positions(self, width: float) -> Iterator[tuple[int | str, str, QPointF]]:
        """Yield (drafter or state, text, upper left corner); the states start on a new line after the drafters."""
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
        """Paint the marks and words."""
        theme, painter = self._style.theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        for what, text, place in self._entry_positions(self.width()):
            self._paint_entry(painter, theme, what, text, place)
        painter.end()

    def _paint_entry(self, painter: QPainter, theme: Theme, what: int | str, text: str, position: QPointF) -> None:
        middle = position.y() + theme.px(_LINE_HEIGHT) / 2
        if isinstance(what, int):
            side = MARK_SIZE * theme.scale
            paint_drafter_mark(painter, theme, what, QRectF(position.x() + theme.px(5), middle - side / 2, side, side))
        else:
            self._paint_mark(painter, what, QRectF(position.x(), middle - theme.px(6), theme.px(24), theme.px(12)))
        painter.setPen(theme.color("muted"))
        left = position.x() + theme.px(_MARK_WIDTH)
        box = QRectF(left, position.y(), self.width() - left - theme.px(8), theme.px(_LINE_HEIGHT))
        shown = QFontMetricsF(painter.font()).elidedText(text, Qt.TextElideMode.ElideMiddle, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)


TREE_ZOOM = 0.8
"""Zoom at which the tree's height is reserved."""
MIN_TREE_HEIGHT = 100
"""Minimum height of the tree in pixels at 100 %."""


def reserved_tree_height(rounds: Sequence[DraftRound], width: float, theme: Theme) -> float:
    """Return the height in pixels that shows every one of `rounds` legibly in a tree of this width. It is the same for
    all rounds, so that nothing moves from one to the next.
    """
    metrics = TreeMetrics(theme.scale, narrow=True)
    margins = theme.px(2 * LINE_MARGIN)
    columns = max(1, int(((width - margins) / TREE_ZOOM + metrics.depth_pitch - metrics.width) // metrics.depth_pitch))
    rows = max((_line_rows(entry, columns) for entry in rounds), default=1.0)
    return (rows * metrics.row_pitch - metrics.row_pitch + metrics.height) * TREE_ZOOM + margins


def _line_rows(entry: DraftRound, columns: int) -> float:
    """Return about how many rows the lines of a round need, including the gaps between them."""
    widths = Counter(node.depth for node in entry.nodes)
    if entry.extra_kind != "none":
        widths[len(entry.accepted) + 1] += 1
    lines = range(0, max(widths, default=0) + 1, columns)
    return sum(max(widths[depth] for depth in range(start, start + columns)) or 1 for start in lines) + LINE_GAP * (
        len(lines) - 1
    )


class _PageContent(QWidget):
    """Content of the page. Its minimum height is that at its own width: texts would need more lines at the smallest."""

    def minimumSizeHint(self) -> QSize:
        """Return the smallest width, and the height at the current one."""
        layout = self.layout()
        smallest = super().minimumSizeHint()
        if layout is None or self.width() < smallest.width():
            return smallest
        return QSize(smallest.width(), layout.totalMinimumHeightForWidth(self.width()))


class RoundPage(Themed, QScrollArea):
    """Draw the round of a `RoundSelection`."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.canvas, self.legend, self.cards = TreeCanvas(self), SpeculationLegend(self), SpeculationCards(self)
        self._description = PlainLabel("", self)
        self._drawn: tuple[int, int] | None = None
        """Run and round number of the tree on the canvas."""
        self._rounds: Sequence[DraftRound] = ()
        self._path: Sequence[int] = ()
        self._is_presenting, self._theme = False, theme_for("light")
        self.canvas.canvas_state.set_narrow(True)
        self.canvas.setAccessibleName(tr("Tree of the round"))
        self._description.setWordWrap(True)
        self._description.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setAccessibleName(tr("Round"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = _PageContent()
        self._column = arrange(QVBoxLayout(inner), margins=0, spacing=0)
        for part in (self.canvas, self.legend, self._description, self.cards):
            self._column.addWidget(part)
        self._column.addStretch()
        self._column.setStretchFactor(self.cards, 1)
        self.setWidget(inner)

    def restyle(self, theme: Theme) -> None:
        self._description.setFont(theme.font(13))
        self._description.setContentsMargins(theme.px(16), theme.px(4), theme.px(16), theme.px(4))
        self._reserve_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Reserve the tree's height for another width."""
        super().resizeEvent(event)
        self._reserve_height()

    def set_presenting(self, on: bool) -> None:
        """Show only the tree while presenting, with all available height."""
        for part in (self.legend, self._description, self.cards):
            part.setVisible(not on)
        self._is_presenting = on
        self._reserve_height()
        self.canvas.set_presenting(on)

    def clear(self) -> None:
        """Clear the page for another run."""
        self._drawn = None
        self.canvas.canvas_state.clear()
        self.cards.clear()

    def show_round(self, selection: RoundSelection) -> None:
        """Show the selected round."""
        entry, names = selection.entry, selection.drafters
        if entry is None or selection.run is None:
            return
        self.legend.show_drafters(names, selection.rounds.counts_by_drafter(len(names)))
        self._rounds = selection.rounds.rounds
        self._reserve_height()
        if self._drawn != (id(selection.run), selection.number):
            self._drawn = id(selection.run), selection.number
            self._draw_tree(entry, selection.word_before, len(names))
        self._description.setText(describe_round(entry, names))
        self.cards.show_rounds(selection.rounds, selection.count, selection.number, selection.run.finished)

    def _draw_tree(self, entry: DraftRound, before: str, drafters: int) -> None:
        self.canvas.canvas_state.set_tree(round_tree(entry, before, drafters))
        self.canvas.navigation.set_follow(False)
        end = [EXTRA_NODE] if entry.extra_kind != "none" else []  # the end of the round matters most
        self._path = (0, *entry.accepted, *end)
        self._fit_tree()

    def _fit_tree(self) -> None:
        if self._drawn is not None:
            self.canvas.navigation.show_in_lines(self._path)

    def _reserve_height(self) -> None:
        """Give the tree the height of the largest round, at most that of the page."""
        if self._is_presenting:
            self.canvas.setMinimumHeight(0)
            self.canvas.setMaximumHeight(MAX_WIDGET_SIZE)
            return
        needed = reserved_tree_height(self._rounds, self.viewport().width(), self._theme)
        smallest = self._theme.px(MIN_TREE_HEIGHT)
        height = max(smallest, min(round(needed), self.viewport().height() - self.legend.sizeHint().height()))
        if self.canvas.height() != height or self.canvas.minimumHeight() != height:
            self.canvas.setFixedHeight(height)
