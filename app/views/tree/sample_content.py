"""Samples in the tree view: the samples of one prompt merged into one tree, and their list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from decodescope.app.state.run import Run
from decodescope.app.state.sample_tree import ROOT, Sample, SampleNode, SampleTree, list_samples
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.views.base import Table
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.shared.table_export import sample_tree_table
from decodescope.app.views.text.token_wording import format_text_count, token_text
from decodescope.app.views.tree.beam_nodes import probability_text, root_label
from decodescope.app.views.tree.rows_table import DIFFERS_AT_ROLE, Index, SortableTable, SortedRowsModel
from decodescope.app.views.tree.sample_report import sample_node_report, sample_node_tooltip, sample_root_report
from decodescope.app.views.tree.tree_content import TreeContent
from decodescope.app.widgets.plain_text import tooltip
from decodescope.app.widgets.tree_canvas.canvas_state import CanvasState
from decodescope.app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from decodescope.app.widgets.tree_canvas.tree_style import STAR
from decodescope.core import words
from decodescope.resources.language import mark, tr

NUMBER, TEXT, LENGTH, SURPRISE = range(4)
_TITLES = (mark("Seed"), mark("Text"), mark("Tokens"), mark("Bits per token"))
_WIDTHS = {NUMBER: 72, LENGTH: 62, SURPRISE: 92}
_THROUGH_MARK = "▸"
"""Marks the samples that pass through the selected node, in addition to their font weight."""


class SamplesModel(SortedRowsModel):
    """Table model of the samples, in sort order."""

    def __init__(self) -> None:
        super().__init__(_TITLES, (NUMBER, LENGTH, SURPRISE), (NUMBER, Qt.SortOrder.AscendingOrder))
        self.rows: list[Sample] = []
        self.theme = theme_for("light")
        self._shown = self._shared = 0
        self._marked: frozenset[int] = frozenset()

    def show_rows(self, rows: Sequence[Sample], shown: int) -> None:
        """Replace the rows; sample number `shown` is in the other views."""
        self._shown, self._shared = shown, _shared_prefix_length([row.text for row in rows])
        self.show_sorted(rows)

    def set_marked(self, numbers: Sequence[int]) -> None:
        """Set the samples that pass through the selected node."""
        self._marked = frozenset(numbers)
        self.refresh_cells()

    def sort_key(self, row: Sample, column: int) -> Any:
        """Return the sort key of a column."""
        return (row.number, row.text.strip().casefold(), row.length, row.surprise or 0.0)[column]

    def column_title(self, column: int) -> str:
        """Return the title of a column; samples without their own seeds are numbered."""
        return tr("No.") if column == NUMBER and self._has_no_seeds else super().column_title(column)

    @property
    def _has_no_seeds(self) -> bool:
        return any(sample.seed is None for sample in self.rows[:1])

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the data of a cell."""
        sample, column = self.rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._cell_text(sample, column)
            case _ if role == DIFFERS_AT_ROLE:
                return self.first_unique_index(index.row(), TEXT) if column == TEXT else None
            case Qt.ItemDataRole.ToolTipRole if column == TEXT:
                return tooltip(sample.text.strip())
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(column)
            case Qt.ItemDataRole.FontRole:
                strong = sample.number == self._shown or sample.number in self._marked
                return self.theme.font(12, 600 if strong and column <= TEXT else 400, tabular=column != TEXT)
            case Qt.ItemDataRole.ForegroundRole:
                passed = not self._marked or sample.number in self._marked
                return self.theme.color("text" if passed else "muted")
        return None

    def _cell_text(self, sample: Sample, column: int) -> str:
        if column == NUMBER:
            return f"{sample.number + 1 if sample.seed is None else sample.seed}"
        if column == TEXT:
            mark = STAR if sample.number == self._shown else _THROUGH_MARK if sample.number in self._marked else ""
            rest = " ".join(sample.text[self._shared :].split())
            text = f"…{rest}" if self._shared else rest or tr("(empty)")
            return f"{mark} {text}" if mark else text
        if column == LENGTH:
            return f"{sample.length:,}"
        return "–" if sample.surprise is None else words.decimal(sample.surprise / math.log(2))


def _shared_prefix_length(texts: Sequence[str]) -> int:
    """Return the length of the prefix of whole words shared by all samples; the list omits it because the tree shows
    it.
    """
    first, last = min(texts, default=""), max(texts, default="")
    shared = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    words = first.rfind(" ", 0, shared) + 1
    return words if len(texts) > 1 and first[:words].strip() else 0


class SampleTable(SortableTable):
    """The samples of a run, one row each. `samplePicked(number)`: the user has selected a sample."""

    samplePicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.rows_model = SamplesModel()
        super().__init__("samples", self.rows_model, TEXT, _WIDTHS, parent)
        self.rows_model.setParent(self)
        self.setAccessibleName(tr("Samples"))
        self.setTabKeyNavigation(False)
        self.sortByColumn(NUMBER, Qt.SortOrder.AscendingOrder)
        self.clicked.connect(self._on_clicked)

    def restyle(self, theme: Theme) -> None:
        self.rows_model.theme = theme
        super().restyle(theme)
        self.viewport().update()

    def show_rows(self, rows: Sequence[Sample], shown: int) -> None:
        """Replace the samples."""
        self.rows_model.show_rows(rows, shown)

    def set_marked(self, numbers: Sequence[int]) -> None:
        """Set the samples that pass through the selected node."""
        self.rows_model.set_marked(numbers)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Select the row with Enter or Space."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.currentIndex().isValid():
            self._on_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self.samplePicked.emit(self.rows_model.rows[index.row()].number)


class SampleContent(TreeContent):
    """Show the run's samples as a tree; the canvas grows by a depth when all samples have reached it."""

    title = mark("Tree of samples")
    legend = (
        ("kept", mark("several samples")),
        ("lone", mark("one sample")),
        ("best", mark("shown sample")),
        ("finished", mark("ends")),
        ("cut", mark("at limit")),
    )
    hint = mark("thickness = fraction of the samples")
    faint_titles = (mark("Single samples"), mark("Branches with only one sample: shown, dimmed or hidden"))
    faint_mode = "hidden"

    def __init__(self, stage: CanvasState, parent: QWidget) -> None:
        self._stage, self.sample_tree, self._is_settled = stage, SampleTree(), False
        self._full_sample: int | None = None
        self._cut: set[int] = set()
        """Nodes at which all samples end because of the limit."""
        self.table: SampleTable = SampleTable(parent)

    @property
    def steps(self) -> int:
        """Number of depths on the canvas."""
        return len(self._stage.scene.model.columns) - 1

    def restart(self) -> None:
        """Restart for another run."""
        self.sample_tree, self._is_settled, self._full_sample = SampleTree(), False, None
        self._cut = set()
        self._stage.clear()

    def update(self, run: Run) -> int:
        """Add new depths, and return the node of the shown sample at the cursor."""
        sample_tree = self.sample_tree
        new = sample_tree.update(run)
        if not self._stage.scene.model.nodes:
            self._stage.add_nodes([_root_node(run)])
        if new:
            self._stage.fold(node.id for node in new if _starts_single_path(node, sample_tree))
            self._stage.add_nodes([_tree_node(node, sample_tree) for node in new])
        if run.outcome is not None and not self._is_settled:
            self._is_settled = True
            self._mark_cut_ends(run)
            self._stage.lay_out_evenly()
        self._stage.set_max_depth(None if run.cursor >= run.length else run.cursor)
        path = [node.id for node in sample_tree.path(sample_tree.end_of(run.shown_index))]
        here = ([ROOT, *path][: run.cursor + 1] or [ROOT])[-1]
        self._stage.set_best_path([ROOT, *path])
        self.table.show_rows(list_samples(run, sample_tree), run.shown_index)
        return here

    def _mark_cut_ends(self, run: Run) -> None:
        """Give the last tokens of samples that were cut off by the limit their own shape."""
        tree = self.sample_tree
        ends = tree.endings()
        cut = {sample.node for sample in list_samples(run, tree) if sample.state == "cut"}
        self._cut = {node for node in cut if node in tree and tree.count_samples(node) == ends[node]}
        nodes = [tree.node(node) for node in self._cut]
        self._stage.set_states({node.id: "cut" for node in nodes if node.count > 1})

    def _drawn_state(self, node: SampleNode) -> NodeState:
        return "cut" if node.id in self._cut else _state(node)

    def path_of(self, sample: int) -> list[int]:
        """Return the nodes of a sample, starting at the prompt's end."""
        return [ROOT, *(node.id for node in self.sample_tree.path(self.sample_tree.end_of(sample)))]

    def branch_point(self, sample: int) -> int:
        """Return the node from which only this sample continues; its last node if there is none."""
        path = self.sample_tree.path(self.sample_tree.end_of(sample))
        return next((node.id for node in path if node.count == 1), self.sample_tree.end_of(sample))

    def draw_full_path(self, sample: int) -> None:
        """Draw the full path of a sample, including the part it has alone, instead of the previous one."""
        lone: dict[int, NodeState] = {
            node.id: "lone" if number == self._full_sample else self._drawn_state(node)
            for number in (self._full_sample, sample)
            if number is not None
            for node in self.sample_tree.path(self.sample_tree.end_of(number))
            if node.count == 1
        }
        self._full_sample = sample
        self._stage.set_states(lone)

    def select_row(self, node: int | None) -> None:
        """Mark the samples that pass through the node."""
        self.table.set_marked(
            self.sample_tree.node(node).samples if node is not None and node in self.sample_tree else ()
        )

    def token_index(self, run: Run, node: int) -> int | None:
        """Return the node's index in the shown sample; None if the sample does not pass through it."""
        if node in self.sample_tree and run.shown_index in self.sample_tree.node(node).samples:
            return self.sample_tree.node(node).depth - 1
        return None

    def node_of(self, run: Run, token: int) -> int | None:
        """Return the shown sample's node at a token index."""
        path = self.sample_tree.path(self.sample_tree.end_of(run.shown_index))
        return path[token].id if token < len(path) else None

    def samples_through(self, node: int) -> Sequence[int]:
        """Return the samples that pass through the node; none for the prompt's end."""
        return self.sample_tree.node(node).samples if node in self.sample_tree else ()

    def text(self, node: int) -> str:
        """Return the text up to the node."""
        return self.sample_tree.text(node)

    def ids(self, node: int) -> tuple[int, ...]:
        """Return the token ids up to the node."""
        return tuple(one.token for one in self.sample_tree.path(node)) if node in self.sample_tree else ()

    def last_text(self, node: int) -> str:
        """Return the node's own text."""
        return (
            self.sample_tree.node(node).text or f" {_label(self.sample_tree.node(node))}"
            if node in self.sample_tree
            else ""
        )

    def report(self, run: Run, node: int) -> NodeReport | None:
        """Return the report on a node: fraction, count, probability, and the alternatives."""
        if node == ROOT:
            return sample_root_report(self.sample_tree, root_label(run))
        return sample_node_report(self.sample_tree, node) if node in self.sample_tree else None

    def tooltip(self, node: int) -> str:
        """Return the tooltip: token, count, fraction, probability."""
        return sample_node_tooltip(self.sample_tree, node)

    def figures(self) -> Table:
        """Return all nodes with their counts as a table."""
        return sample_tree_table(self.sample_tree)


def _root_node(run: Run) -> TreeNode:
    return TreeNode(ROOT, None, root_label(run), state="root", note=format_text_count(len(run.sequences)))


def _tree_node(node: SampleNode, tree: SampleTree) -> TreeNode:
    share = tree.fraction(node.id)
    return TreeNode(
        node.id, node.parent, _label(node), probability_text(node.probability), weight=share,
        note=tr("{count:,} of {total:,}").format(count=node.count, total=tree.total),
        state="lone" if node.count == 1 else _state(node),
    )  # fmt: skip


def _state(node: SampleNode) -> NodeState:
    return "finished" if node.special else "kept"


def _starts_single_path(node: SampleNode, tree: SampleTree) -> bool:
    """Return whether a single sample leaves all others here; its further path is drawn on demand."""
    return node.count == 1 and tree.count_samples(node.parent) > 1


def _label(node: SampleNode) -> str:
    """Return the node's label: its token, or `end` for an end-of-sequence token."""
    return tr("end") if node.special else token_text(node.piece, node.special)
