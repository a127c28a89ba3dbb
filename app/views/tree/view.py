"""The tree view: every continuation that a beam search considered, growing live, and the hypotheses beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from app.state.beam_tree import BeamTree
from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.base import View
from app.views.text.pieces import control_name
from app.views.text.wording import percent, token_text
from app.views.tree.empty import paint_empty
from app.views.tree.finder import Finder
from app.views.tree.hypotheses import HypothesesTable
from app.views.tree.report import minus, report_on
from app.views.tree.tools import FindBar, PathLine, TreeLegend, TreeTools
from app.widgets.tree_canvas import TreeCanvas, TreeNode
from core.events import BeamCandidate, BeamsRanked, BeamStep, Event

BESIDE_FROM = 1000
"""Pixels of width from which the table stands beside the tree instead of below it."""
ROOT = 0
PROMPT_TOKENS = 24
"""How much of the prompt's end leads the text so far."""
_STATES = {"kept": "kept", "pruned": "pruned", "finished": "finished", "early_stopped": "unreached"}
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
        self._drawn = 0
        self._total = 0
        self.canvas = TreeCanvas(self)
        self.table = HypothesesTable(self)
        self._path = PathLine(self)
        self._legend = TreeLegend(_LEGEND, _HINT, self)
        self._find_bar = FindBar(self.canvas)
        self.finder = Finder(self.canvas, self._find_bar)
        self._tools = TreeTools(self)
        self._tools.hide()
        self._wants_table, self._moved_splitter = True, False
        self._table_rows = 0
        self._lay_out()
        self._connect()
        self.set_theme(self._theme)

    def _lay_out(self) -> None:
        self.setAccessibleName("Beam tree")
        self.canvas.setAccessibleName("Beam tree")
        self.canvas.setObjectName("treeCanvas")
        self.canvas.describe = self._tip
        self._splitter = QSplitter(Qt.Orientation.Horizontal, self, childrenCollapsible=False, handleWidth=1)
        self._splitter.addWidget(self.canvas)
        self._splitter.addWidget(self.table)
        self._splitter.setStretchFactor(0, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part, stretch in ((self._splitter, 1), (self._path, 0), (self._legend, 0)):
            column.addWidget(part, stretch)
        self.setFocusProxy(self.canvas)

    def _connect(self) -> None:
        tools, canvas = self._tools, self.canvas
        canvas.nodeSelected.connect(self._on_node)
        canvas.nothingSelected.connect(self._on_nothing)
        canvas.typed.connect(self.finder.begin)
        canvas.followChanged.connect(tools.follow.setChecked)
        self.table.nodePicked.connect(canvas.pick)
        tools.prunedChosen.connect(canvas.set_pruned)
        tools.fitWanted.connect(canvas.fit)
        tools.findWanted.connect(self.finder.open)
        tools.followToggled.connect(canvas.set_follow)
        tools.downToggled.connect(canvas.set_down)
        tools.tableToggled.connect(self._show_table)
        tools.follow.setChecked(canvas.follow)
        self._splitter.splitterMoved.connect(self._on_splitter)

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._theme = theme
        for part in (self.canvas, self.table, self._path, self._legend, self._find_bar, self._tools):
            part.set_theme(theme)
        self._arrange()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self._run, self._drawn, self._total = run, 0, 0
        self.finder.close()
        self.canvas.clear()
        self.canvas.set_follow(True)
        self._say(None)
        self._catch_up()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Let the tree grow."""
        self._run = run
        if self._drawn == 0 or any(isinstance(event, BeamStep | BeamsRanked) for event in events):
            self._catch_up()
        else:
            self.update()

    def cursor_moved(self, run: Run) -> None:
        """Show the tree as it was after that many steps."""
        self._run = run
        self._catch_up()
        tree = self._tree
        if tree is not None and not self.canvas.follow and tree.leader(run.cursor):
            self.canvas.ensure_visible(tree.leader(run.cursor))

    def selection_changed(self, run: Run) -> None:
        """Mark the node of the selected token."""
        self._run = run
        token = run.selected
        path = self._shown_path()
        if token is not None and token < len(path) and self.canvas.selected != path[token].node:
            self.canvas.ensure_visible(path[token].node)
            self.canvas.select(path[token].node)
            self._say(path[token].node)

    # From the run to the canvas

    @property
    def _tree(self) -> BeamTree | None:
        return self._run.beams if self._run is not None else None

    def _shown_path(self) -> list[BeamCandidate]:
        run, tree = self._run, self._tree
        if run is None or tree is None or not run.tokens:
            return []
        return tree.path(tree.node_of(run.tokens[-1]))

    def _catch_up(self) -> None:
        """Add the steps that are new, then show what the cursor allows."""
        run, tree = self._run, self._tree
        self._show_parts()
        if run is None or tree is None:
            return
        if self._drawn < len(tree.steps):
            self.canvas.add_nodes(self._new_nodes(tree))
        self.canvas.reveal_depth(None if run.cursor >= len(tree.steps) else run.cursor)
        leader = tree.leader(run.cursor)
        self.canvas.set_best([ROOT, *(candidate.node for candidate in tree.path(leader))])
        self.table.show_rows(tree.hypotheses(run.cursor), leader, tree.groups)
        if self._table_rows != len(self.table.rows_model.rows):
            self._table_rows = len(self.table.rows_model.rows)
            self._arrange()
        self.table.select_node(self.canvas.selected)
        if self.canvas.selected is None:
            self._show_path(leader)

    def _new_nodes(self, tree: BeamTree) -> Iterator[TreeNode]:
        if self._drawn == 0:
            self.canvas.set_lane_titles({n: f"Group {n + 1}" for n in range(tree.groups)})
            yield TreeNode(ROOT, None, self._root_label(), state="root", lane=None if tree.groups > 1 else 0)
        total = tree.progress  # every result meets all constraints: some node will come to their full length
        if total != self._total:
            self._total = total
            self.canvas.set_progress({c.node: (c.progress, total) for s in tree.steps for c in s.candidates})
        for step in tree.steps[self._drawn :]:
            for candidate in step.candidates:
                yield _node(candidate, total)
        self._drawn = len(tree.steps)

    def _root_label(self) -> str:
        prompt = self._run.prompt if self._run is not None else ()
        words = [token_text(token.text).strip("␣") for token in prompt[-1:]]
        return f"…{words[0]}" if words and words[0] and not words[0].startswith("⟨") else "start"

    # What the user does

    @Slot(int)
    def _on_node(self, node: int) -> None:
        self._say(node)
        self.table.select_node(node)
        place = next((n for n, c in enumerate(self._shown_path()) if c.node == node), None)
        if place is not None:
            self.signals.tokenActivated.emit(place)

    @Slot()
    def _on_nothing(self) -> None:
        self._say(None)
        self.table.select_node(None)

    def _say(self, node: int | None) -> None:
        """Let the inspector speak of a node, and show the text that leads to it."""
        tree = self._tree
        known = tree is not None and node is not None and node in tree
        report = report_on(tree, node) if known and tree is not None and node is not None else None
        self._show_path(node if known else None)
        if report is not None or self.report is not None:
            self.report = report
            if self.isVisible():  # a hidden tree leaves the inspector to the view that is read
                self.signals.reportSelected.emit(report)

    def _show_path(self, node: int | None) -> None:
        tree, run = self._tree, self._run
        path = tree.path(node) if tree is not None and node else []
        if not path or run is None:
            self._path.show_text("", "", "Pick a node, or walk with the arrow keys; type to find a token.")
            return
        prompt = "".join(token.text for token in run.prompt[-PROMPT_TOKENS:] if not control_name(token.text))
        if run.prompt and control_name(run.prompt[-1].text):
            prompt = ""  # a control token ends the prompt: what follows is a text of its own
        before = prompt + "".join(candidate.text for candidate in path[:-1])
        self._path.show_text(before, path[-1].text or f" {_label(path[-1])}")

    def _tip(self, node: int) -> str:
        tree = self._tree
        if tree is None or node not in tree:
            return ""
        candidate = tree.candidate(node)
        return (
            f"{token_text(candidate.piece)}  {percent(candidate.probability)}\n"
            f"score {minus(candidate.score)} · rank {candidate.rank} · {candidate.fate.replace('_', ' ')}"
        )

    @Slot()
    def copy(self) -> None:
        """Copy the text that leads to the selected node."""
        tree, node = self._tree, self.canvas.selected
        if tree is not None and node is not None and node in tree:
            QGuiApplication.clipboard().setText(tree.text(node))

    # Layout

    def _show_parts(self) -> None:
        grown = self._tree is not None
        self._splitter.setVisible(grown)
        self._path.setVisible(grown)
        self._legend.setVisible(grown)
        self.table.setVisible(grown and self._wants_table)
        self.update()

    @Slot(bool)
    def _show_table(self, shown: bool) -> None:
        self._wants_table = shown
        self._show_parts()

    @Slot()
    def _on_splitter(self) -> None:
        self._moved_splitter = True

    def _arrange(self) -> None:
        """The table beside a wide tree, below a narrow one, and no taller there than its rows."""
        beside = self.width() >= self._theme.px(BESIDE_FROM)
        wanted = Qt.Orientation.Horizontal if beside else Qt.Orientation.Vertical
        if self._splitter.orientation() != wanted:
            self._splitter.setOrientation(wanted)
            self._moved_splitter = False
        if not self._moved_splitter:
            low = min(self.table.full_height(), self.height() // 3)
            side, table = (self.width(), self._theme.px(400)) if beside else (self.height(), low)
            self._splitter.setSizes([max(1, side - table), table])
        self._find_bar.place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Find the table its place."""
        super().resizeEvent(event)
        self._arrange()

    def sizeHint(self) -> QSize:
        """Room for a tree of some steps."""
        return QSize(self._theme.px(700), self._theme.px(480))

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


def _node(candidate: BeamCandidate, total: int) -> TreeNode:
    return TreeNode(
        candidate.node, candidate.parent, _label(candidate), _share(candidate.probability),
        note=minus(candidate.score), weight=candidate.probability, state=_STATES.get(candidate.fate, "kept"),
        lane=candidate.group,
        progress=(candidate.progress, total) if total else None,
    )  # fmt: skip


def _share(probability: float) -> str:
    """`.46`; `1` and `<.01` at the ends."""
    if 0 < probability < 0.005:
        return "<.01"
    text = f"{probability:.2f}"
    return "1" if text == "1.00" else text.removeprefix("0")


def _label(candidate: BeamCandidate) -> str:
    """The token; whatever ends a text by itself is called end."""
    return "end" if candidate.ended == "eos" else token_text(candidate.piece)
