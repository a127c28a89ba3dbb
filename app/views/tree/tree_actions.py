"""What begins a tree: a search or a chorus on the empty page, another chorus beside the legend of one."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QBoxLayout

from app.state.empty_view import TREE, why_not
from app.state.run import Run
from app.state.worker_messages import ModelInfo
from app.theme.theme import Theme, theme_for
from app.views.base import View
from app.views.tree.displayed_tree import GrownTree
from app.views.tree.empty_tree import below_words, words_of
from app.views.tree.sample_bar import ChorusBar
from app.views.tree.tools import TreeLegend
from app.widgets.empty_offer import EmptyOffer
from resources.language import tr

_LEGEND = 260
"""Pixels at 100 % that the legend has beside what begins a chorus."""


class Beginnings(QObject):
    """`foot` is the lowest line of `view`; the offer and the bar `first` float below the words of its empty page."""

    def __init__(self, view: View, tree: GrownTree, legend: TreeLegend) -> None:
        super().__init__(view)
        self._view, self._tree, self._theme = view, tree, theme_for("light")
        self.info: ModelInfo | None = None
        """The model, which may refuse to search."""
        self.again, self.first = ChorusBar(view), ChorusBar(view)
        self.offer = EmptyOffer(tr("Run a beam search"), view, lambda area, theme: below_words(area, theme, tree.run))
        self.foot = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.foot.addWidget(legend, 1)
        self.foot.addWidget(self.again)
        self.offer.wanted.connect(lambda: view.signals.fillWanted.emit(TREE))
        for bar, other in ((self.again, self.first), (self.first, self.again)):
            bar.wanted.connect(view.signals.chorusWanted)
            bar.count.valueChanged.connect(other.count.setValue)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._theme = theme
        for part in (self.again, self.first, self.offer):
            part.set_theme(theme)
        self.place()

    def show_what_fits(self, is_presenting: bool) -> None:
        """Offer what the run leaves to be begun; on a stage nothing."""
        run, grown = self._tree.run, self._tree.content is not None
        self.again.setVisible(self._tree.is_chorus and not is_presenting)
        is_offered = not grown and not _is_under_way(run) and not is_presenting
        self.first.setVisible(is_offered)
        self.offer.offer(is_offered, why_not(TREE, self.info), words_of(run)[1])
        self.place()

    def place(self) -> None:
        """What begins a chorus stands below the words of an empty page, or beside the legend where there is room."""
        width, height, bar = self._view.width(), self._view.height(), self.first
        for each in (self.first, self.again):
            each.fit(width)
        beside = self.again.sizeHint().width() + self._theme.px(_LEGEND) <= width
        self.foot.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        bar.adjustSize()
        top = min(self.offer.geometry().bottom() + self._theme.px(10), height - bar.height())
        bar.move((width - bar.width()) // 2, max(0, round(top)))


def _is_under_way(run: Run | None) -> bool:
    return run is not None and run.outcome is None
