"""The view of branches: the family of the shown run as a tree; a click on a run shows it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.empty_view import BRANCH
from app.state.run_tree import RunTreeEntry
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.branches.branch_growth import node_tooltip, report_on, tree_nodes
from app.views.shared.empty_page import add_fill_button, paint_empty_page
from app.widgets.tree_canvas import TreeCanvas
from resources.language import mark, tr

_TITLE = mark("Where a text could have gone on otherwise")
_HINT = mark("Pick a token and continue with another one instead: both runs stand here, one click from each other.")


class BranchesView(View):
    """Told of the family whenever it changes; the run that is shown has a star."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("branchesView", parent)
        self._theme = theme_for("light")
        self._members: Sequence[RunTreeEntry] = ()
        self._shown = ""
        self.canvas = TreeCanvas(self)
        self.offer = add_fill_button(
            self, self, tr("Branch at the least sure token"), BRANCH, lambda: (tr(_TITLE), tr(_HINT))
        )
        self.canvas.setAccessibleName(tr("Runs that branched from each other"))
        self.canvas.node_tooltip = lambda node: node_tooltip(self._members[node]) if node < len(self._members) else ""
        self.canvas.selection.nodeSelected.connect(self._on_node)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.canvas)
        self.setFocusProxy(self.canvas)
        self._show_parts()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._theme = theme
        self.canvas.set_theme(theme)
        self.offer.set_theme(theme)
        self.update()

    def export_table(self) -> Table:
        """A line for each run."""
        head = ("run", "parent", "place", "words", "strategy", "tokens", "scored", "text")
        return [head, *((m.id, m.parent, m.shared_tokens, m.excerpt, m.strategy, m.tokens, m.is_scored, m.text)
                        for m in self._members)] if len(self._members) > 1 else ()  # fmt: skip

    def family_changed(self, members: Sequence[RunTreeEntry], shown: str) -> None:
        """Draw the tree anew where it is another one, and mark the shown run."""
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
        """The ground; how to come by a family where there is none."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("window"))
        if len(self._members) < 2:
            paint_empty_page(painter, self.rect(), self._theme, (tr(_TITLE), tr(_HINT)))
