"""What the reader picks in the tree or in the table beside it, and what is said of it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from app.views.base import View
from app.views.tree.displayed_tree import DisplayedTree
from app.views.tree.path_line import PathLine
from app.views.tree.tree_content import prompt_end
from app.widgets.tree_canvas import TreeCanvas
from resources.language import mark, tr

_HINT = mark("Pick a node, or walk with the arrow keys; type to find a token.")


class NodePicker(QObject):
    """Listens to the canvas and to the table of texts; the report on a node is that of `view`."""

    def __init__(self, view: View, canvas: TreeCanvas, tree: DisplayedTree, path: PathLine) -> None:
        super().__init__(view)
        self._view, self._canvas, self._tree, self._path = view, canvas, tree, path
        canvas.selection.nodeSelected.connect(self._on_node)
        canvas.selection.selectionCleared.connect(self._on_nothing)
        tree.beams.table.nodePicked.connect(canvas.selection.pick)
        tree.samples.table.samplePicked.connect(self.select_sample)

    @Slot(int)
    def _on_node(self, node: int) -> None:
        run, content, chorus = self._tree.run, self._tree.content, self._tree.samples
        if run is None or content is None:
            return
        self._canvas.navigation.set_follow(False)  # what the reader looks at stays where it is
        passing = chorus.samples_through(node) if self._tree.shows_samples else ()
        if passing and run.shown_index not in passing:
            self._view.signals.sequenceActivated.emit(passing[0])
        self.report_node(node)
        content.select_row(node)
        place = content.token_index(run, node)
        if place is not None:
            self._view.signals.tokenActivated.emit(place)

    @Slot(int)
    def select_sample(self, number: int) -> None:
        """Show that text of a chorus everywhere, and its path here."""
        chorus = self._tree.samples
        self._canvas.navigation.set_follow(False)
        chorus.draw_full_path(number)
        self._view.signals.sequenceActivated.emit(number)
        path = chorus.path_of(number)
        self._canvas.canvas_state.unfold(path)
        self._canvas.selection.select(path[-1])
        chorus.select_row(path[-1])
        self.report_node(path[-1])
        self._canvas.navigation.ensure_visible(chorus.branch_point(number))

    @Slot()
    def _on_nothing(self) -> None:
        self.report_node(None)
        if self._tree.content is not None:
            self._tree.content.select_row(None)

    def report_node(self, node: int | None) -> None:
        """Let the inspector speak of a node, and show the text that leads to it."""
        view, run, content = self._view, self._tree.run, self._tree.content
        before, view.report = view.report, None
        if run is not None and content is not None and node is not None:
            view.report = content.report(run, node)
        self.show_path(node)
        if (view.report is not None or before is not None) and view.isVisible():
            view.signals.reportSelected.emit(view.report)  # a hidden tree leaves the inspector to the view that is read

    def show_path(self, node: int | None) -> None:
        """What leads to a node, the end of the prompt first; what to do where there is none."""
        run, content = self._tree.run, self._tree.content
        last = content.last_text(node) if content is not None and node else ""
        if run is None or content is None or not node or not last:
            self._path.show_text("", "", tr(_HINT))
            return
        written = content.text(node)
        own = last if written.endswith(last) else ""
        self._path.show_text(prompt_end(run) + written[: len(written) - len(own)], last)

    @Slot()
    def copy_text(self) -> None:
        """Copy the text that leads to the selected node."""
        node = self._canvas.selection.selected
        if self._tree.content is not None and node:
            QGuiApplication.clipboard().setText(self._tree.content.text(node))
