"""The tree view: every continuation that a beam search considered, growing live, and the hypotheses beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.beam_tree import BeamTree
from app.state.requests import ModelInfo
from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.shared.tables import of_candidates
from app.views.tree.empty import paint_empty
from app.views.tree.finder import Finder
from app.views.tree.growth import ROOT, Growth, label, root_label, shown_path
from app.views.tree.hypotheses import HypothesesTable
from app.views.tree.report import report_on, report_on_start, tip
from app.views.tree.split import TreeSplit
from app.views.tree.tools import FindBar, PathLine, TreeLegend, TreeTools
from app.widgets.tree_canvas import TreeCanvas
from core.events import BeamsRanked, BeamStep, Event

_LEGEND = (
    ("kept", "kept"), ("pruned", "pruned"), ("best", "leads"), ("finished", "ended"),
)  # fmt: skip
_HINT = "thickness = probability"


class TreeView(View):
    """Canvas, table, the text so far and the key to the marks. A picked node goes to the inspector."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("treeView", parent)
        self._theme = theme_for("light")
        self._run: Run | None = None
        self.canvas, self.table = TreeCanvas(self), HypothesesTable(self)
        self._growth = Growth(self.canvas.stage)
        self._path, self._legend = PathLine(self), TreeLegend(_LEGEND, _HINT, self)
        self._find_bar = FindBar(self.canvas)
        self.finder = Finder(self.canvas, self._find_bar)
        self._tools = TreeTools(self)
        self._tools.hide()
        self._lay_out()
        self._connect()
        self.set_theme(self._theme)

    def _lay_out(self) -> None:
        for part in (self, self.canvas):
            part.setAccessibleName("Beam tree")
        self.canvas.setObjectName("treeCanvas")
        self.canvas.describe = lambda node: tip(self._tree, node)
        self._split = TreeSplit(self.canvas, self.table, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._split, 1)
        column.addWidget(self._path)
        column.addWidget(self._legend)
        self.setFocusProxy(self.canvas)

    def _connect(self) -> None:
        tools, canvas = self._tools, self.canvas
        canvas.selection.nodeSelected.connect(self._on_node)
        canvas.selection.nothingSelected.connect(self._on_nothing)
        canvas.input.typed.connect(self.finder.begin)
        canvas.travel.followChanged.connect(tools.follow.setChecked)
        self.table.nodePicked.connect(canvas.selection.pick)
        tools.prunedChosen.connect(canvas.stage.set_pruned)
        tools.fitWanted.connect(canvas.travel.fit)
        tools.findWanted.connect(self.finder.open)
        tools.followToggled.connect(canvas.travel.set_follow)
        tools.downToggled.connect(canvas.stage.set_down)
        tools.tableToggled.connect(self.table.setVisible)
        tools.follow.setChecked(canvas.travel.follow)

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def figures(self) -> Table:
        """Every continuation that was considered."""
        return of_candidates(self._tree) if self._tree is not None else ()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._theme = theme
        for part in (self.canvas, self.table, self._path, self._legend, self._find_bar, self._tools):
            part.set_theme(theme)
        self._split.set_theme(theme)

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self._run = run
        self.finder.close()
        self._growth.restart()
        self.canvas.travel.set_follow(True)
        self._say(None)
        self._catch_up()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Let the tree grow."""
        self._run = run
        if self._growth.steps == 0 or any(isinstance(event, BeamStep | BeamsRanked) for event in events):
            self._catch_up()
        else:
            self.update()

    def cursor_moved(self, run: Run) -> None:
        """Show the tree as it was after that many steps."""
        self._run = run
        self._catch_up()
        leader = run.beams.leader(run.cursor) if run.beams is not None else ROOT
        if leader and not self.canvas.travel.follow:
            self.canvas.travel.ensure_visible(leader)

    def model_ready(self, _info: ModelInfo) -> None:
        """The run no longer waits for its model."""
        self.update()

    def selection_changed(self, run: Run) -> None:
        """Mark the node of the selected token."""
        self._run = run
        token, path = run.selected, shown_path(run)
        if token is not None and token < len(path) and self.canvas.selection.selected != path[token].node:
            self.canvas.travel.ensure_visible(path[token].node)
            self.canvas.selection.select(path[token].node)
            self._say(path[token].node)

    # From the run to the canvas

    @property
    def _tree(self) -> BeamTree | None:
        return self._run.beams if self._run is not None else None

    def _catch_up(self) -> None:
        """Add the steps that are new, then show what the cursor allows."""
        run, tree, selected = self._run, self._tree, self.canvas.selection.selected
        self._show_parts()
        if run is None or tree is None:
            return
        leader = tree.leader(run.cursor)
        self._growth.follow(run, tree)
        self.table.show_rows(tree.hypotheses(run.cursor), leader, tree.groups)
        self._split.arrange()
        self.table.select_node(selected)
        if selected is None:
            self._path.show_path(run, leader, label)

    # What the user does

    @Slot(int)
    def _on_node(self, node: int) -> None:
        self._say(node)
        self.table.select_node(node)
        path = shown_path(self._run) if self._run is not None else []
        place = next((n for n, candidate in enumerate(path) if candidate.node == node), None)
        if place is not None:
            self.signals.tokenActivated.emit(place)

    @Slot()
    def _on_nothing(self) -> None:
        self._say(None)
        self.table.select_node(None)

    def _say(self, node: int | None) -> None:
        """Let the inspector speak of a node, and show the text that leads to it."""
        run, tree, before = self._run, self._tree, self.report
        self.report = None
        if run is not None and tree is not None and node is not None:
            if node == ROOT:
                self.report = report_on_start(tree, root_label(run), len(run.prompt))
            elif node in tree:
                self.report = report_on(tree, node)
        self._path.show_path(run, node, label)
        if (self.report is not None or before is not None) and self.isVisible():
            self.signals.reportSelected.emit(self.report)  # a hidden tree leaves the inspector to the view that is read

    @Slot()
    def copy(self) -> None:
        """Copy the text that leads to the selected node."""
        tree, node = self._tree, self.canvas.selection.selected
        if tree is not None and node is not None and node in tree:
            QGuiApplication.clipboard().setText(tree.text(node))

    # Layout

    def _show_parts(self) -> None:
        grown = self._tree is not None
        for part in (self._split, self._path, self._legend):
            part.setVisible(grown)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ground; what to do where there is no tree."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("panel" if self._tree is not None else "window"))
        if self._tree is None:
            paint_empty(painter, self.rect(), self._theme, self._run)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the text so far; find; open the inspector."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.Find):
            self.finder.open()
        else:
            super().keyPressEvent(event)
