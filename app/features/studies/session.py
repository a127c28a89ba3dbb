"""The open study: its text, its runs and its results, each computed in a thread of its own so that the window goes on.

It outlives the window of studies. The text of an unsaved study is kept between starts of the program.
"""

from __future__ import annotations

import json
import re
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.features.studies.state import NEW_STUDY, Edit, StudyResults, apply_edits
from decodescope.app.session.background_tasks import BackgroundTask, TaskManager, error_report
from decodescope.app.session.local_models import open_libraries
from decodescope.app.state.worker_messages import ErrorReport, LoadRequest, make_error_report
from decodescope.core import studies
from decodescope.core.errors import DecodescopeError, StudyError
from decodescope.core.system.file_writing import atomic_write
from decodescope.core.system.system_errors import system_error_reason, writing_remedy
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope import core

STUDY, CHECK, RESULTS = "study", "check", "results"
"""Names of the tasks."""
SUFFIX = ".toml"
MAX_RECENT = 8
MAX_NOTICES = 20
_REPORT_SECONDS = 0.1
"""Time between two reports of progress."""
_RESULT_SECONDS, _RESULT_FACTOR = 3.0, 8.0
"""Time between two computations of results during a run: at least these seconds, and this multiple of the last one."""
_MAX_TEXT = 20_000_000


class StudyJobs(QObject):
    """Keeps the text of one study and runs it. `textChanged`: another text, not by the editor; `checked`: the text was
    read; `changed`: progress, notices or state; `resultsChanged`; `ended`: a run has ended.
    """

    textChanged = Signal()
    checked = Signal()
    changed = Signal()
    resultsChanged = Signal()
    ended = Signal()

    def __init__(self, data: Callable[[], Path], parent: QObject | None = None) -> None:
        """`data()` returns the user's data folder."""
        super().__init__(parent)
        self._data = data
        self._tasks = TaskManager(self)
        self._tasks.ended.connect(self._on_task_ended)
        self.path: Path | None = None
        """The file; None for a study that was never saved."""
        self.text = self._saved_text = self._new_text = ""
        self.plan: studies.StudyPlan | None = None
        """The study that the text describes; None if it has an error."""
        self.problem: StudyError | None = None
        """The error of the text."""
        self.is_checked = False
        """Whether `plan` and `problem` are those of the text."""
        self.progress: studies.StudyProgress | None = None
        """State of the current run, or of the last one."""
        self.notices: list[str] = []
        """Messages about engines during the run."""
        self.error: ErrorReport | None = None
        """Why the last run ended early."""
        self.results: StudyResults | None = None
        self.is_running = self.is_stopping = self.is_pilot = self.was_stopped = False
        self.recent: list[str] = []
        self._check_number = self._result_number = 0
        self._result_cost = self._result_at = 0.0
        self._restore()

    # --- the text

    @property
    def is_saved(self) -> bool:
        """Whether the text is that of the file."""
        return self.path is not None and self.text == self._saved_text

    @property
    def has_changes(self) -> bool:
        """Whether the text would be lost: it is neither saved nor that of a new study."""
        return not self.is_saved and bool(self.text.strip()) and (self.path is not None or self.text != self._new_text)

    @property
    def name(self) -> str:
        """The file's name, or that of a new study."""
        return self.path.name if self.path is not None else tr("New study")

    @property
    def folder(self) -> Path:
        """The folder of paths in the text."""
        return self.path.parent if self.path is not None else self.home

    @property
    def home(self) -> Path:
        """The folder of studies that were saved without choosing one."""
        return self._data() / "studies"

    @property
    def results_folder(self) -> Path | None:
        """The folder of results; None without a file."""
        return None if self.path is None else self.path.with_name(f"{self.path.stem}-results")

    def set_text(self, text: str) -> None:
        """Take over the editor's text, and check it."""
        if text != self.text:
            self.text = text
            self.check()

    def edit(self, edits: list[Edit]) -> None:
        """Change keys of the text. Does nothing while the text is no valid TOML."""
        with suppress(ValueError):
            changed = apply_edits(self.text, edits)
            if changed != self.text:
                self.text = changed
                self.textChanged.emit()
                self.check()

    def check(self) -> None:
        """Read the text in a thread: files of prompts may be large."""
        self.is_checked = False
        self._check_number += 1
        number, text, folder, name = self._check_number, self.text, self.folder, self.name

        def work(task: BackgroundTask) -> None:
            plan, problem = None, None
            try:
                plan = studies.parse_study(text, folder, name)
            except StudyError as error:
                problem = error
            except Exception as error:  # a plug-in's measure may raise anything
                problem = StudyError(f"{type(error).__name__}: {error}", tr("Correct the text."))
            task.post(self._on_checked, number, plan, problem)

        self._tasks.start(CHECK, work)

    def _on_checked(self, number: int, plan: studies.StudyPlan | None, problem: StudyError | None) -> None:
        if number != self._check_number:
            return
        self.plan, self.problem, self.is_checked = plan, problem, True
        if self.has_changes:
            self.store()  # a crash loses nothing that was typed
        self.checked.emit()
        if not self.is_running:
            self.compute_results()

    # --- files

    def new(self, model: str = "storyteller") -> None:
        """Begin a new study."""
        comment = tr("A study: every prompt with every setting and seed")
        self._new_text = NEW_STUDY.format(comment=comment, model=json.dumps(model, ensure_ascii=False))
        self._open(None, self._new_text)

    def open(self, path: Path) -> None:
        """Open a study's file. Raises StudyError."""
        try:
            if not path.is_file():  # reading a pipe or device may never end
                raise StudyError(tr("{file} is not a regular file").format(file=path) + ".", tr("Check the path."))
            if path.stat().st_size > _MAX_TEXT:
                raise StudyError(tr("{file} is too large for a study.").format(file=path), tr("Check the path."))
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise StudyError(
                tr("{file} cannot be read: {reason}.").format(file=path, reason=system_error_reason(error)),
                tr("Check the path."),
            ) from None
        except UnicodeDecodeError:
            raise StudyError(tr("{file} is not UTF-8 text.").format(file=path), tr("Save it in UTF-8.")) from None
        self._open(path, text.replace("\r\n", "\n"))

    def save(self, path: Path | None = None) -> None:
        """Write the text to a file; without one, to the study's own, or to a new one in `home`. Raises StudyError."""
        path = path or self.path or self._free_path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as part:
                part.write_text(self.text, encoding="utf-8", errors="replace", newline="\n")
        except OSError as error:
            raise StudyError(
                tr("{file} cannot be written: {reason}.").format(file=path, reason=system_error_reason(error)),
                writing_remedy(error, tr("Choose another folder.")),
            ) from None
        is_moved = path != self.path
        self.path, self._saved_text = path, self.text
        self._remember()
        if is_moved:
            self.results = None
            self.check()
        self.changed.emit()

    def _free_path(self) -> Path:
        title: object = ""
        with suppress(ValueError, RecursionError):
            title = tomllib.loads(self.text).get("title")
        stem = re.sub(r"[^\w-]+", "-", str(title or "").casefold()).strip("-")[:40] or "study"
        names = (f"{stem}{SUFFIX}", *(f"{stem}-{number}{SUFFIX}" for number in range(2, 10_000)))
        return next(self.home / name for name in names if not (self.home / name).exists())

    def _open(self, path: Path | None, text: str) -> None:
        self.path, self.text, self._saved_text = path, text, text if path is not None else ""
        self.plan = self.problem = self.progress = self.error = self.results = None
        self.notices, self.was_stopped = [], False
        if path is not None:
            self._remember()
        self.textChanged.emit()
        self.check()
        self.resultsChanged.emit()
        self.changed.emit()

    # --- between starts of the program

    @property
    def _memory(self) -> Path:
        return self.home / "open-study.json"

    def _remember(self) -> None:
        if self.path is not None:
            self.recent = [str(self.path), *(one for one in self.recent if one != str(self.path))][:MAX_RECENT]
        self.store()

    def store(self) -> None:
        """Keep which study is open, and its text if it is not saved."""
        held = {"path": str(self.path or ""), "recent": self.recent, "text": self.text if self.has_changes else None}
        with suppress(OSError):  # the study itself is in its file
            self.home.mkdir(parents=True, exist_ok=True)
            with atomic_write(self._memory) as part:
                part.write_text(json.dumps(held), encoding="utf-8", errors="replace")

    def _restore(self) -> None:
        held: Any = None
        with suppress(OSError, ValueError, RecursionError):
            if self._memory.is_file() and self._memory.stat().st_size <= _MAX_TEXT:
                held = json.loads(self._memory.read_text("utf-8"))
        held = held if isinstance(held, dict) else {}
        recent, path, text = held.get("recent"), held.get("path"), held.get("text")
        self.recent = [one for one in recent if isinstance(one, str)] if isinstance(recent, list) else []
        if isinstance(path, str) and path:
            with suppress(StudyError):
                self.open(Path(path))
        if isinstance(text, str) and text:
            self.path = self.path if path else None
            self.text = text
            self.check()
        elif not self.text:
            self.new()

    # --- runs

    def start(self, requests: Mapping[str, LoadRequest], pilot: bool = False, uses_plugins: bool = False) -> None:
        """Run what is missing. `requests`: how to load the local models, by name. The study must be saved."""
        folder, plan = self.results_folder, self.plan
        if self.is_running or plan is None or folder is None:
            return
        self.is_running, self.is_stopping, self.is_pilot, self.was_stopped = True, False, pilot, False
        self.progress, self.error, self.notices = None, None, []
        self._result_at = time.monotonic()
        load = _Loader(requests)
        last = [0.0]

        def work(task: BackgroundTask) -> None:
            def report(progress: studies.StudyProgress) -> None:
                now = time.monotonic()
                is_last = progress.done >= progress.total
                if progress.notice or is_last or now - last[0] >= _REPORT_SECONDS:
                    last[0] = now
                    task.post(self._on_progress, progress)

            try:
                with studies.Study.from_plan(plan, folder, load=load) as study:
                    study.run(report, task.stop_event, pilot=pilot, uses_plugins=uses_plugins)
            except DecodescopeError as error:
                task.post(self._on_error, make_error_report(error))
            except Exception as error:
                task.post(self._on_error, error_report(error))

        self._tasks.start(STUDY, work)
        self.changed.emit()

    @Slot()
    def stop(self) -> None:
        """Stop after the current token; finished runs are kept."""
        if self.is_running and not self.is_stopping:
            self.is_stopping = self.was_stopped = True
            self._tasks.stop(STUDY)
            self.changed.emit()

    def stop_and_wait(self) -> None:
        """Stop when the program ends."""
        self.store()
        self._tasks.stop_all()

    def _on_progress(self, progress: studies.StudyProgress) -> None:
        if progress.notice:
            self.notices = [*self.notices, progress.notice][-MAX_NOTICES:]
        self.progress = progress
        self.changed.emit()
        pause = max(_RESULT_SECONDS, _RESULT_FACTOR * self._result_cost)
        if time.monotonic() - self._result_at > pause and not self._tasks.is_running(RESULTS):
            self.compute_results()

    def _on_error(self, error: ErrorReport) -> None:
        self.error = error

    def compute_results(self) -> None:
        """Compute rows, intervals and estimates from what is in the folder, in a thread."""
        folder, plan = self.results_folder, self.plan
        self._result_number += 1
        if plan is None or folder is None or not folder.is_dir():
            if self.results is not None:
                self.results = None
                self.resultsChanged.emit()
            return
        number = self._result_number

        def work(task: BackgroundTask) -> None:
            begin = time.perf_counter()
            try:
                study = studies.Study.from_plan(plan, folder)
                rows = study.rows()
                summary = study.summary(rows)
                found = StudyResults(summary, rows, study.failed_runs(), study.pilot_estimate(summary))
            except DecodescopeError as error:
                task.post(self._on_result_error, number, make_error_report(error))
            except Exception as error:
                task.post(self._on_result_error, number, error_report(error))
            else:
                task.post(self._on_results, number, found, time.perf_counter() - begin)

        self._tasks.start(RESULTS, work)

    def _on_results(self, number: int, results: StudyResults, seconds: float) -> None:
        self._result_cost, self._result_at = seconds, time.monotonic()
        if number == self._result_number:
            self.results = results
            self.resultsChanged.emit()

    def _on_result_error(self, number: int, error: ErrorReport) -> None:
        if number == self._result_number:
            self.error = error
            self.changed.emit()

    @Slot(str)
    def _on_task_ended(self, name: str) -> None:
        if name == STUDY:
            self.is_running = self.is_stopping = False
            self.compute_results()
            self.changed.emit()
            self.ended.emit()

    # --- exports

    def write_csv(self, path: Path) -> None:
        """Write a row per text. Raises DecodescopeError."""
        self._study().write_csv(path)

    def write_report(self, path: Path) -> None:
        """Write the report. Raises DecodescopeError."""
        self._study().write_report(path)

    def _study(self) -> studies.Study:
        if self.plan is None or self.results_folder is None:
            raise StudyError(tr("There are no results yet."), tr("Run the study first."))
        return studies.Study.from_plan(self.plan, self.results_folder)


class _Loader:
    """Loads the models of a study in its thread, with the permissions that they have in the window."""

    def __init__(self, requests: Mapping[str, LoadRequest]) -> None:
        self._requests = requests

    def __call__(self, name: str, **options: Any) -> core.LoadedModel | core.RemoteModel:
        open_libraries()
        import torch
        from transformers.utils import logging

        from decodescope import core

        logging.disable_progress_bar()  # it would write to a terminal, which may not exist
        request = self._requests.get(name, LoadRequest(name))
        model = core.load(
            name, **options, allow_pickle=request.allow_pickle, allow_remote_code=request.allow_remote_code
        )
        if isinstance(model, core.LoadedModel) and threading.current_thread() is not threading.main_thread():
            # of this thread only; a processor is left to the window
            torch.set_num_threads(max(1, min(core.choose_threads(model), core.usable_processors() - 1)))
        return model
