"""Speed lab controller: starts and stops measurements and exports the results."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.export import ExportController
from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.features.labs.panel import SpeedLabDialog
from decodescope.app.features.labs.session import SpeedJobs
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.clipboard import copy_text_and_html
from decodescope.core import ModelEntry
from decodescope.core.labs import speed
from decodescope.resources.language import tr

NAME = "speed"


class SpeedController(QObject):
    """Controls one lab window. Closing it stops a running measurement; a rebuilt window in another language continues
    it. Results stay in `work`.
    """

    def __init__(self, window: QWidget, work: SpeedJobs, model: ModelChoice, loading: ModelLoadController) -> None:
        self.lab = SpeedLabDialog(window)
        super().__init__(self.lab)
        self._work, self._model, self._loading = work, model, loading
        view = self._view = self.lab.view
        view.startWanted.connect(self._start)
        view.stopWanted.connect(work.stop)
        work.changed.connect(self._show)
        work.ended.connect(self._on_ended)
        model.listed.connect(self._list)
        self.lab.finished.connect(work.stop)
        self._list()
        self._show()

    @Slot()
    def _list(self) -> None:
        """List the local models that run on text alone, the selected model first."""
        entries = [entry for entry in self._model.entries if _can_be_measured(entry)]
        self._view.models_changed(sorted(entries, key=lambda entry: entry.name != self._model.name))

    @Slot(str, str, object)
    def _start(self, model: str, draft: str, ways: tuple[speed.Way, ...]) -> None:
        load = self._loading.request_for(model)
        request = speed.MeasurementRequest(
            model, draft, load.device, load.dtype, load.weights, load.threads, load.allow_pickle,
            load.allow_remote_code, ways=ways,
        )  # fmt: skip
        self._work.start(request)

    @Slot()
    def _show(self) -> None:
        self._view.show_speeds(self._work.speeds)

    @Slot()
    def _on_ended(self) -> None:
        error = self._work.speeds.error
        announce(self.lab, error.cause if error is not None else tr("Measurement finished."))


class SpeedExport(QObject):
    """Exports the results of one lab window, as files or to the clipboard."""

    def __init__(self, lab: SpeedLabDialog, work: SpeedJobs, export: ExportController) -> None:
        super().__init__(lab)
        self._lab, self._work, self._export = lab, work, export
        lab.view.exportWanted.connect(self._on_export)
        lab.view.copyWanted.connect(self._copy)
        work.changed.connect(self._offer)
        lab.destroyed.connect(partial(export.remove_lab, NAME))
        self._offer()

    @Slot()
    def _offer(self) -> None:
        if not self._work.speeds.is_empty:
            self._export.add_lab(NAME, tr("Speed lab"), self._lab.view)

    @Slot()
    def _on_export(self) -> None:
        self._export.open_dialog_for(NAME, self._lab)

    @Slot()
    def _copy(self) -> None:
        excerpt = self._lab.view.excerpt()
        if excerpt is not None:
            copy_text_and_html(excerpt.plain, excerpt.html)


def _can_be_measured(entry: ModelEntry) -> bool:
    return entry.problem is None and entry.path.is_dir() and entry.modalities.text and not entry.modalities.needs
