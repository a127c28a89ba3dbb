"""Scale lab controller."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.export import ExportController
from decodescope.app.features.labs.session import ScaleJobs
from decodescope.app.features.labs.view.scale.run_page import ProcessPage
from decodescope.app.features.labs.view.scale.window import ScaleView
from decodescope.app.widgets.clipboard import copy_text_and_html
from decodescope.resources.language import tr

NAME = "scale"


class ScaleController(QObject):
    """Controls one lab window. Closing it stops running jobs; a window rebuilt in another language shows past and
    running jobs again.
    """

    def __init__(self, window: QWidget, work: ScaleJobs) -> None:
        self.lab = ScaleView(window)
        super().__init__(self.lab)
        self._work = work
        self._pages: dict[str, ProcessPage] = {"run": self.lab.run, "residual": self.lab.residual}
        for name, page in self._pages.items():
            page.runWanted.connect(partial(work.start, name))
            page.stopWanted.connect(partial(work.stop, name))
            if name in work.runs:
                self._replay(name)
        work.started.connect(self._on_began)
        work.arrived.connect(self._on_arrived)
        work.ended.connect(self._on_ended)
        self.lab.finished.connect(work.stop_all)

    def _replay(self, name: str) -> None:
        """Show a run from its beginning."""
        page, run = self._pages[name], self._work.runs[name]
        page.set_request(run.request)
        page.on_started()
        for event in run.events:
            page.on_event(event)
        if not run.is_running:
            page.on_ended(run.error)

    @Slot(str)
    def _on_began(self, name: str) -> None:
        self._pages[name].on_started()

    @Slot(str, object)
    def _on_arrived(self, name: str, event: object) -> None:
        self._pages[name].on_event(event)

    @Slot(str)
    def _on_ended(self, name: str) -> None:
        self._pages[name].on_ended(self._work.runs[name].error)


class ScaleExport(QObject):
    """Exports the shown page of one lab window, as files or to the clipboard."""

    def __init__(self, lab: ScaleView, export: ExportController) -> None:
        super().__init__(lab)
        self._lab, self._export = lab, export
        lab.exportWanted.connect(self._on_export)
        lab.copyWanted.connect(self._copy)
        lab.pageChanged.connect(self._offer)
        lab.destroyed.connect(partial(export.remove_lab, NAME))
        self._offer()

    @Slot()
    def _offer(self) -> None:
        self._export.add_lab(NAME, tr("Scale lab"), self._lab.page)

    @Slot()
    def _on_export(self) -> None:
        self._export.open_dialog_for(NAME, self._lab)

    @Slot()
    def _copy(self) -> None:
        excerpt = self._lab.page.excerpt()
        if excerpt is not None:
            copy_text_and_html(excerpt.plain, excerpt.html)
