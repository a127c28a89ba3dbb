"""The tree on the canvas: which run's it is, and of which kind."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.state.run import Run
from app.state.sample_tree import is_chorus
from app.views.tree.beam_content import BeamContent
from app.views.tree.sample_content import ChorusContent
from app.views.tree.tree_content import TreeContent
from app.widgets.tree_canvas import TreeCanvas


class GrownTree(QObject):
    """A beam search's tree, or that of several texts; `content` is None where the run has neither."""

    def __init__(self, canvas: TreeCanvas, parent: QWidget) -> None:
        super().__init__(parent)
        self._canvas = canvas
        self.beams, self.chorus = BeamContent(canvas.stage, parent), ChorusContent(canvas.stage, parent)
        self.run: Run | None = None
        self.content: TreeContent | None = None

    def begin(self, run: Run | None) -> None:
        """Another run from its beginning."""
        self.run = run
        for content in (self.beams, self.chorus):
            content.restart()

    @property
    def is_chorus(self) -> bool:
        """Whether several texts of one prompt stand there."""
        return self.content is self.chorus

    def choose(self) -> TreeContent | None:
        """Find out which kind of tree the run has, if any; what is returned is there only now."""
        run = self.run
        has_beams = run is not None and run.beams is not None
        wanted: TreeContent | None = self.beams if has_beams else self.chorus if is_chorus(run) else None
        before, self.content = self.content, wanted
        if wanted is None or wanted is before:
            return None
        wanted.restart()  # several texts look like a chorus until the search takes its first step
        self._canvas.stage.set_pruned(wanted.how)
        if self.is_chorus:
            self._canvas.travel.keep_readable()
        return wanted

    @Slot(str)
    def set_pruned(self, how: str) -> None:
        """Have its faint nodes shown, dimmed or hidden, from now on."""
        self._canvas.stage.set_pruned(how)
        if self.content is not None:
            self.content.how = how
