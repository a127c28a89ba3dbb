"""What begins a tree: a search or a chorus on the empty page, another chorus beside the legend of one."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QBoxLayout

from app.state.empty_view import TREE, fill_unsupported_reason
from app.state.run import Run
from app.state.worker_messages import ModelInfo
from app.theme.theme import Theme, theme_for
from app.views.base import View
from app.views.tree.displayed_tree import DisplayedTree
from app.views.tree.empty_tree import empty_tree_texts, offer_top
from app.views.tree.sample_bar import SamplesBar
from app.views.tree.tools import TreeLegend
from app.widgets.empty_offer import FillButton
from resources.language import tr

_MIN_LEGEND_WIDTH = 260
"""Pixels at 100 % that the legend has beside what begins a chorus."""


class TreeActions(QObject):
    """`bottom_row` is the lowest line of `view`; the offer and the bar `start_bar` float below the words of its empty page."""

    def __init__(self, view: View, tree: DisplayedTree, legend: TreeLegend) -> None:
        super().__init__(view)
        self._view, self._tree, self._theme = view, tree, theme_for("light")
        self.info: ModelInfo | None = None
        """The model, which may refuse to search."""
        self.repeat_bar, self.start_bar = SamplesBar(view), SamplesBar(view)
        self.offer = FillButton(tr("Run a beam search"), view, lambda area, theme: offer_top(area, theme, tree.run))
        self.bottom_row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.bottom_row.addWidget(legend, 1)
        self.bottom_row.addWidget(self.repeat_bar)
        self.offer.fillRequested.connect(lambda: view.signals.fillRequested.emit(TREE))
        for bar, other in ((self.repeat_bar, self.start_bar), (self.start_bar, self.repeat_bar)):
            bar.samplesRequested.connect(view.signals.samplesRequested)
            bar.count.valueChanged.connect(other.count.setValue)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._theme = theme
        for part in (self.repeat_bar, self.start_bar, self.offer):
            part.set_theme(theme)
        self.update_positions()

    def update_visibility(self, is_presenting: bool) -> None:
        """Offer what the run leaves to be begun; on a stage nothing."""
        run, grown = self._tree.run, self._tree.content is not None
        self.repeat_bar.setVisible(self._tree.shows_samples and not is_presenting)
        is_offered = not grown and not _is_running(run) and not is_presenting
        self.start_bar.setVisible(is_offered)
        self.offer.update_state(is_offered, fill_unsupported_reason(TREE, self.info), empty_tree_texts(run)[1])
        self.update_positions()

    def update_positions(self) -> None:
        """What begins a chorus stands below the words of an empty page, or beside the legend where there is room."""
        width, height, bar = self._view.width(), self._view.height(), self.start_bar
        for each in (self.start_bar, self.repeat_bar):
            each.fit_to_width(width)
        beside = self.repeat_bar.sizeHint().width() + self._theme.px(_MIN_LEGEND_WIDTH) <= width
        self.bottom_row.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        bar.adjustSize()
        top = min(self.offer.geometry().bottom() + self._theme.px(10), height - bar.height())
        bar.move((width - bar.width()) // 2, max(0, round(top)))


def _is_running(run: Run | None) -> bool:
    return run is not None and run.outcome is None
