"""Controls that start a tree: a beam search or samples on the empty page, and more samples beside the legend."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QPushButton, QWidget

from decodescope.app.state.empty_view import TREE, fill_unsupported_reason
from decodescope.app.state.run import Run
from decodescope.app.state.sample_tree import DEFAULT_SAMPLES, MAX_SAMPLES
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import View
from decodescope.app.views.shared.empty_page import (
    GAP,
    FillButton,
    TitleAndHint,
    paint_empty_page,
    title_and_hint_rects,
    waiting_title,
)
from decodescope.app.views.tree.displayed_tree import DisplayedTree
from decodescope.app.views.tree.tools import TreeLegend
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.inputs import SpinBox
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.resources.language import join_sentences, tr

BAR_HEIGHT = 44
"""Height in pixels at 100 % of the bar that starts sampling, below the offer."""
_EXAMPLE_EDGES = (((0, 0), (1, -1), "best"), ((0, 0), (1, 1), "kept"), ((1, -1), (2, -1.5), "best"),
           ((1, -1), (2, -0.5), "pruned"), ((1, 1), (2, 1), "kept"))  # fmt: skip


def paint_empty_tree(painter: QPainter, area: QRect, theme: Theme, run: Run | None) -> None:
    """Paint a small example tree, a title and a hint."""
    words = empty_tree_texts(run)
    top = title_and_hint_rects(area, theme, words, theme.px(BAR_HEIGHT))[0].top() - theme.px(46)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if top - theme.px(36) > area.top():
        _paint_example(painter, QPointF(area.center().x() - theme.px(62), top), theme)
    paint_empty_page(painter, area, theme, words, theme.px(BAR_HEIGHT))


def empty_tree_texts(run: Run | None) -> TitleAndHint:
    """Return the title and the hint, or a waiting message while a run is starting."""
    waiting = waiting_title(run) if run is not None and not run.tokens else ""
    hint = tr(
        "Choose beam search and press Ctrl+Enter to see every continuation it considers. Or generate "
        "several samples of the same prompt at once, and see where they diverge."
    )
    if run is not None and run.tokens:
        hint = join_sentences(tr("This run generated one text, one token at a time."), hint)
    return waiting or tr("A tree of alternative texts"), "" if waiting else hint


def offer_top(area: QRect, theme: Theme, run: Run | None) -> float:
    """Return the y coordinate at which the offer starts."""
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


class SamplesBar(Themed, QWidget):
    """Button and number of samples to generate. `samplesRequested(count)`: generate that many samples of the current
    settings, each with its own seed.
    """

    samplesRequested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.count, self.button = SpinBox(self), QPushButton(tr("Samples"), self)
        self.count.setObjectName("samplesCount")
        self.count.setAccessibleName(tr("Number of samples"))
        self.count.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.count.setRange(2, MAX_SAMPLES)
        self.count.setValue(DEFAULT_SAMPLES)
        self.count.setSuffix(tr(" times"))
        self.button.setObjectName("samplesButton")
        self.button.setToolTip(tr("Sample the prompt this many times at once, each with the next seed, as one tree"))
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._label = PlainLabel(tr("The same prompt"), self)
        self._label.setBuddy(self.count)
        self._row = QHBoxLayout(self)
        self._row.setSizeConstraint(
            QHBoxLayout.SizeConstraint.SetNoConstraint
        )  # it may be narrower than its label needs
        arrange(self._row, self._label, self.count, self.button)
        self.button.clicked.connect(self._on_clicked)

    def restyle(self, theme: Theme) -> None:
        self._row.setContentsMargins(theme.px(10), theme.px(3), theme.px(10), theme.px(3))
        self._row.setSpacing(theme.px(8))

    def minimumSizeHint(self) -> QSize:
        """Return the size without the label."""
        sides = self._row.contentsMargins()
        parts = self.count.minimumSizeHint().width() + self._row.spacing() + self.button.minimumSizeHint().width()
        return QSize(sides.left() + parts + sides.right(), self._row.minimumSize().height())

    def fit_to_width(self, width: int) -> None:
        """Hide the label if the bar does not fit into `width` pixels."""
        self._label.show()
        self._label.setVisible(self._row.minimumSize().width() <= width)
        self.updateGeometry()

    @Slot()
    def _on_clicked(self) -> None:
        self.samplesRequested.emit(self.count.value())


_MIN_LEGEND_WIDTH = 260
"""Minimum width in pixels at 100 % of the legend beside the sampling bar."""


class TreeActions(QObject):
    """`bottom_row` is the bottom row of `view`; the offer and the bar `start_bar` float below the text of its empty
    page.
    """

    def __init__(self, view: View, tree: DisplayedTree, legend: TreeLegend) -> None:
        super().__init__(view)
        self._view, self._tree = view, tree
        self.info: ModelInfo | None = None
        """The loaded model, which may not support beam search."""
        self.repeat_bar, self.start_bar = SamplesBar(view), SamplesBar(view)
        self.offer = FillButton(tr("Run a beam search"), view, lambda area, theme: offer_top(area, theme, tree.run))
        self.bottom_row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        arrange(self.bottom_row, (legend, 1), self.repeat_bar)
        self.offer.fillRequested.connect(lambda: view.signals.fillRequested.emit(TREE))
        for bar, other in ((self.repeat_bar, self.start_bar), (self.start_bar, self.repeat_bar)):
            bar.samplesRequested.connect(view.signals.samplesRequested)
            bar.count.valueChanged.connect(other.count.setValue)

    def update_visibility(self, is_presenting: bool) -> None:
        """Show the controls that apply to the current run; none while presenting."""
        run, grown = self._tree.run, self._tree.content is not None
        self.repeat_bar.setVisible(self._tree.shows_samples and not is_presenting)
        is_offered = not grown and not _is_running(run) and not is_presenting
        self.start_bar.setVisible(is_offered)
        self.offer.update_state(is_offered, fill_unsupported_reason(TREE, self.info), empty_tree_texts(run)[1])
        self.update_positions()

    def update_positions(self) -> None:
        """Place the sampling bar below the text of an empty page, or beside the legend if there is room."""
        width, height, bar = self._view.width(), self._view.height(), self.start_bar
        for each in (self.start_bar, self.repeat_bar):
            each.fit_to_width(width)
        fits_on_one_line = self.repeat_bar.sizeHint().width() + self._view.current_theme.px(_MIN_LEGEND_WIDTH) <= width
        self.bottom_row.setDirection(
            QBoxLayout.Direction.LeftToRight if fits_on_one_line else QBoxLayout.Direction.TopToBottom
        )
        bar.adjustSize()
        top = min(self.offer.geometry().bottom() + self._view.current_theme.px(10), height - bar.height())
        bar.move((width - bar.width()) // 2, max(0, round(top)))


def _is_running(run: Run | None) -> bool:
    return run is not None and run.outcome is None
