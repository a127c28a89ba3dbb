"""The Scale lab's room in step with what its pages run."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.session.scale import ScaleWork
from app.views.labs.scale.running_page import RunningPage
from app.views.labs.scale.window import ScaleView


class ScaleController(QObject):
    """One opening of the room. What is under way ends when somebody closes it; when it is made anew, in another
    language, it shows again what was run, and what goes on."""

    def __init__(self, window: QWidget, work: ScaleWork) -> None:
        self.lab = ScaleView(window)
        super().__init__(self.lab)
        self._work = work
        self._pages: dict[str, RunningPage] = {"run": self.lab.run, "residual": self.lab.residual}
        for name, page in self._pages.items():
            page.runWanted.connect(partial(work.start, name))
            page.stopWanted.connect(partial(work.stop, name))
            if name in work.runs:
                self._take_up(name)
        work.began.connect(self._on_began)
        work.arrived.connect(self._on_arrived)
        work.ended.connect(self._on_ended)
        self.lab.finished.connect(work.stop_all)

    def _take_up(self, name: str) -> None:
        """Show a run from its beginning."""
        page, run = self._pages[name], self._work.runs[name]
        page.show_asked(run.asked)
        page.started()
        for event in run.told:
            page.go_on(event)
        if not run.is_under_way:
            page.ended(run.error)

    @Slot(str)
    def _on_began(self, name: str) -> None:
        self._pages[name].started()

    @Slot(str, object)
    def _on_arrived(self, name: str, event: object) -> None:
        self._pages[name].go_on(event)

    @Slot(str)
    def _on_ended(self, name: str) -> None:
        self._pages[name].ended(self._work.runs[name].error)
