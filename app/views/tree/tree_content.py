"""Interface of the tree view to the kinds of tree it can show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.tree.rows_table import SortableTable
from decodescope.core import words
from decodescope.resources.language import tr

HORIZONTAL_FROM = 1000
"""Minimum width in pixels (at 100 %) for the table beside the tree."""
TABLE_WIDTH = 400


class TreeSplit(Themed, QSplitter):
    """Arrange the tree and its table, until the user moves the handle."""

    def __init__(self, tree: QWidget, tables: Sequence[SortableTable], parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent, childrenCollapsible=False, handleWidth=1)
        self._tables, self._table = tables, tables[0]
        self._is_moved_by_user, self._is_table_requested, self._theme = False, True, theme_for("light")
        self._is_presenting = False
        self._arranged_for: tuple[int, ...] = ()
        self.addWidget(tree)
        for table in tables:
            self.addWidget(table)
            self.handle(self.count() - 1).setAccessibleName(tr("Size of the tree"))
        self.show_table(self._table)
        self.setStretchFactor(0, 1)
        self.splitterMoved.connect(self._on_moved)

    def show_table(self, table: SortableTable) -> None:
        """Choose which table is shown beside the tree."""
        self._table = table
        self.set_table_visible(self._is_table_requested)

    @Slot(bool)
    def set_table_visible(self, on: bool) -> None:
        """Show or hide the table."""
        self._is_table_requested = on
        for table in self._tables:
            table.setVisible(on and not self._is_presenting and table is self._table)

    def set_presenting(self, on: bool) -> None:
        """Show only the tree while presenting."""
        self._is_presenting = on
        self.set_table_visible(self._is_table_requested)

    @Slot()
    def _on_moved(self) -> None:
        self._is_moved_by_user = True

    def restyle(self, theme: Theme) -> None:
        self.arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Rearrange the table."""
        super().resizeEvent(event)
        self.arrange()

    def arrange(self) -> None:
        """Arrange the table for the available size; below the tree it is at most as high as its rows."""
        theme, width, height = self._theme, self.width(), self.height()
        before, self._arranged_for = self._arranged_for, (theme.px(100), width, height, self._table.full_height())
        if before == self._arranged_for:
            return
        is_horizontal = width >= theme.px(HORIZONTAL_FROM)
        orientation = Qt.Orientation.Horizontal if is_horizontal else Qt.Orientation.Vertical
        if self.orientation() != orientation:
            self.setOrientation(orientation)
            self._is_moved_by_user = False
        if not self._is_moved_by_user:
            low = min(self._table.full_height(), height // 3)
            side, table = (width, theme.px(TABLE_WIDTH)) if is_horizontal else (height, low)
            self.setSizes([max(1, side - table), *(table if shown is self._table else 0 for shown in self._tables)])


PROMPT_TOKENS = 24
"""Maximum number of prompt tokens shown before the text so far."""


class TreeContent(ABC):
    """A run's tree. Node ids are those of the canvas; 0 is the prompt's end."""

    title: str
    """Accessible name."""
    legend: Sequence[tuple[str, str]]
    """Legend entries: (node state, word)."""
    hint: str
    """Explanation of the edges."""
    faint_titles: tuple[str, str]
    """Title of the faint nodes, and a sentence about them."""
    faint_mode: str
    """Mode of the faint nodes: shown, dimmed or hidden."""
    table: SortableTable
    """Table beside the tree."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of depths on the canvas."""

    @abstractmethod
    def restart(self) -> None:
        """Clear the canvas for another run."""

    @abstractmethod
    def update(self, run: Run) -> int:
        """Show the tree at the run's cursor; return the node of the shown text, or 0 before the first token."""

    @abstractmethod
    def select_row(self, node: int | None) -> None:
        """Select the table row of the node, if there is one."""

    @abstractmethod
    def token_index(self, run: Run, node: int) -> int | None:
        """Return the index of the node's token in the shown text, or None."""

    @abstractmethod
    def node_of(self, run: Run, token: int) -> int | None:
        """Return the node of a token of the shown text."""

    @abstractmethod
    def text(self, node: int) -> str:
        """Return the text of the path to `node`, without the prompt; empty for unknown nodes."""

    @abstractmethod
    def ids(self, node: int) -> tuple[int, ...]:
        """Return the token ids of the path to `node`; empty for unknown nodes and for the prompt's end."""

    @abstractmethod
    def last_text(self, node: int) -> str:
        """Return the node's own text, shown in bold at the end; empty for unknown nodes."""

    @abstractmethod
    def report(self, run: Run, node: int) -> NodeReport | None:
        """Return the inspector's report on the node."""

    @abstractmethod
    def tooltip(self, node: int) -> str:
        """Return the tooltip of the node."""

    @abstractmethod
    def figures(self) -> Table:
        """Return the complete tree as a table for export."""


def prompt_end(run: Run) -> str:
    """Return the end of the prompt, shown before the text so far; empty after a control token, where a new text
    starts.
    """
    if run.before and words.control_name(run.before[-1].text, run.before[-1].special):
        return ""
    return "".join(
        token.text for token in run.before[-PROMPT_TOKENS:] if not words.control_name(token.text, token.special)
    )
