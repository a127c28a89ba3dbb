"""Type to find a token in the tree: the field over the canvas, the nodes that match, the way from one to the next."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.views.tree.tools import FindBar
from app.widgets.tree_canvas import TreeCanvas


class TreeFinder(QObject):
    """Connects a canvas with a field."""

    def __init__(self, canvas: TreeCanvas, bar: FindBar) -> None:
        super().__init__(bar)
        self._canvas, self._bar = canvas, bar
        self.matches: list[int] = []
        bar.changed.connect(self._search)
        bar.moved.connect(self.select_match)
        bar.closed.connect(self.close)

    @Slot()
    def open(self) -> None:
        """Show the field, ready to type."""
        self._bar.show()
        self._bar.move_to_corner()
        self._bar.raise_()
        self._bar.field.setFocus()
        self._bar.field.selectAll()

    @Slot(str)
    def open_with_text(self, text: str) -> None:
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
        self._canvas.selection.set_search_matches(())
        self._canvas.setFocus()

    @Slot(str)
    def _search(self, text: str) -> None:
        scene = self._canvas.canvas_state.scene
        self.matches = scene.model.search(text, scene.max_depth)
        self._canvas.selection.set_search_matches(self.matches)
        if self.matches and self._canvas.selection.selected not in self.matches:
            self.select_match(1)
        else:
            self._update_count()

    @Slot(int)
    def select_match(self, offset: int) -> None:
        """To the next match, or the one before; around at either end."""
        if not self.matches:
            self._update_count()
            return
        here = self._canvas.selection.selected
        place = self.matches.index(here) + offset if here in self.matches else 0 if offset > 0 else -1
        self._canvas.navigation.set_follow(False)
        self._canvas.selection.pick(self.matches[place % len(self.matches)])
        self._update_count()

    def _update_count(self) -> None:
        here = self._canvas.selection.selected
        self._bar.show_count(self.matches.index(here) + 1 if here in self.matches else 0, len(self.matches))
