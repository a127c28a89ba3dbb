"""Compare drafting with plain decoding: repeat the shown run without a draft, then with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest, without_speculation
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import ViewSignals
from decodescope.app.views.speculation.cards import SpeculationCards
from decodescope.app.views.speculation.round_report import EXTRA_NODE, RoundSelection, describe_round, round_tree
from decodescope.app.views.tree.tools import TreeLegend
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.drafter_marks import MARK_SIZE, drafter_letter, paint_drafter_mark
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.tree_canvas import TreeCanvas
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
)
_LINE_HEIGHT, _MARK_WIDTH, _GAP = 24, 30, 20
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


MIN_READABLE_ZOOM = 0.72
"""Minimum zoom at which a tree is still shown completely."""


MIN_TREE_HEIGHT = 190
"""Minimum height of the tree in pixels at 100 %."""


class RoundPage(Themed, QScrollArea):
    """Draw the round of a `RoundSelection`."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.canvas, self.legend, self.cards = TreeCanvas(self), SpeculationLegend(self), SpeculationCards(self)
        self._description = PlainLabel("", self)
        self._drawn: tuple[int, int] | None = None
        """Run and round number of the tree on the canvas."""
        self._min_tree_height, self._theme = MIN_TREE_HEIGHT, theme_for("light")
        self.canvas.canvas_state.set_narrow(True)
        self.canvas.setAccessibleName(tr("Tree of the round"))
        self._description.setWordWrap(True)
        self._description.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setAccessibleName(tr("Round"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        column = arrange(QVBoxLayout(inner), margins=0, spacing=0)
        for part in (self.canvas, self.legend, self._description, self.cards):
            column.addWidget(part, int(part is self.canvas))
        self.setWidget(inner)

    def restyle(self, theme: Theme) -> None:
        self.canvas.setMinimumHeight(theme.px(self._min_tree_height))
        self._description.setFont(theme.font(13))
        self._description.setContentsMargins(theme.px(20), theme.px(6), theme.px(20), theme.px(6))

    def set_presenting(self, on: bool) -> None:
        """Show only the tree while presenting, with all available height."""
        for part in (self.legend, self._description, self.cards):
            part.setVisible(not on)
        self._min_tree_height = 0 if on else MIN_TREE_HEIGHT
        self.canvas.setMinimumHeight(self._theme.px(self._min_tree_height))
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
        if self._drawn != (id(selection.run), selection.number):
            self._drawn = id(selection.run), selection.number
            self._draw_tree(entry, selection.word_before, len(names))
        self._description.setText(describe_round(entry, names))
        self.cards.show_rounds(selection.rounds, selection.count, selection.number, selection.run.finished)

    def _draw_tree(self, entry: DraftRound, before: str, drafters: int) -> None:
        self.canvas.canvas_state.set_tree(round_tree(entry, before, drafters))
        self.canvas.navigation.set_follow(False)
        end = [EXTRA_NODE] if entry.extra_kind != "none" else []  # keep the end of the round visible
        self.canvas.navigation.show_path((0, *entry.accepted, *end), MIN_READABLE_ZOOM)
