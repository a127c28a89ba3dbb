"""A beam search in the tree view: its candidates, and the table of hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QWidget

from decodescope.app.state.beam_tree import BeamTree, HypothesisRow
from decodescope.app.state.run import Run
from decodescope.app.state.sequences import SequenceStatus
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.views.base import Table
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.shared.table_export import candidate_table
from decodescope.app.views.tree.beam_nodes import (
    ROOT,
    BeamTreeBuilder,
    beam_node_report,
    beam_node_tooltip,
    beam_root_report,
    candidate_label,
    displayed_path,
    root_label,
)
from decodescope.app.views.tree.rows_table import DIFFERS_AT_ROLE, Index, SortableTable, SortedRowsModel
from decodescope.app.views.tree.tree_content import TreeContent
from decodescope.app.widgets.plain_text import tooltip
from decodescope.app.widgets.tree_canvas.canvas_state import CanvasState
from decodescope.app.widgets.tree_canvas.tree_style import STAR
from decodescope.core import words
from decodescope.resources.language import mark, tr

TEXT, SCORE, LENGTH, GROUP, STATE = range(5)
_TITLES = (mark("Text"), mark("Score"), mark("Length"), mark("Group"), mark("State"))
_WIDTHS = {SCORE: 74, LENGTH: 58, GROUP: 54, STATE: 88}
STATE_TITLES: dict[SequenceStatus, str] = {
    "running": mark("▸ running"),
    "finished": mark("● finished"),
    "cut": mark("◐ at limit"),
    "stopped": mark("○ stopped"),
}
"""Titles of the states; the sign makes them readable without colour."""
_COLOURS: dict[SequenceStatus, str] = {"running": "kept", "finished": "finished", "cut": "muted", "stopped": "pruned"}
CONTEXT_LENGTH = 24
"""Number of characters shown before the point where the texts diverge."""


class HypothesesModel(SortedRowsModel):
    """Table model of the hypotheses, in sort order."""

    def __init__(self, parent: QWidget | None = None) -> None:
        order = (SCORE, Qt.SortOrder.DescendingOrder)
        super().__init__(_TITLES, (SCORE, LENGTH, GROUP), order, parent)
        self.rows: list[HypothesisRow] = []
        self._best = self._shared = 0
        self._theme = theme_for("light")

    def set_theme(self, theme: Theme) -> None:
        """Apply colours."""
        self._theme = theme
        self.refresh_cells()

    def show_rows(self, rows: Sequence[HypothesisRow], best: int) -> None:
        """Replace the rows; `best` is the leading node."""
        self._best, self._shared = best, shared_prefix_length([row.text for row in rows])
        self.show_sorted(rows)

    def sort_key(self, row: HypothesisRow, column: int) -> Any:
        """Return the sort key of a column."""
        return (row.text.strip().casefold(), row.score, row.length, row.group, row.state)[column]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the data of a cell."""
        row, column = self.rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._cell_text(row, column)
        if role == DIFFERS_AT_ROLE:
            return self.first_unique_index(index.row(), TEXT) if column == TEXT else None
        if role == Qt.ItemDataRole.ToolTipRole and column == TEXT:
            return tooltip(row.text.strip())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self.alignment(column)
        if role == Qt.ItemDataRole.FontRole:
            return self._font(row, column)
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._colour(row, column)
        return None

    def _cell_text(self, row: HypothesisRow, column: int) -> str:
        if column == TEXT:
            rest = " ".join(row.text[self._shared :].split())
            text = f"…{rest}" if self._shared else rest or tr("(empty)")
            return f"{STAR} {text}" if row.node == self._best else text
        return (words.decimal(row.score, 3), f"{row.length:,}", f"{row.group + 1}", tr(STATE_TITLES[row.state]))[
            column - 1
        ]

    def _font(self, row: HypothesisRow, column: int) -> QFont:
        best = row.node == self._best and column <= SCORE
        return self._theme.font(12, 600 if best else 400, tabular=column in (SCORE, LENGTH))

    def _colour(self, row: HypothesisRow, column: int) -> QColor:
        if column == STATE:
            return self._theme.ink(_COLOURS[row.state])
        return self._theme.color("text" if column <= SCORE else "muted")


def shared_prefix_length(texts: Sequence[str]) -> int:
    """Return the length of the shared prefix that the table can omit, keeping some words before the texts diverge."""
    if len(texts) < 2:
        return 0
    first, last = min(texts), max(texts)
    shared = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first.rfind(" ", 0, max(0, shared - CONTEXT_LENGTH)) + 1


class HypothesesTable(SortableTable):
    """The hypotheses of a search, best first. `nodePicked(id)`: the user has selected a hypothesis."""

    nodePicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.rows_model = HypothesesModel()
        super().__init__("hypotheses", self.rows_model, TEXT, _WIDTHS, parent)
        self.rows_model.setParent(self)
        self.setAccessibleName(tr("Hypotheses"))
        self.sortByColumn(SCORE, Qt.SortOrder.DescendingOrder)
        self.selectionModel().currentRowChanged.connect(self._on_current)
        self.clicked.connect(self._on_clicked)

    def restyle(self, theme: Theme) -> None:
        self.rows_model.set_theme(theme)
        super().restyle(theme)

    def show_rows(self, rows: Sequence[HypothesisRow], best: int, groups: int) -> None:
        """Replace the hypotheses, keeping the selection if it still exists."""
        self.selectionModel().blockSignals(True)
        chosen = self.current_node()
        self.rows_model.show_rows(rows, best)
        self.setColumnHidden(GROUP, groups < 2)
        self.select_node(chosen)
        self.selectionModel().blockSignals(False)

    def current_node(self) -> int | None:
        """Return the node of the selected row."""
        rows = self.selectionModel().selectedRows()
        return self.rows_model.rows[rows[0].row()].node if rows else None

    def select_node(self, node: int | None) -> None:
        """Select the row that ends at the node, without emitting a signal; clear the selection if there is none."""
        self.selectionModel().blockSignals(True)
        place = next((n for n, row in enumerate(self.rows_model.rows) if row.node == node), None)
        if place is None:
            self.clearSelection()
        else:
            self.selectRow(place)
        self.selectionModel().blockSignals(False)
        self.viewport().update()

    @Slot(QModelIndex, QModelIndex)
    def _on_current(self, current: QModelIndex, before: QModelIndex) -> None:
        if current.isValid():
            self.nodePicked.emit(self.rows_model.rows[current.row()].node)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self.nodePicked.emit(self.rows_model.rows[index.row()].node)


class BeamContent(TreeContent):
    """Show the run's beam tree; the canvas grows with every step."""

    title = mark("Beam tree")
    legend = (
        ("kept", mark("kept")),
        ("pruned", mark("pruned")),
        ("best", mark("best")),
        ("finished", mark("finished")),
        ("cut", mark("at limit")),
    )
    hint = mark("thickness = probability")
    faint_titles = (mark("Pruned"), mark("Pruned branches: shown, dimmed or hidden"))
    faint_mode = "dimmed"

    def __init__(self, stage: CanvasState, parent: QWidget) -> None:
        self._builder = BeamTreeBuilder(stage)
        self._tree: BeamTree | None = None
        self.table: HypothesesTable = HypothesesTable(parent)

    @property
    def steps(self) -> int:
        """Number of steps on the canvas."""
        return self._builder.steps

    def restart(self) -> None:
        """Restart for another run."""
        self._tree = None
        self._builder.restart()

    def update(self, run: Run) -> int:
        """Add new steps, and return the leading node at the cursor."""
        self._tree = tree = run.beams
        if tree is None:
            return ROOT
        leader = tree.leader(run.cursor)
        self._builder.update(run, tree)
        self.table.show_rows(tree.hypotheses(run.cursor), leader, tree.groups)
        return leader

    def select_row(self, node: int | None) -> None:
        """Select the hypothesis that ends at the node."""
        self.table.select_node(node)

    def token_index(self, run: Run, node: int) -> int | None:
        """Return the index of the node on the leading path."""
        return next((n for n, candidate in enumerate(displayed_path(run)) if candidate.node == node), None)

    def node_of(self, run: Run, token: int) -> int | None:
        """Return the candidate node of a token of the shown text."""
        path = displayed_path(run)
        return path[token].node if token < len(path) else None

    def text(self, node: int) -> str:
        """Return the text up to a candidate."""
        return self._tree.text(node) if self._tree is not None and node in self._tree else ""

    def ids(self, node: int) -> tuple[int, ...]:
        """Return the token ids up to a candidate."""
        return tuple(candidate.id for candidate in self._tree.path(node)) if self._tree is not None else ()

    def last_text(self, node: int) -> str:
        """Return the candidate's own text."""
        if self._tree is None or node not in self._tree:
            return ""
        candidate = self._tree.candidate(node)
        return candidate.text or f" {candidate_label(candidate)}"

    def report(self, run: Run, node: int) -> NodeReport | None:
        """Return the report on why a node was kept or pruned, or, for the root, the first candidates."""
        tree = self._tree
        if tree is None:
            return None
        if node == ROOT:
            return beam_root_report(tree, root_label(run), len(run.prompt))
        return beam_node_report(tree, node) if node in tree else None

    def tooltip(self, node: int) -> str:
        """Return the tooltip: probability, score, rank, fate."""
        return beam_node_tooltip(self._tree, node)

    def figures(self) -> Table:
        """Return all continuations that were considered, as a table."""
        return candidate_table(self._tree) if self._tree is not None else ()
