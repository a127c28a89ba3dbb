"""What the tree view asks of the tree that it shows, whichever kind of run has grown it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from app.state.run import Run
from app.views.base import Table
from app.views.node_reports import NodeReport
from app.views.tree.rows_table import SortableTable
from core import words

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
