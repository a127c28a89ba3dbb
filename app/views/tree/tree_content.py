"""What the tree view asks of the tree that it shows, whichever kind of run has grown it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.base import Table
from app.views.node_reports import NodeReport
from app.views.tree.rows_table import SortableTable
from core import words
from resources.language import tr

HORIZONTAL_FROM = 1000
"""Pixels (at 100 %) of width from which the table stands beside the tree."""
TABLE_WIDTH = 400


class TreeSplit(QSplitter):
    """Gives the table a good place, until the reader has moved the handle."""

    def __init__(self, tree: QWidget, tables: Sequence[SortableTable], parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent, childrenCollapsible=False, handleWidth=1)
        self._tables, self._table = tables, tables[0]
        self._is_moved_by_user, self._is_table_wanted, self._theme = False, True, theme_for("light")
        self._is_presenting = False
        self._arranged_for: tuple[int, ...] = ()
        self.addWidget(tree)
        for table in tables:
            self.addWidget(table)
            self.handle(self.count() - 1).setAccessibleName(tr("Room for the tree"))
        self.show_table(self._table)
        self.setStretchFactor(0, 1)
        self.splitterMoved.connect(self._on_moved)

    def show_table(self, table: SortableTable) -> None:
        """Which of the tables stands beside the tree."""
        self._table = table
        self.set_table_visible(self._is_table_wanted)

    @Slot(bool)
    def set_table_visible(self, on: bool) -> None:
        """Whether a table is to be seen."""
        self._is_table_wanted = on
        for table in self._tables:
            table.setVisible(on and not self._is_presenting and table is self._table)

    def set_presenting(self, on: bool) -> None:
        """On a stage the tree stands alone."""
        self._is_presenting = on
        self.set_table_visible(self._is_table_wanted)

    @Slot()
    def _on_moved(self) -> None:
        self._is_moved_by_user = True

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self._theme = theme
        self.arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Find the table its place."""
        super().resizeEvent(event)
        self.arrange()

    def arrange(self) -> None:
        """Place the table in the room there is; below the tree it is no taller than its rows."""
        theme, width, height = self._theme, self.width(), self.height()
        before, self._arranged_for = self._arranged_for, (theme.px(100), width, height, self._table.full_height())
        if before == self._arranged_for:
            return
        beside = width >= theme.px(HORIZONTAL_FROM)
        wanted = Qt.Orientation.Horizontal if beside else Qt.Orientation.Vertical
        if self.orientation() != wanted:
            self.setOrientation(wanted)
            self._is_moved_by_user = False
        if not self._is_moved_by_user:
            low = min(self._table.full_height(), height // 3)
            side, table = (width, theme.px(TABLE_WIDTH)) if beside else (height, low)
            self.setSizes([max(1, side - table), *(table if shown is self._table else 0 for shown in self._tables)])


PROMPT_TOKENS = 24
"""How much of the prompt's end leads the text so far."""


class TreeContent(ABC):
    """A run's tree. Nodes are those of the canvas; 0 is the prompt's end."""

    title: str
    """What a screen reader calls it."""
    legend: Sequence[tuple[str, str]]
    """(state of a node, word)."""
    hint: str
    """How edges are to be read."""
    faint_titles: tuple[str, str]
    """What its faint nodes are called, and a sentence on them."""
    faint_mode: str
    """How they are shown: shown, dimmed or hidden."""
    table: SortableTable
    """What stands beside the tree."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many depths stand on the canvas."""

    @abstractmethod
    def restart(self) -> None:
        """Another run begins: an empty canvas."""

    @abstractmethod
    def update(self, run: Run) -> int:
        """Show the tree as it was at the run's cursor; the node of the shown text, 0 before the first."""

    @abstractmethod
    def select_row(self, node: int | None) -> None:
        """Mark the table's row of that node, where it has one."""

    @abstractmethod
    def token_index(self, run: Run, node: int) -> int | None:
        """Which token of the shown text a node is; None where it is none."""

    @abstractmethod
    def node_of(self, run: Run, token: int) -> int | None:
        """The node of a token of the shown text."""

    @abstractmethod
    def text(self, node: int) -> str:
        """What the path to `node` wrote, without the prompt; empty for strangers."""

    @abstractmethod
    def ids(self, node: int) -> tuple[int, ...]:
        """The tokens on the path to `node`; empty for strangers and the prompt's end."""

    @abstractmethod
    def last_text(self, node: int) -> str:
        """What is shown strongly at the end of that text: the node's own part of it; empty for strangers."""

    @abstractmethod
    def report(self, run: Run, node: int) -> NodeReport | None:
        """What the inspector says of it."""

    @abstractmethod
    def tooltip(self, node: int) -> str:
        """A line or two for the pointer."""

    @abstractmethod
    def figures(self) -> Table:
        """All of it as a table for files."""


def prompt_end(run: Run) -> str:
    """The end of the prompt, which leads the text so far; empty behind a control token: a text of its own follows."""
    if run.before and words.control_name(run.before[-1].text, run.before[-1].special):
        return ""
    return "".join(
        token.text for token in run.before[-PROMPT_TOKENS:] if not words.control_name(token.text, token.special)
    )
