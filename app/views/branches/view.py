"""The branches view: the family of the shown run as a tree; a click on a run shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from decodescope.app.state.empty_view import BRANCH
from decodescope.app.state.run_history import RunTreeEntry
from decodescope.app.views.base import Table, View
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.shared.empty_page import add_fill_button, paint_empty_page
from decodescope.app.views.text.token_wording import format_token_count
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.tree_canvas import TreeCanvas
from decodescope.app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from decodescope.core import cut_short
from decodescope.resources.language import mark, tr


def tree_nodes(members: Sequence[RunTreeEntry], shown: str) -> list[TreeNode]:
    """Return one node per run, in the given order; a run whose parent is missing becomes a root."""
    numbers = {member.id: number for number, member in enumerate(members)}
    roots = [member for member in members if member.parent not in numbers]
    return [_node(member, numbers, roots, member.id == shown) for member in members]


def _node(entry: RunTreeEntry, numbers: Mapping[str, int], roots: Sequence[RunTreeEntry], is_shown: bool) -> TreeNode:
    state: NodeState = "root" if entry in roots else "unreached" if entry.is_scored else "kept"
    return TreeNode(
        numbers[entry.id], numbers.get(entry.parent), _label(entry), note=_short_note(entry),
        weight=0.3, state="best" if is_shown else state,
    )  # fmt: skip


def _label(entry: RunTreeEntry) -> str:
    if entry.is_scored:
        return tr("scored")
    return entry.excerpt or "…"


def _short_note(entry: RunTreeEntry) -> str:
    """Return a note short enough for a node's box."""
    if entry.is_scored:
        return format_token_count(entry.tokens)
    return tr("at token {number:,}").format(number=entry.shared_tokens + 1) if entry.parent else tr("first run")


def _note(entry: RunTreeEntry) -> str:
    if not entry.parent or entry.is_scored:
        return entry.summary
    return f"{tr('at token {number:,}').format(number=entry.shared_tokens + 1)} · {entry.summary}"


def node_tooltip(entry: RunTreeEntry) -> str:
    """Return the tooltip of a node."""
    return f"{_label(entry)}\n{_note(entry)}\n{_text_start(entry.text, 160)}".strip()


def report_on(entry: RunTreeEntry, parent: RunTreeEntry | None) -> NodeReport:
    """Return the inspector's report on a run of the family."""
    if entry.is_scored:
        sentence = tr("The text of the parent run, scored: no token was chosen.")
    elif parent is None:
        sentence = tr("The run from which the others branched.")
    else:
        sentence = tr("Same as its parent up to token {number:,}, then “{words}”.").format(
            number=entry.shared_tokens, words=entry.excerpt
        )
    return NodeReport(
        tr("Branch"), _label(entry), _note(entry), sentence, so_far=_text_start(entry.text, 1200),
        term="branch",
    )  # fmt: skip


def _text_start(text: str, max_length: int) -> str:
    return cut_short(text.strip(), max_length)


_TITLE = mark("Where a text could have continued differently")
_HINT = mark("Pick a token and continue with a different one: both runs appear here, one click apart.")


class BranchesView(View):
    """Show the family of the current run; the shown run is marked with a star."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("branchesView", parent)
        self._members: Sequence[RunTreeEntry] = ()
        self._shown = ""
        self.canvas = TreeCanvas(self)
        self.offer = add_fill_button(
            self, self, tr("Branch at the least certain token"), BRANCH, lambda: (tr(_TITLE), tr(_HINT))
        )
        self.canvas.setAccessibleName(tr("Runs that branched from each other"))
        self.canvas.node_tooltip = lambda node: node_tooltip(self._members[node]) if node < len(self._members) else ""
        self.canvas.selection.nodeSelected.connect(self._on_node)
        arrange(QVBoxLayout(self), self.canvas, margins=0)
        self.setFocusProxy(self.canvas)
        self._show_parts()

    def export_table(self) -> Table:
        """Return one line per run."""
        head = ("run", "parent", "place", "words", "strategy", "tokens", "scored", "text")
        return [head, *((m.id, m.parent, m.shared_tokens, m.excerpt, m.strategy, m.tokens, m.is_scored, m.text)
                        for m in self._members)] if len(self._members) > 1 else ()  # fmt: skip

    def family_changed(self, members: Sequence[RunTreeEntry], shown: str) -> None:
        """Redraw the tree if it has changed, and mark the shown run."""
        if (list(members), shown) == (list(self._members), self._shown):
            return
        is_same = [member.id for member in members] == [member.id for member in self._members]
        has_tree = max(len(members), len(self._members)) > 1
        self._members, self._shown = members, shown
        if not has_tree:
            return
        self._show_parts()
        stage = self.canvas.canvas_state
        stage.set_tree(tree_nodes(members, shown) if len(members) > 1 else ())
        self._mark()
        if not is_same:
            self.canvas.navigation.fit()

    def _mark(self) -> None:
        ids = [member.id for member in self._members]
        member = self._members[ids.index(self._shown)] if self._shown in ids else None
        self.report = None
        if member is not None and len(self._members) > 1:
            self.canvas.selection.select(ids.index(member.id))
            self.report = report_on(member, self._members[ids.index(member.parent)] if member.parent in ids else None)
        if self.isVisible():
            self.signals.reportSelected.emit(self.report)

    @Slot(int)
    def _on_node(self, node: int) -> None:
        self.signals.relatedRunRequested.emit(self._members[node].id)

    def _show_parts(self) -> None:
        self.canvas.setVisible(len(self._members) > 1)
        self.offer.update_state(len(self._members) < 2, description=tr(_HINT))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the background, and the hint if there is no family yet."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("window"))
        if len(self._members) < 2:
            paint_empty_page(painter, self.rect(), self._theme, (tr(_TITLE), tr(_HINT)))
