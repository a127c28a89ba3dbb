"""Opens the window of studies, and connects it to the open study, the models and the main window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.messages import Messages
from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.control.recorded_runs import RecordedRuns
from decodescope.app.session.session import Session
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import join_names, join_sentences, mark, tr, trn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from decodescope.app.features.studies.panel import StudyDialog
    from decodescope.app.features.studies.session import StudyJobs
    from decodescope.core import studies

STUDY_KINDS = mark("Studies (*.toml)")
SHOW_STUDY = "show_study"


class StudyWork:
    """The open study; it outlives the window and is created on first use."""

    def __init__(self, data: Callable[[], Path]) -> None:
        """`data()` returns the user's data folder."""
        self._data = data
        self._jobs: StudyJobs | None = None

    def jobs(self) -> StudyJobs:
        """Return the open study."""
        if self._jobs is None:
            from decodescope.app.features.studies.session import StudyJobs

            self._jobs = StudyJobs(self._data)
        return self._jobs

    def close(self) -> None:
        """Stop a run when the program ends; it can be continued."""
        if self._jobs is not None:
            self._jobs.stop_and_wait()


class StudyController(QObject):
    """Controls the window of studies above `parent_window`. A run goes on when it is closed."""

    def __init__(
        self, parent_window: QWidget, work: StudyWork, model: ModelChoice, loading: ModelLoadController,
        recorded: RecordedRuns, messages: Messages, session: Session,
    ) -> None:  # fmt: skip
        super().__init__(parent_window)
        self._parent_window, self._work, self._model, self._loading = parent_window, work, model, loading
        self._recorded, self._messages, self._session = recorded, messages, session
        self._dialog: StudyDialog | None = None
        self._jobs: StudyJobs | None = None
        self._pending: bool | None = None
        """Whether a pilot (True) or a run (False) starts when the text has been checked."""
        messages.noticeAction.connect(self._on_action)
        session.stateChanged.connect(self._on_session_state)

    @property
    def is_open(self) -> bool:
        """Whether the window is open."""
        return self._dialog is not None

    @Slot()
    def open(self) -> StudyDialog:
        """Open the window with the study that was open last."""
        from decodescope.app.features.studies.panel import StudyDialog

        if self._dialog is None:
            jobs = self._connect_jobs()
            self._dialog = dialog = StudyDialog(self._parent_window.window())
            for signal, slot in (
                (dialog.newRequested, self._new), (dialog.openRequested, self._choose_file),
                (dialog.recentRequested, self.open_file), (dialog.saveRequested, self._save),
                (dialog.saveAsRequested, self._choose_save_path), (dialog.runRequested, self.run),
                (dialog.stopRequested, jobs.stop), (dialog.csvRequested, self._choose_csv),
                (dialog.reportRequested, self._choose_report), (dialog.runChosen, self.show_run),
                (dialog.setup.textEdited, self._on_text_edited), (dialog.setup.edited, jobs.edit),
                (dialog.destroyed, self._on_closed),
            ):  # fmt: skip
                signal.connect(slot)
            self._model.listed.connect(self._list_models)
            self._list_models()
            self._show_text()
            self._on_checked()
            self._show_results()
            self._show_state()
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog

    def _connect_jobs(self) -> StudyJobs:
        if self._jobs is None:
            self._jobs = jobs = self._work.jobs()
            jobs.textChanged.connect(self._show_text)
            jobs.checked.connect(self._on_checked)
            jobs.changed.connect(self._show_state)
            jobs.resultsChanged.connect(self._show_results)
            jobs.ended.connect(self._on_ended)
        return self._jobs

    # --- files

    @Slot()
    def _new(self) -> None:
        self._leave(lambda: self._connect_jobs().new(self._model.name or "storyteller"))

    @Slot()
    def _choose_file(self) -> None:
        from decodescope.app.widgets.file_dialogs import open_file_dialog

        if self._dialog is not None:
            open_file_dialog(self._dialog, tr("Open study"), tr(STUDY_KINDS), self.open_file)

    @Slot(str)
    def open_file(self, path: str) -> None:
        """Open a study's file in the window of studies; show there why that is impossible."""
        if self._dialog is None:
            self.open()
        self._leave(lambda: self._connect_jobs().open(Path(path)))

    def _leave(self, go_on: Callable[[], None]) -> None:
        """Open another study, unless this one runs; unsaved changes need a confirmation."""
        from decodescope.app.widgets.confirmation import ask

        jobs, dialog = self._connect_jobs(), self._dialog
        if dialog is None:
            return
        dialog.setup.flush()
        if jobs.is_running:
            dialog.show_message(tr("A study is running. Stop it first: finished runs are kept."))
            return

        def proceed() -> None:
            dialog.show_message("")
            self._try(go_on)
            dialog.show_page("study")

        if not jobs.has_changes:
            proceed()
            return
        ask(
            dialog, "leaveStudy", tr("Unsaved study"), tr("Leave the changes of {name}?").format(name=jobs.name),
            tr("They are not saved."), tr("Leave them"), proceed, is_destructive=True,
        )  # fmt: skip

    @Slot()
    def _save(self) -> None:
        jobs = self._connect_jobs()
        if self._dialog is not None:
            self._dialog.setup.flush()
        if jobs.path is None:
            self._choose_save_path()
        else:
            self._try(jobs.save)

    @Slot()
    def _choose_save_path(self) -> None:
        from decodescope.app.widgets.file_dialogs import open_save_dialog

        if self._dialog is not None:
            self._dialog.setup.flush()
            jobs = self._connect_jobs()
            if jobs.is_running:
                self._dialog.show_message(tr("A study is running. Stop it first: finished runs are kept."))
                return
            name = jobs.path.name if jobs.path is not None else "study.toml"
            open_save_dialog(
                self._dialog,
                tr("Save study"),
                name,
                tr(STUDY_KINDS),
                lambda path: self._try(lambda: jobs.save(Path(path))),
            )

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except DecodescopeError as error:
            if self._dialog is not None:
                self._dialog.show_message(join_sentences(error.cause, error.remedy))

    @Slot()
    def _choose_csv(self) -> None:
        self._export(tr("Save table"), "csv", tr("Tables (*.csv)"), lambda path: self._connect_jobs().write_csv(path))

    @Slot()
    def _choose_report(self) -> None:
        self._export(
            tr("Save report"), "html", tr("Web pages (*.html)"), lambda path: self._connect_jobs().write_report(path)
        )

    def _export(self, title: str, suffix: str, kinds: str, write: Callable[[Path], None]) -> None:
        from decodescope.app.widgets.file_dialogs import open_save_dialog

        if self._dialog is None:
            return
        stem = Path(self._connect_jobs().name).stem

        def on_path(path: str) -> None:
            self._try(lambda: write(Path(path)))

        open_save_dialog(self._dialog, title, f"{stem}.{suffix}", kinds, on_path)

    # --- runs

    @Slot(bool)
    def run(self, pilot: bool = False) -> None:
        """Save the study, and run what is missing of it."""
        jobs, dialog = self._connect_jobs(), self._dialog
        if dialog is not None:
            dialog.setup.flush()
            dialog.show_message("")
        if jobs.is_running:
            return
        try:
            if not jobs.is_saved:
                jobs.save()
        except DecodescopeError as error:
            if dialog is not None:
                dialog.show_message(join_sentences(error.cause, error.remedy))
            return
        self._pending = pilot
        self._start_pending()

    def _start_pending(self) -> None:
        """Start the requested run once the text has been read."""
        from decodescope.core import plugins

        jobs = self._jobs
        if jobs is None or self._pending is None or not jobs.is_checked:
            return
        if self._session.state == "loading":  # two threads must not import torch for the first time together
            if self._dialog is not None:
                text = tr("Waiting until the main window has loaded its model…")
                self._dialog.show_state(text, 0, 0, is_running=False, is_stopping=False)
            return
        pilot, self._pending = self._pending, None
        if jobs.plan is None:
            if self._dialog is not None:
                self._dialog.show_page("study")
            return
        names = _model_names(jobs.plan)
        requests = {name: self._loading.request_for(name) for name in names}
        jobs.start(requests, pilot, uses_plugins=bool(plugins.installed()))

    @Slot(str)
    def _on_session_state(self, _state: str) -> None:
        self._start_pending()

    @Slot()
    def _on_ended(self) -> None:
        from decodescope.app.widgets.accessibility.accessible_widget import announce

        jobs = self._jobs
        assert jobs is not None
        if jobs.error is not None:
            text = jobs.error.cause
        elif jobs.was_stopped:
            text = tr("The study was stopped. Finished runs are kept.")
        else:
            text = tr("The study is finished.")
        if self._dialog is not None:
            announce(self._dialog, text)
            if jobs.error is None and not jobs.was_stopped and not jobs.is_pilot and self._dialog.page == "study":
                self._dialog.show_page("cells")
        elif not jobs.was_stopped:
            self._messages.show_notice(text, tr("Study {name}").format(name=jobs.name), [(SHOW_STUDY, tr("Show"))])

    @Slot(str)
    def _on_action(self, name: str) -> None:
        if name == SHOW_STUDY:
            self.open()

    @Slot(str, int, bool)
    def show_run(self, key: str, number: int, is_raised: bool) -> None:
        """Show a run of the study in the main window; show in the window of studies if there is no recording."""
        jobs, dialog = self._jobs, self._dialog
        if jobs is None or jobs.results is None or dialog is None:
            return
        if number < 0:
            return  # a failed run has no recording; the page shows its error
        row = next((row for row in jobs.results.rows if row["key"] == key), None)
        folder = jobs.results_folder
        name = row.get("recording") if row is not None else None
        if row is None or folder is None or not name:
            reason = tr("This run has no recording.")
            remedy = tr("Remove recordings = false from the study, and run it in another folder.")
            dialog.show_message(join_sentences(reason, "" if row is None or row.get("is_added") else remedy))
            return
        try:
            run = self._recorded.show(folder / str(name))
        except DecodescopeError as error:
            dialog.show_message(join_sentences(error.cause, error.remedy))
            return
        if run is None:
            dialog.show_message(tr("The main window is busy. Stop its run or wait for it, then open this one."))
            return
        dialog.show_message("")
        if number:
            run.show_sequence(number)
        if is_raised:
            self._parent_window.window().raise_()
            self._parent_window.window().activateWindow()

    # --- showing

    @Slot()
    def _list_models(self) -> None:
        from decodescope.app.features.studies.view.setup_page import ComboItem

        if self._dialog is not None:
            entries = [one for one in self._model.entries if one.problem is None and one.modalities.text]
            self._dialog.setup.form.show_models([ComboItem(one.title, one.name) for one in entries])

    @Slot(str)
    def _on_text_edited(self, text: str) -> None:
        jobs = self._connect_jobs()
        jobs.set_text(text)
        self._show_table()
        self._show_title()

    @Slot()
    def _show_text(self) -> None:
        if self._dialog is not None and self._jobs is not None:
            self._dialog.setup.show_text(self._jobs.text)
            self._show_table()
            self._show_title()

    def _show_table(self) -> None:
        assert self._dialog is not None
        assert self._jobs is not None
        import tomllib

        table = None
        try:
            table = tomllib.loads(self._jobs.text)
        except (ValueError, RecursionError):
            pass  # the check shows the reason
        self._dialog.setup.show_table(table, self._jobs.folder)

    def _show_title(self) -> None:
        if self._dialog is not None and self._jobs is not None:
            self._dialog.show_title(self._jobs.name, self._jobs.path, self._jobs.is_saved)
            self._dialog.show_recent([one for one in self._jobs.recent if one != str(self._jobs.path or "")])

    @Slot()
    def _on_checked(self) -> None:
        jobs = self._jobs
        if jobs is not None and self._dialog is not None and jobs.is_checked:
            setup = self._dialog.setup
            if jobs.plan is not None:
                setup.show_plan(jobs.plan)
            elif jobs.problem is not None:
                problem = jobs.problem
                setup.show_problem(join_sentences(problem.cause, problem.remedy), problem.line)
        self._show_state()
        self._start_pending()

    @Slot()
    def _show_results(self) -> None:
        if self._dialog is not None and self._jobs is not None:
            empty = tr("There are no results yet. Press Run, or start with a pilot run.")
            self._dialog.show_results(self._jobs.results, empty)
            self._show_state()

    @Slot()
    def _show_state(self) -> None:
        jobs, dialog = self._jobs, self._dialog
        if jobs is None or dialog is None:
            return
        self._show_title()
        progress = jobs.progress
        done, total = (progress.done, progress.total) if progress is not None else (0, 0)
        dialog.show_state(state_text(jobs), done, total, jobs.is_running, jobs.is_stopping)
        is_begun = jobs.results is not None and bool(jobs.results.rows)
        if jobs.is_running:
            dialog.show_buttons(not jobs.is_stopping, "", tr("Stopping…") if jobs.is_stopping else tr("Stop"), False)
        else:
            reason = tr("Correct the study first.") if jobs.plan is None and jobs.is_checked else ""
            is_left = jobs.results is None or jobs.results.estimate.runs_left > 0
            title = tr("Continue") if is_begun else tr("Run")
            if is_begun and not is_left:
                title = tr("Finished")
                reason = reason or tr("All runs are done. Add prompts, values or seeds to run more.")
            dialog.show_buttons(not reason, reason, title, jobs.plan is not None and (not is_begun or is_left))
        if jobs.error is not None:
            dialog.show_message(join_sentences(jobs.error.cause, jobs.error.remedy))
        dialog.show_notices(_notices(jobs))

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None
        if self._jobs is not None:
            self._jobs.store()

    def close(self) -> None:
        """Keep what was typed last, before the window closes."""
        if self._dialog is not None:
            self._dialog.setup.flush()


def _model_names(plan: studies.StudyPlan) -> set[str]:
    """Return the local models, draft models and judges of a study."""
    models = [cell.model for cell in plan.cells]
    names = {model.source for model in models if model.source} | {name for model in models for name in model.drafts}
    return names | {measure.judge for measure in plan.measures if measure.judge}


def state_text(jobs: StudyJobs) -> str:
    """Return what is done and how long the rest takes, in one line."""
    from decodescope.core import words

    progress, results = jobs.progress, jobs.results
    if jobs.is_running:
        if progress is None or (progress.seconds_left is None and not progress.done):
            return tr("Loading the model…")
        parts = [tr("{done:,} of {total:,} runs").format(done=progress.done, total=progress.total)]
        if progress.seconds_left is not None and progress.done < progress.total:
            parts.append(tr("{time} left").format(time=words.rounded_duration(progress.seconds_left)))
        if progress.failed:
            parts.append(trn("{count} failed", "{count} failed", progress.failed).format(count=progress.failed))
        return join_names(parts)
    if results is None or not (results.rows or results.failed):
        return ""
    parts = [trn("{count:,} run is done", "{count:,} runs are done", results.run_count).format(count=results.run_count)]
    if results.failed:
        parts.append(trn("{count} failed", "{count} failed", len(results.failed)).format(count=len(results.failed)))
    left = results.estimate.runs_left
    if left:
        parts.append(trn("{count:,} is left", "{count:,} are left", left).format(count=left))
        if results.estimate.seconds_left is not None:
            parts.append(tr("about {time}").format(time=words.rounded_duration(results.estimate.seconds_left)))
    return join_names(parts)


def _notices(jobs: StudyJobs) -> Sequence[str]:
    """Return messages about engines and the pilot run, and notices of the results."""
    from decodescope.app.features.studies.state import estimate_sentences

    lines = list(jobs.notices[-2:])
    if jobs.results is not None and jobs.results.rows:
        if jobs.is_pilot and not jobs.is_running:
            lines += [" · ".join(estimate_sentences(jobs.results.estimate))]
        lines += jobs.results.summary.notices
    return lines
