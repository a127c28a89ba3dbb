"""The tree view: all continuations of a beam search, or several samples of one prompt merged, with a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from decodescope.app.state.branching import PathContinuation, is_constrained_to
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.theme.theme import Theme
from decodescope.app.views.base import Table, View, ViewSignals
from decodescope.app.views.tree.beam_nodes import ROOT
from decodescope.app.views.tree.displayed_tree import DisplayedTree, NodePicker, PathLine
from decodescope.app.views.tree.tools import FindBar, TreeFinder, TreeLegend, TreeTools
from decodescope.app.views.tree.tree_actions import TreeActions, paint_empty_tree
from decodescope.app.views.tree.tree_content import TreeContent, TreeSplit
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.plain_text import caption
from decodescope.app.widgets.tree_canvas import TreeCanvas
from decodescope.core import words
from decodescope.core.events import BeamsRanked, BeamStep, Event, SequenceFinished, TokenChosen
from decodescope.resources.language import tr

DisplayedContent = Callable[[], tuple[Run | None, TreeContent | None]]


class NodeMenu(QObject):
    """Open menus on the canvas; `shown` returns the displayed run and content, `grammar` the grammar of a new run."""

    def __init__(
        self, canvas: TreeCanvas, signals: ViewSignals, shown: DisplayedContent, grammar: Callable[[], object]
    ) -> None:
        super().__init__(canvas)
        self._canvas, self._signals, self._shown, self._grammar = canvas, signals, shown, grammar
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the menu of the node under the pointer, or of the selected node."""
        if not isinstance(event, QContextMenuEvent):
            return False
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        node = self._canvas.selection.selected if by_key else self._canvas.canvas_state.positions.node_at(event.pos())
        if node is None or (menu := self.create_menu(node)) is None:
            return False
        place = self._canvas.canvas_state.positions.node_rect(node).bottomLeft() if by_key else event.pos()
        menu.popup(self._canvas.mapToGlobal(place))
        return True

    def create_menu(self, node: int) -> QMenu | None:
        """Return the menu of a node, which deletes itself on closing; None if there is no action."""
        menu = QMenu(self._canvas)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.add_actions(menu, node)
        return menu if not menu.isEmpty() else None

    def add_actions(self, menu: QMenu, node: int) -> None:
        """Add the actions for a node, if there are any."""
        run, content = self._shown()
        continuation = continuation_from(run, content, node)
        if run is None or content is None or continuation is None:
            return
        name = words.quote(content.last_text(node), False)
        continue_from_node = partial(self._signals.branchRequested.emit, continuation)
        if _is_finished(run, node) and is_constrained_to(run, self._grammar()):
            menu.addAction(caption(tr("{name}: the grammar allows nothing after it").format(name=name))).setEnabled(
                False
            )
        else:
            menu.addAction(caption(tr("Continue from {name}").format(name=name)), continue_from_node)
        menu.addAction(tr("Copy text up to here"), partial(QGuiApplication.clipboard().setText, content.text(node)))


def _is_finished(run: Run, node: int) -> bool:
    """Return whether a hypothesis of a beam search ends at the node with an end-of-sequence token."""
    return run.beams is not None and node in run.beams and run.beams.candidate(node).ended == "eos"


def continuation_from(run: Run | None, content: TreeContent | None, node: int) -> PathContinuation | None:
    """Return the path to a node as a continuation; None for the prompt's end."""
    ids = content.ids(node) if content is not None else ()
    if run is None or not ids:
        return None
    shown = [token.id for token in run.tokens]
    pairs = enumerate(zip(ids, shown, strict=False))
    shared = next((n for n, (one, other) in pairs if one != other), min(len(ids), len(shown)))
    return PathContinuation(ids, min(shared, len(ids) - 1))


_GROWTH_EVENTS = BeamStep | BeamsRanked | TokenChosen | SequenceFinished


class TreeView(View):
    """Canvas, table, text so far, and legend. A selected node is shown in the inspector."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("treeView", parent)
        self._is_presenting = False
        self.canvas = TreeCanvas(self)
        self.tree = DisplayedTree(self.canvas, self)
        self.table, self.samples = self.tree.beams.table, self.tree.samples.table
        self._path, self._legend = PathLine(self), TreeLegend(self)
        self.actions_bar = TreeActions(self, self.tree, self._legend)
        self.offer = self.actions_bar.offer
        self._find_bar = FindBar(self.canvas)
        self.finder = TreeFinder(self.canvas, self._find_bar)
        self._tools = TreeTools(self)
        shown = (lambda: (self.tree.run, self.tree.content), lambda: self.grammar)
        self.menu = NodeMenu(self.canvas, self.signals, *shown)
        self.node_picker = NodePicker(self, self.canvas, self.tree, self._path)
        self._tools.hide()
        self._tools.prunedChosen.connect(self.tree.set_pruned)
        self._lay_out()
        _connect_tools(self._tools, self.canvas, self.finder, self._split)
        self.set_theme(self._theme)

    def _lay_out(self) -> None:
        self.canvas.setObjectName("treeCanvas")
        self.canvas.node_tooltip = lambda node: self.tree.content.tooltip(node) if self.tree.content is not None else ""
        self._split = TreeSplit(self.canvas, (self.table, self.samples), self)
        arrange(QVBoxLayout(self), (self._split, 1), self._path, self.actions_bar.bottom_row, margins=0, spacing=0)
        self.setFocusProxy(self.canvas)
        self._show_parts()

    # Called by the shell

    def header_widget(self) -> QWidget:
        """Return the widget at the right end of the tab bar."""
        return self._tools

    def selected_node_menu(self) -> QMenu | None:
        """Return the menu of the selected node."""
        node = self.canvas.selection.selected
        return self.menu.create_menu(node) if node is not None else None

    def add_context_actions(self, menu: QMenu, position: QPoint) -> None:
        """Add the actions of the hypothesis or sample under the pointer, and the tree's tools."""
        content = self.tree.content
        if content is None:
            return
        viewport = content.table.viewport()
        index = content.table.indexAt(viewport.mapFrom(self, position))
        if content.table.isVisible() and viewport.geometry().contains(content.table.mapFrom(self, position)):
            row = self.tree.row_at(index.row())
            if row is not None:
                self.menu.add_actions(menu, row.node)
                menu.addSeparator()
        self._tools.add_to_menu(menu)

    def export_table(self) -> Table:
        """Return all nodes of the tree as a table."""
        return self.tree.content.figures() if self.tree.content is not None else ()

    def restyle(self, theme: Theme) -> None:
        self.actions_bar.update_positions()

    def set_presenting(self, on: bool) -> None:
        """Show only the tree while presenting; the previous layout returns afterwards."""
        self._is_presenting = on
        self.canvas.set_presenting(on)
        self._split.set_presenting(on)
        self._show_parts()

    def spotlight_rect(self) -> QRect:
        """Return the area of the selected node, or of the leading node at the cursor."""
        look, run = self.canvas.canvas_state.style, self.tree.run
        node = look.selected if look.selected is not None else look.best_path[-1] if look.best_path else None
        if node is None or run is None or not run.cursor:
            return QRect()
        place = self.canvas.canvas_state.positions.node_rect(node).intersected(self.canvas.rect())
        return place.translated(self.canvas.mapTo(self, QPoint())) if not place.isEmpty() else QRect()

    def presentation_caption(self) -> str:
        """Return why the selected node was kept or pruned."""
        return self.report.sentence if self.report is not None else ""

    def show_run(self, run: Run | None) -> None:
        """Show another run from its start; None for an empty page."""
        self.finder.close()
        self.tree.set_run(run)
        self.canvas.navigation.set_follow(True)
        self.node_picker.report_node(None)
        self._update_tree()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add the new nodes."""
        self.tree.run = run
        begun = self.tree.content is not None and self.tree.content.steps > 0
        if not begun or any(isinstance(event, _GROWTH_EVENTS) for event in events):
            self._update_tree()
        else:
            self._show_parts()

    def wording_changed(self) -> None:
        """Rebuild all texts."""
        if self.report is not None:
            self.node_picker.report_node(self.canvas.selection.selected)

    def cursor_moved(self, run: Run) -> None:
        """Show the tree at the cursor."""
        self.tree.run = run
        leader = self._update_tree()
        if leader and not self.canvas.navigation.follow:
            self.canvas.navigation.ensure_visible(leader)

    def model_ready(self, info: ModelInfo) -> None:
        """Update the controls for the loaded model, which may not support beam search."""
        self.actions_bar.info = info
        self._show_parts()

    def selection_changed(self, run: Run) -> None:
        """Select the node of the selected token."""
        self.tree.run = run
        content = self.tree.content
        node = content.node_of(run, run.selected) if content is not None and run.selected is not None else None
        if node is not None and self.canvas.selection.selected != node:
            self.canvas.navigation.ensure_visible(node)
            self.canvas.selection.select(node)
            self.node_picker.report_node(node)

    # Updating the canvas

    def _update_tree(self) -> int:
        """Add what is new, then show the tree up to the cursor; return the node of the shown text."""
        run, selected = self.tree.run, self.canvas.selection.selected
        fresh = self.tree.select_content()
        if fresh is not None:
            _apply_content(fresh, self._tools, self._legend, self._split, (self, self.canvas))
        content = self.tree.content
        self.chooses_sequence = self.tree.shows_samples
        self._show_parts()
        if run is None or content is None:
            return ROOT
        leader = content.update(run)
        self.canvas.navigation.handle_growth()
        self._split.arrange()
        content.select_row(selected)
        if selected is None:
            self.node_picker.show_path(leader)
        return leader

    # Layout

    def _show_parts(self) -> None:
        grown = self.tree.content is not None
        self._split.setVisible(grown)
        self._tools.setEnabled(grown)
        for part in (self._path, self._legend):
            part.setVisible(grown and not self._is_presenting)
        self.actions_bar.update_visibility(self._is_presenting)
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Update the position of the sampling bar."""
        super().resizeEvent(event)
        self.actions_bar.update_positions()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the background, and the hint if there is no tree."""
        painter = QPainter(self)
        grown = self.tree.content is not None
        painter.fillRect(self.rect(), self._theme.color("panel" if grown else "window"))
        if not grown:
            paint_empty_tree(painter, self.rect(), self._theme, self.tree.run)

    def event(self, event: QEvent) -> bool:
        """Let the tree's search take precedence over the window's."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.matches(QKeySequence.StandardKey.Find)
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle the shortcuts for copying the text so far and for finding a token."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.node_picker.copy_text()
        elif event.matches(QKeySequence.StandardKey.Find):
            self.finder.open()
        else:
            super().keyPressEvent(event)


def _connect_tools(tools: TreeTools, canvas: TreeCanvas, finder: TreeFinder, split: TreeSplit) -> None:
    """Connect the tools to the canvas and the splitter."""
    canvas.input_handler.typed.connect(finder.open_with_text)
    canvas.navigation.followChanged.connect(tools.follow.setChecked)
    tools.fitWanted.connect(canvas.navigation.fit)
    tools.findWanted.connect(finder.open)
    tools.followToggled.connect(canvas.navigation.set_follow)
    tools.downToggled.connect(canvas.canvas_state.set_top_down)
    tools.tableToggled.connect(split.set_table_visible)
    tools.follow.setChecked(canvas.navigation.follow)


def _apply_content(
    content: TreeContent, tools: TreeTools, legend: TreeLegend, split: TreeSplit, named_widgets: Sequence[QWidget]
) -> None:
    """Update the tools, the legend, the table and the accessible names for a kind of tree."""
    tools.set_pruned(content.faint_mode, *map(tr, content.faint_titles))
    legend.show_marks(content.legend, content.hint)
    split.show_table(content.table)
    for part in named_widgets:
        part.setAccessibleName(tr(content.title))
