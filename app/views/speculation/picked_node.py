"""The drafted node that the reader has picked in the round's tree, as the inspector tells of it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.views.speculation.round_report import node_report
from app.views.speculation.round_selection import RoundSelection
from app.widgets.tree_canvas import TreeCanvas


class SelectedNodeReporter(QObject):
    """Listens to the canvas on which the round of `place` is drawn."""

    reported = Signal(object)
    """What is to be said (a NodeReport); None: nothing is picked, or the word before the round."""

    def __init__(self, canvas: TreeCanvas, place: RoundSelection) -> None:
        super().__init__(canvas)
        self._canvas, self._selection = canvas, place
        canvas.selection.nodeSelected.connect(self._on_node)
        canvas.selection.selectionCleared.connect(self._on_nothing)

    def report_again(self) -> None:
        """In other words, where a node is picked."""
        if self._canvas.selection.selected is not None:
            self._on_node(self._canvas.selection.selected)

    @Slot(int)
    def _on_node(self, node: int) -> None:
        entry = self._selection.entry
        self.reported.emit(
            node_report(entry, node, self._selection.drafters) if entry is not None and node != 0 else None
        )

    @Slot()
    def _on_nothing(self) -> None:
        self.reported.emit(None)
