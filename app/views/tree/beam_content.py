"""A beam search in the tree view: its candidates, and the table of hypotheses."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.state.beam_tree import BeamTree
from app.state.run import Run
from app.views.base import Table
from app.views.node_reports import NodeReport
from app.views.shared.table_export import candidate_table
from app.views.tree.beam_growth import ROOT, BeamTreeBuilder, candidate_label, displayed_path, root_label
from app.views.tree.beam_report import beam_node_report, beam_node_tooltip, beam_root_report
from app.views.tree.hypotheses import HypothesesTable
from app.views.tree.tree_content import TreeContent
from app.widgets.tree_canvas.canvas_state import CanvasState
from resources.language import mark


class BeamContent(TreeContent):
    """Reads the run's own tree; the canvas grows with every step."""

    title = mark("Beam tree")
    legend = (("kept", mark("kept")), ("pruned", mark("pruned")), ("best", mark("leads")), ("finished", mark("ended")))
    hint = mark("thickness = probability")
    faint_titles = (mark("Pruned"), mark("Branches that were pruned: shown, dimmed or hidden"))
    faint_mode = "dimmed"

    def __init__(self, stage: CanvasState, parent: QWidget) -> None:
        self._builder = BeamTreeBuilder(stage)
        self._tree: BeamTree | None = None
        self.table: HypothesesTable = HypothesesTable(parent)

    @property
    def steps(self) -> int:
        """How many steps stand on the canvas."""
        return self._builder.steps

    def restart(self) -> None:
        """Another run begins."""
        self._tree = None
        self._builder.restart()

    def update(self, run: Run) -> int:
        """Add the steps that are new; the node that leads at the cursor."""
        self._tree = tree = run.beams
        if tree is None:
            return ROOT
        leader = tree.leader(run.cursor)
        self._builder.update(run, tree)
        self.table.show_rows(tree.hypotheses(run.cursor), leader, tree.groups)
        return leader

    def select_row(self, node: int | None) -> None:
        """Mark the hypothesis that ends there."""
        self.table.select_node(node)

    def token_index(self, run: Run, node: int) -> int | None:
        """Its place on the leading path."""
        return next((n for n, candidate in enumerate(displayed_path(run)) if candidate.node == node), None)

    def node_of(self, run: Run, token: int) -> int | None:
        """The candidate that a token of the shown text stands for."""
        path = displayed_path(run)
        return path[token].node if token < len(path) else None

    def text(self, node: int) -> str:
        """What leads to a candidate."""
        return self._tree.text(node) if self._tree is not None and node in self._tree else ""

    def ids(self, node: int) -> tuple[int, ...]:
        """The tokens that lead to a candidate."""
        return tuple(candidate.id for candidate in self._tree.path(node)) if self._tree is not None else ()

    def last_text(self, node: int) -> str:
        """The candidate's own part."""
        if self._tree is None or node not in self._tree:
            return ""
        candidate = self._tree.candidate(node)
        return candidate.text or f" {candidate_label(candidate)}"

    def report(self, run: Run, node: int) -> NodeReport | None:
        """Why it lived or died; of the root, what was considered first."""
        tree = self._tree
        if tree is None:
            return None
        if node == ROOT:
            return beam_root_report(tree, root_label(run), len(run.prompt))
        return beam_node_report(tree, node) if node in tree else None

    def tooltip(self, node: int) -> str:
        """Probability, score, rank, fate."""
        return beam_node_tooltip(self._tree, node)

    def figures(self) -> Table:
        """Every continuation that was considered."""
        return candidate_table(self._tree) if self._tree is not None else ()
