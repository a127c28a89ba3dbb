"""A chorus in the tree view: the texts of one prompt merged into one tree, and the list of them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from app.state.run import Run
from app.state.sample_tree import ROOT, SampleNode, SampleTree, samples
from app.views.base import Table
from app.views.node_reports import NodeReport
from app.views.shared.table_export import of_chorus
from app.views.text.token_wording import texts_told, token_text
from app.views.tree.beam_growth import root_label, share_text
from app.views.tree.sample_report import report_on, report_on_start, tip
from app.views.tree.samples import SampleTable
from app.views.tree.tree_content import TreeContent
from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from resources.language import mark, tr


class ChorusContent(TreeContent):
    """Merges the run's texts; the canvas grows by a depth once every text has come to it."""

    title = mark("Tree of the texts")
    legend = (
        ("kept", mark("several texts")),
        ("lone", mark("one text")),
        ("best", mark("the shown text")),
        ("finished", mark("ends")),
    )
    hint = mark("thickness = share of the texts")
    faint = (mark("Lone texts"), mark("Branches of one text alone: shown, dimmed or hidden"))
    how = "hidden"

    def __init__(self, stage: CanvasState, parent: QWidget) -> None:
        self._stage, self.chorus, self._is_settled = stage, SampleTree(), False
        self._whole: int | None = None
        self.table: SampleTable = SampleTable(parent)

    @property
    def steps(self) -> int:
        """How many depths stand on the canvas."""
        return len(self._stage.scene.model.columns) - 1

    def restart(self) -> None:
        """Another run begins."""
        self.chorus, self._is_settled, self._whole = SampleTree(), False, None
        self._stage.clear()

    def follow(self, run: Run) -> int:
        """Add the depths that are new; the node where the shown text is at the cursor."""
        chorus = self.chorus
        new = chorus.follow(run)
        if not self._stage.scene.model.nodes:
            self._stage.add_nodes([_root(run)])
        if new:
            self._stage.fold(node.id for node in new if _goes_on_alone(node, chorus))
            self._stage.add_nodes([_drawn(node, chorus) for node in new])
        if run.outcome is not None and not self._is_settled:
            self._is_settled = True
            self._stage.settle()
        self._stage.reveal_depth(None if run.cursor >= run.length else run.cursor)
        path = [node.id for node in chorus.path(chorus.end_of(run.shown))]
        here = ([ROOT, *path][: run.cursor + 1] or [ROOT])[-1]
        self._stage.set_best([ROOT, *path])
        self.table.show_rows(samples(run, chorus), run.shown)
        return here

    def path_of(self, sample: int) -> list[int]:
        """The nodes of a text, from the prompt's end."""
        return [ROOT, *(node.id for node in self.chorus.path(self.chorus.end_of(sample)))]

    def parting(self, sample: int) -> int:
        """Where a text goes on alone; its end where it never does."""
        path = self.chorus.path(self.chorus.end_of(sample))
        return next((node.id for node in path if node.count == 1), self.chorus.end_of(sample))

    def draw_whole(self, sample: int) -> None:
        """Draw that text to its end, where only it goes on too, and no longer the one before."""
        lone: dict[int, NodeState] = {
            node.id: "lone" if number == self._whole else _state(node)
            for number in (self._whole, sample)
            if number is not None
            for node in self.chorus.path(self.chorus.end_of(number))
            if node.count == 1
        }
        self._whole = sample
        self._stage.set_states(lone)

    def mark(self, node: int | None) -> None:
        """Mark the texts that pass there."""
        self.table.mark(self.chorus.node(node).samples if node is not None and node in self.chorus else ())

    def place(self, run: Run, node: int) -> int | None:
        """Its depth, where the shown text passes it."""
        if node in self.chorus and run.shown in self.chorus.node(node).samples:
            return self.chorus.node(node).depth - 1
        return None

    def node_of(self, run: Run, token: int) -> int | None:
        """The node that the shown text passes at that place."""
        path = self.chorus.path(self.chorus.end_of(run.shown))
        return path[token].id if token < len(path) else None

    def passing(self, node: int) -> Sequence[int]:
        """The texts that pass there; none for the prompt's end."""
        return self.chorus.node(node).samples if node in self.chorus else ()

    def text(self, node: int) -> str:
        """What leads there."""
        return self.chorus.text(node)

    def ids(self, node: int) -> tuple[int, ...]:
        """The tokens that lead there."""
        return tuple(one.token for one in self.chorus.path(node)) if node in self.chorus else ()

    def last_word(self, node: int) -> str:
        """The node's own part."""
        return self.chorus.node(node).text or f" {_label(self.chorus.node(node))}" if node in self.chorus else ""

    def report(self, run: Run, node: int) -> NodeReport | None:
        """Share, count, probability, and where else the texts went."""
        if node == ROOT:
            return report_on_start(self.chorus, root_label(run))
        return report_on(self.chorus, node) if node in self.chorus else None

    def tip(self, node: int) -> str:
        """Token, count, share, probability."""
        return tip(self.chorus, node)

    def figures(self) -> Table:
        """Every node with its count."""
        return of_chorus(self.chorus)


def _root(run: Run) -> TreeNode:
    return TreeNode(ROOT, None, root_label(run), state="root", note=texts_told(len(run.sequences)))


def _drawn(node: SampleNode, chorus: SampleTree) -> TreeNode:
    share = chorus.share(node.id)
    return TreeNode(
        node.id, node.parent, _label(node), share_text(node.probability), weight=share,
        note=tr("{count:,} of {total:,}").format(count=node.count, total=chorus.total),
        state="lone" if node.count == 1 else _state(node),
    )  # fmt: skip


def _state(node: SampleNode) -> NodeState:
    return "finished" if node.special else "kept"


def _goes_on_alone(node: SampleNode, chorus: SampleTree) -> bool:
    """Whether one text parts from all others here: what it writes from now on is its own, and unfolded on demand."""
    return node.count == 1 and chorus.passing(node.parent) > 1


def _label(node: SampleNode) -> str:
    """The token; what ends a text by itself is called end."""
    return tr("end") if node.special else token_text(node.piece, node.special)
