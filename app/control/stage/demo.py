"""Recording a demo from the window: asks how and where to, films, tells how far it has come."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QProgressDialog, QWidget

from app.control.messages import Messages
from app.control.stage.filming import FilmJob, FilmSettings
from app.control.stage.window_appearance import WindowAppearance
from app.panels.centre import Centre
from app.panels.stage.demo_dialog import DemoDialog, DemoOptions
from app.session.session import Session
from app.storage.film.film_formats import KINDS, PNGS
from app.theme.theme import theme_for
from app.widgets.ask_file import open_save_dialog
from app.widgets.plain_text import as_plain_text
from resources.language import tr


class DemoRecorder(QObject):
    """One film at a time; `saved(where)` when it is there."""

    saved = Signal(str)

    def __init__(self, centre: Centre, session: Session, messages: Messages, look: WindowAppearance) -> None:
        super().__init__(centre)
        self._centre, self._session, self._messages = centre, session, messages
        self._appearance = look
        self.film_job: FilmJob | None = None
        self.progress: QProgressDialog | None = None

    def open_dialog(self) -> None:
        """Ask how it is to be."""
        run = self._session.run
        if run is None or not run.length:
            title = tr("There is nothing to film yet")
            self._messages.show_notice(tr("Write something first: a demo shows the run that is shown."), title)
            return
        dialog = DemoDialog(run.length, self._window)
        dialog.chosen.connect(self._choose_path)
        dialog.open()

    @property
    def _window(self) -> QWidget:
        return self._centre.window()

    @Slot(object)
    def _choose_path(self, demo: DemoOptions) -> None:
        files = f"{tr(KINDS[demo.kind].title)} (*.{demo.kind})"
        open_save_dialog(self._centre, tr("Save the demo"), f"demo.{demo.kind}", files, partial(self.record, demo))

    def record(self, demo: DemoOptions, path: str) -> None:
        """Film the shown run in the view in front."""
        run = self._session.run
        if run is None or self.film_job is not None:
            return
        theme = theme_for(demo.theme or self._appearance.settings_theme.name)
        view = self._centre.columns[0].current_name
        order = FilmSettings(
            Path(path), view, demo.size, theme, demo.tokens_per_second, self._appearance.should_animate()
        )
        label = as_plain_text(tr("Filming {name}…").format(name=Path(path).name))
        self.progress = QProgressDialog(label, tr("Cancel"), 0, run.length, self._window)
        self.progress.setWindowTitle(tr("Record a demo"))
        self.progress.setWindowModality(Qt.WindowModality.WindowModal)
        self.progress.setMinimumDuration(0)
        self.progress.setAutoClose(False)
        self.progress.setAutoReset(False)
        self.film_job = FilmJob(run, order, self)
        self.film_job.progressed.connect(self.progress.setValue)
        self.film_job.ended.connect(partial(self._on_ended, output_path(order)))
        self.progress.canceled.connect(self.film_job.cancel)
        self.progress.setValue(0)

    def _on_ended(self, path: Path, problem: str) -> None:
        if self.progress is not None:
            self.progress.canceled.disconnect()
            self.progress.close()
            self.progress.deleteLater()
        self.film_job, self.progress = None, None
        if problem:
            self._messages.show_notice(problem, tr("The demo was not saved"))
        elif path.exists():
            self.saved.emit(str(path))
            self._messages.show_notice(str(path), tr("The demo is saved"))


def output_path(order: FilmSettings) -> Path:
    """Where it will be: pictures for every step lie in a folder."""
    return order.path.with_suffix("") if order.path.suffix.lower() == f".{PNGS}" else order.path
