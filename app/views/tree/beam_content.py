"""A beam search in the tree view: its candidates, and the table of hypotheses."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.state.beam_tree import BeamTree
from app.state.run import Run
from app.views.base import Table
from app.views.node_reports import NodeReport
from app.views.shared.table_export import of_candidates
from app.views.tree.beam_growth import ROOT, Growth, label, root_label, shown_path
from app.views.tree.beam_report import report_on, report_on_start, tip
from app.views.tree.hypotheses import HypothesesTable
from app.views.tree.tree_content import TreeContent
from app.widgets.tree_canvas.canvas_state import CanvasState
from resources.language import mark


class BeamContent(TreeContent):
    """Reads the run's own tree; the canvas grows with every step."""

    title = mark("Beam tree")
    legend = (("kept", mark("kept")), ("pruned", mark("pruned")), ("best", mark("leads")), ("finished", mark("ended")))
    hint = mark("thickness = probability")
    faint = (mark("Pruned"), mark("Branches that were pruned: shown, dimmed or hidden"))
    how = "dimmed"

    def __init__(self, stage: CanvasState, parent: QWidget) -> None:
        self._growth = Growth(stage)
        self._tree: BeamTree | None = None
        self.table: HypothesesTable = HypothesesTable(parent)

    @property
    def steps(self) -> int:
        """How many steps stand on the canvas."""
        return self._growth.steps

    def restart(self) -> None:
        """Another run begins."""
        self._tree = None
        self._growth.restart()

    def follow(self, run: Run) -> int:
        """Add the steps that are new; the node that leads at the cursor."""
        self._tree = tree = run.beams
        if tree is None:
            return ROOT
        leader = tree.leader(run.cursor)
        self._growth.follow(run, tree)
        self.table.show_rows(tree.hypotheses(run.cursor), leader, tree.groups)
        return leader

    def mark(self, node: int | None) -> None:
        """Mark the hypothesis that ends there."""
        self.table.select_node(node)

    def place(self, run: Run, node: int) -> int | None:
        """Its place on the leading path."""
        return next((n for n, candidate in enumerate(shown_path(run)) if candidate.node == node), None)

    def node_of(self, run: Run, token: int) -> int | None:
        """The candidate that a token of the shown text stands for."""
        path = shown_path(run)
        return path[token].node if token < len(path) else None

    def text(self, node: int) -> str:
        """What leads to a candidate."""
        return self._tree.text(node) if self._tree is not None and node in self._tree else ""

    def ids(self, node: int) -> tuple[int, ...]:
        """The tokens that lead to a candidate."""
        return tuple(candidate.id for candidate in self._tree.path(node)) if self._tree is not None else ()

    def last_word(self, node: int) -> str:
        """The candidate's own part."""
        if self._tree is None or node not in self._tree:
            return ""
        candidate = self._tree.candidate(node)
        return candidate.text or f" {label(candidate)}"

    def report(self, run: Run, node: int) -> NodeReport | None:
        """Why it lived or died; of the root, what was considered first."""
        tree = self._tree
        if tree is None:
            return None
        if node == ROOT:
            return report_on_start(tree, root_label(run), len(run.prompt))
        return report_on(tree, node) if node in tree else None

    def tip(self, node: int) -> str:
        """Probability, score, rank, fate."""
        return tip(self._tree, node)

    def figures(self) -> Table:
        """Every continuation that was considered."""
        return of_candidates(self._tree) if self._tree is not None else ()
