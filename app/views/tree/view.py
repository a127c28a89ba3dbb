"""The tree view: every continuation of a beam search, or several texts of one prompt merged, and a table beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QMenu, QVBoxLayout, QWidget

from app.state.chorus import is_chorus
from app.state.filling import TREE, why_not
from app.state.requests import ModelInfo
from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.tree.beam_content import BeamContent
from app.views.tree.chorus_bar import ChorusBar
from app.views.tree.chorus_content import ChorusContent
from app.views.tree.content import TreeContent, prompt_end
from app.views.tree.empty import below_words, paint_empty, words_of
from app.views.tree.finder import Finder
from app.views.tree.growth import ROOT
from app.views.tree.menu import NodeMenu
from app.views.tree.path_line import PathLine
from app.views.tree.split import TreeSplit
from app.views.tree.tools import FindBar, TreeLegend, TreeTools
from app.widgets.empty_offer import EmptyOffer
from app.widgets.tree_canvas import TreeCanvas
from core.events import BeamsRanked, BeamStep, Event, SequenceFinished, TokenChosen
from resources.language import mark, tr

_GROWING = BeamStep | BeamsRanked | TokenChosen | SequenceFinished
_LEGEND = 260
"""Pixels at 100 % that the legend has beside what begins a chorus."""
_ASK = mark("Pick a node, or walk with the arrow keys; type to find a token.")


class TreeView(View):
    """Canvas, table, the text so far and the key to the marks. A picked node goes to the inspector."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("treeView", parent)
        self._theme = theme_for("light")
        self._is_presenting = False
        self._run: Run | None = None
        self.canvas = TreeCanvas(self)
        self.beams, self.chorus = BeamContent(self.canvas.stage, self), ChorusContent(self.canvas.stage, self)
        self.table, self.samples = self.beams.table, self.chorus.table
        self._content: TreeContent | None = None
        self._path, self._legend = PathLine(self), TreeLegend(self)
        self._again, self._first = ChorusBar(self), ChorusBar(self)
        self._find_bar = FindBar(self.canvas)
        self.finder = Finder(self.canvas, self._find_bar)
        self._tools = TreeTools(self)
        self.menu = NodeMenu(self.canvas, self.signals, lambda: (self._run, self._content))
        self._tools.hide()
        self._info: ModelInfo | None = None
        self.offer = EmptyOffer(
            tr("Run beam search on this prompt"), self, lambda area, theme: below_words(area, theme, self._run)
        )
        self._lay_out()
        self._connect()
        self.set_theme(self._theme)

    def _lay_out(self) -> None:
        self.canvas.setObjectName("treeCanvas")
        self.canvas.describe = self._tip
        self._split = TreeSplit(self.canvas, (self.table, self.samples), self)
        foot = self._foot = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        foot.addWidget(self._legend, 1)
        foot.addWidget(self._again)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._split, 1)
        column.addWidget(self._path)
        column.addLayout(foot)
        self.setFocusProxy(self.canvas)
        self._show_parts()

    def _connect(self) -> None:
        tools, canvas = self._tools, self.canvas
        canvas.selection.nodeSelected.connect(self._on_node)
        canvas.selection.nothingSelected.connect(self._on_nothing)
        canvas.input.typed.connect(self.finder.begin)
        canvas.travel.followChanged.connect(tools.follow.setChecked)
        self.table.nodePicked.connect(canvas.selection.pick)
        self.offer.wanted.connect(lambda: self.signals.fillWanted.emit(TREE))
        self.samples.samplePicked.connect(self._on_sample)
        for bar in (self._again, self._first):
            bar.wanted.connect(self.signals.chorusWanted)
        self._first.count.valueChanged.connect(self._again.count.setValue)
        self._again.count.valueChanged.connect(self._first.count.setValue)
        tools.prunedChosen.connect(self._on_pruned)
        tools.fitWanted.connect(canvas.travel.fit)
        tools.findWanted.connect(self.finder.open)
        tools.followToggled.connect(canvas.travel.set_follow)
        tools.downToggled.connect(canvas.stage.set_down)
        tools.tableToggled.connect(self._split.set_table_wanted)
        tools.follow.setChecked(canvas.travel.follow)

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def menu_of_picked(self) -> QMenu | None:
        """That of the selected node."""
        node = self.canvas.selection.selected
        return self.menu.menu(node) if node is not None else None

    def figures(self) -> Table:
        """Every node of the tree."""
        return self._content.figures() if self._content is not None else ()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._theme = theme
        for part in (self.canvas, self.table, self.samples, self._path, self._legend, self._find_bar, self._tools,
                     self._again, self._first, self.offer):  # fmt: skip
            part.set_theme(theme)
        self._split.set_theme(theme)
        self._place_first()

    def set_presenting(self, on: bool) -> None:
        """The tree alone; what the reader had in sight is there again afterwards."""
        self._is_presenting = on
        self.canvas.set_presenting(on)
        self._split.set_presenting(on)
        self._show_parts()

    def spotlight(self) -> QRect:
        """Around the selected node, else the one that leads at the cursor."""
        look, run = self.canvas.stage.look, self._run
        node = look.selected if look.selected is not None else look.best[-1] if look.best else None
        if node is None or run is None or not run.cursor:
            return QRect()
        place = self.canvas.stage.places.node_rect(node).intersected(self.canvas.rect())
        return place.translated(self.canvas.mapTo(self, QPoint())) if not place.isEmpty() else QRect()

    def caption(self) -> str:
        """Why the picked node lived or died."""
        return self.report.sentence if self.report is not None else ""

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self._run = run
        self.finder.close()
        for content in (self.beams, self.chorus):
            content.restart()
        self.canvas.travel.set_follow(True)
        self._say(None)
        self._catch_up()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Let the tree grow."""
        self._run = run
        begun = self._content is not None and self._content.steps > 0
        if not begun or any(isinstance(event, _GROWING) for event in events):
            self._catch_up()
        else:
            self._show_parts()

    def words_changed(self) -> None:
        """Say it all again."""
        if self.report is not None:
            self._say(self.canvas.selection.selected)

    def cursor_moved(self, run: Run) -> None:
        """Show the tree as it was after that many steps."""
        self._run = run
        leader = self._catch_up()
        if leader and not self.canvas.travel.follow:
            self.canvas.travel.ensure_visible(leader)

    def model_ready(self, info: ModelInfo) -> None:
        """The run no longer waits for its model, which may refuse to search."""
        self._info = info
        self._show_parts()

    def selection_changed(self, run: Run) -> None:
        """Mark the node of the selected token."""
        self._run = run
        content = self._content
        node = content.node_of(run, run.selected) if content is not None and run.selected is not None else None
        if node is not None and self.canvas.selection.selected != node:
            self.canvas.travel.ensure_visible(node)
            self.canvas.selection.select(node)
            self._say(node)

    # From the run to the canvas

    def _choose(self) -> None:
        """Which kind of tree the run has, if any."""
        run = self._run
        has_beams = run is not None and run.beams is not None
        wanted: TreeContent | None = self.beams if has_beams else self.chorus if is_chorus(run) else None
        before, self._content = self._content, wanted
        self.chooses_sequence = wanted is self.chorus
        if wanted is not None and wanted is not before:
            wanted.restart()  # several texts look like a chorus until the search takes its first step
            self.canvas.stage.set_pruned(wanted.how)
            self._tools.set_pruned(wanted.how, *map(tr, wanted.faint))
            if wanted is self.chorus:
                self.canvas.travel.keep_readable()
            self._legend.show_marks(wanted.legend, wanted.hint)
            self._split.show_table(wanted.table)
            for part in (self, self.canvas):
                part.setAccessibleName(tr(wanted.title))

    def _catch_up(self) -> int:
        """Add what is new, then show what the cursor allows; the node of the shown text."""
        run, selected = self._run, self.canvas.selection.selected
        self._choose()
        self._show_parts()
        if run is None or self._content is None:
            return ROOT
        leader = self._content.follow(run)
        self.canvas.travel.grown()
        self._split.arrange()
        self._content.mark(selected)
        if selected is None:
            self._show_path(leader)
        return leader

    def _show_path(self, node: int | None) -> None:
        """What leads to a node, the end of the prompt first; what to do where there is none."""
        run, content = self._run, self._content
        last = content.last_word(node) if content is not None and node else ""
        if run is None or content is None or not node or not last:
            self._path.show_text("", "", tr(_ASK))
            return
        written = content.text(node)
        own = last if written.endswith(last) else ""
        self._path.show_text(prompt_end(run) + written[: len(written) - len(own)], last)

    def _tip(self, node: int) -> str:
        return self._content.tip(node) if self._content is not None else ""

    # What the user does

    @Slot(int)
    def _on_node(self, node: int) -> None:
        run, content = self._run, self._content
        if run is None or content is None:
            return
        self.canvas.travel.set_follow(False)  # what the reader looks at stays where it is
        passing = self.chorus.passing(node) if content is self.chorus else ()
        if passing and run.shown not in passing:
            self.signals.sequenceActivated.emit(passing[0])
        self._say(node)
        content.mark(node)
        place = content.place(run, node)
        if place is not None:
            self.signals.tokenActivated.emit(place)

    @Slot(str)
    def _on_pruned(self, how: str) -> None:
        self.canvas.stage.set_pruned(how)
        if self._content is not None:
            self._content.how = how

    @Slot(int)
    def _on_sample(self, number: int) -> None:
        """Show that text everywhere, and its path here."""
        self.canvas.travel.set_follow(False)
        self.chorus.draw_whole(number)
        self.signals.sequenceActivated.emit(number)
        path = self.chorus.path_of(number)
        self.canvas.stage.unfold(path)
        self.canvas.selection.select(path[-1])
        self.chorus.mark(path[-1])
        self._say(path[-1])
        self.canvas.travel.ensure_visible(self.chorus.parting(number))

    @Slot()
    def _on_nothing(self) -> None:
        self._say(None)
        if self._content is not None:
            self._content.mark(None)

    def _say(self, node: int | None) -> None:
        """Let the inspector speak of a node, and show the text that leads to it."""
        run, content, before = self._run, self._content, self.report
        self.report = None
        if run is not None and content is not None and node is not None:
            self.report = content.report(run, node)
        self._show_path(node)
        if (self.report is not None or before is not None) and self.isVisible():
            self.signals.reportSelected.emit(self.report)  # a hidden tree leaves the inspector to the view that is read

    @Slot()
    def copy(self) -> None:
        """Copy the text that leads to the selected node."""
        node = self.canvas.selection.selected
        if self._content is not None and node:
            QGuiApplication.clipboard().setText(self._content.text(node))

    # Layout

    def _show_parts(self) -> None:
        grown = self._content is not None
        self._split.setVisible(grown)
        self._tools.setEnabled(grown)
        for part in (self._path, self._legend):
            part.setVisible(grown and not self._is_presenting)
        self._again.setVisible(self._content is self.chorus and not self._is_presenting)
        waits = self._run is not None and self._run.outcome is None
        self._first.setVisible(not grown and not waits and not self._is_presenting)
        is_offered = not grown and not waits and not self._is_presenting
        self.offer.offer(is_offered, why_not(TREE, self._info), words_of(self._run)[1])
        self._place_first()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What begins a chorus stands below the words of an empty page, or beside the legend where there is room."""
        super().resizeEvent(event)
        self._place_first()

    def _place_first(self) -> None:
        for each in (self._first, self._again):
            each.fit(self.width())
        beside = self._again.sizeHint().width() + self._theme.px(_LEGEND) <= self.width()
        self._foot.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        bar = self._first
        bar.adjustSize()
        top = min(self.offer.geometry().bottom() + self._theme.px(10), self.height() - bar.height())
        bar.move((self.width() - bar.width()) // 2, max(0, round(top)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ground; what to do where there is no tree."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("panel" if self._content is not None else "window"))
        if self._content is None:
            paint_empty(painter, self.rect(), self._theme, self._run)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the text so far; find; open the inspector."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.Find):
            self.finder.open()
        else:
            super().keyPressEvent(event)
