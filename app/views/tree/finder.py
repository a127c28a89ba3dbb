"""Type to find a token in the tree: the field over the canvas, the nodes that match, the way from one to the next."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.views.tree.tools import FindBar
from app.widgets.tree_canvas import TreeCanvas


class Finder(QObject):
    """Connects a canvas with a field."""

    def __init__(self, canvas: TreeCanvas, bar: FindBar) -> None:
        super().__init__(bar)
        self._canvas, self._bar = canvas, bar
        self.found: list[int] = []
        bar.changed.connect(self._search)
        bar.moved.connect(self.go)
        bar.closed.connect(self.close)

    @Slot()
    def open(self) -> None:
        """Show the field, ready to type."""
        self._bar.show()
        self._bar.place()
        self._bar.raise_()
        self._bar.field.setFocus()
        self._bar.field.selectAll()

    @Slot(str)
    def begin(self, text: str) -> None:
        """Show the field with the first character typed already."""
        self.open()
        self._bar.field.setText(text)

    @Slot()
    def close(self) -> None:
        """Put the field away; what was selected stays."""
        if self._bar.isHidden():
            return
        self._bar.hide()
        self._bar.field.clear()
        self._canvas.selection.set_found(())
        self._canvas.setFocus()

    @Slot(str)
    def _search(self, text: str) -> None:
        scene = self._canvas.stage.scene
        self.found = scene.model.search(text, scene.deepest)
        self._canvas.selection.set_found(self.found)
        if self.found and self._canvas.selection.selected not in self.found:
            self.go(1)
        else:
            self._tell()

    @Slot(int)
    def go(self, by: int) -> None:
        """To the next match, or the one before; around at either end."""
        if not self.found:
            self._tell()
            return
        here = self._canvas.selection.selected
        place = self.found.index(here) + by if here in self.found else 0 if by > 0 else -1
        self._canvas.travel.set_follow(False)
        self._canvas.selection.pick(self.found[place % len(self.found)])
        self._tell()

    def _tell(self) -> None:
        here = self._canvas.selection.selected
        self._bar.show_count(self.found.index(here) + 1 if here in self.found else 0, len(self.found))
