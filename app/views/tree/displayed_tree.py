"""The tree on the canvas: which run's it is, and of which kind."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.state.run import Run
from app.state.sample_tree import has_samples
from app.views.tree.beam_content import BeamContent
from app.views.tree.sample_content import SampleContent
from app.views.tree.tree_content import TreeContent
from app.widgets.tree_canvas import TreeCanvas


class DisplayedTree(QObject):
    """A beam search's tree, or that of several texts; `content` is None where the run has neither."""

    def __init__(self, canvas: TreeCanvas, parent: QWidget) -> None:
        super().__init__(parent)
        self._canvas = canvas
        self.beams, self.samples = BeamContent(canvas.canvas_state, parent), SampleContent(canvas.canvas_state, parent)
        self.run: Run | None = None
        self.content: TreeContent | None = None

    def set_run(self, run: Run | None) -> None:
        """Another run from its beginning."""
        self.run = run
        for content in (self.beams, self.samples):
            content.restart()

    @property
    def shows_samples(self) -> bool:
        """Whether several texts of one prompt stand there."""
        return self.content is self.samples

    def select_content(self) -> TreeContent | None:
        """Find out which kind of tree the run has, if any; what is returned is there only now."""
        run = self.run
        has_beams = run is not None and run.beams is not None
        selected: TreeContent | None = self.beams if has_beams else self.samples if has_samples(run) else None
        before, self.content = self.content, selected
        if selected is None or selected is before:
            return None
        selected.restart()  # several texts look like a chorus until the search takes its first step
        self._canvas.canvas_state.set_pruned(selected.faint_mode)
        if self.shows_samples:
            self._canvas.navigation.keep_readable()
        return selected

    @Slot(str)
    def set_pruned(self, mode: str) -> None:
        """Have its faint nodes shown, dimmed or hidden, from now on."""
        self._canvas.canvas_state.set_pruned(mode)
        if self.content is not None:
            self.content.faint_mode = mode
