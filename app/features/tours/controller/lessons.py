"""Opens the lessons, records what a class does in them, and saves the printable sheet."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, QSize, Slot
from PySide6.QtGui import QImage

from decodescope.app.control.messages import Messages
from decodescope.app.features.tours.controller.tours import Tours
from decodescope.app.panels.centre import Centre

if TYPE_CHECKING:
    from decodescope.app.features.tours.controller.tour_player import TourPlayer
    from decodescope.app.features.tours.panel.lesson_page import LessonPage
    from decodescope.app.features.tours.state import TourStep
    from decodescope.app.features.tours.store import ClassRecords, LessonRun
    from decodescope.app.state.room_votes import RoomAnswer
    from decodescope.app.state.run import Run

PICTURE_SIZE = (900, 240)
"""Size of the sheet's picture in pixels at scale 1."""
PICTURE_SCALE = 1.5


class Lessons(QObject):
    """The lessons; nothing is imported or read before the first use."""

    def __init__(self, tours: Tours, centre: Centre, messages: Messages, data_folder: Callable[[], Path]) -> None:
        super().__init__(centre)
        self._tours, self._centre, self._messages, self._data_folder = tours, centre, messages, data_folder
        self._records: ClassRecords | None = None
        self.page: LessonPage | None = None
        """The open start page; None without one."""
        tours.playerCreated.connect(self._connect_player)

    @property
    def records(self) -> ClassRecords:
        """Records of the class so far, read on first use."""
        from decodescope.app.features.tours.store import FILE, ClassRecords

        if self._records is None:
            self._records = ClassRecords(self._data_folder() / FILE)
        return self._records

    @Slot()
    def open(self) -> LessonPage:
        """Open the start page."""
        from decodescope.app.features.tours.panel.lesson_page import LessonPage
        from decodescope.app.features.tours.state import load_lessons

        if self.page is not None:
            self.page.close()
        lessons, problems = load_lessons()
        page = LessonPage(lessons, problems, self.records.done, self.records.has_runs, self._centre.window())
        page.chosen.connect(self.start)
        page.sheetRequested.connect(self.choose_sheet_path)
        page.restartRequested.connect(self.confirm_restart)
        page.destroyed.connect(partial(self._on_closed, page))
        self.page = page
        page.open()
        return page

    @Slot(str)
    def start(self, name: str) -> None:
        """Start a lesson by name. Raises TourError."""
        from decodescope.app.features.tours.state import find_lesson

        self._tours.player.play(find_lesson(name))

    @Slot()
    def choose_sheet_path(self) -> None:
        """Let the user choose a file for the sheet."""
        from decodescope.app.widgets.file_dialogs import open_save_dialog
        from decodescope.resources.language import tr

        open_save_dialog(
            self._centre, tr("Save the sheet"), "lessons.html", f"{tr('Web page')} (*.html)", self.save_sheet
        )

    @Slot(str)
    def save_sheet(self, path: str) -> None:
        """Write the sheet; show a message on failure."""
        from decodescope.app.features.tours.state import load_lessons
        from decodescope.app.features.tours.store import make_sheet
        from decodescope.app.widgets.file_dialogs import show_save_error

        try:
            Path(path).write_text(make_sheet(load_lessons()[0], self.records), encoding="utf-8")
        except OSError as error:
            show_save_error(self._centre, path, error)

    @Slot()
    def confirm_restart(self) -> None:
        """Forget the progress and the runs, after a question."""
        from decodescope.app.widgets.confirmation import ask
        from decodescope.resources.language import tr

        ask(
            self.page or self._centre, "confirmNewClass", tr("New class"),
            tr("Forget the progress, the runs and the votes of this class?"),
            tr("Save the sheet first if you want to keep them."), tr("Forget"), self.restart, is_destructive=True,
        )  # fmt: skip

    @Slot()
    def restart(self) -> None:
        """Forget the progress and the runs, and show the page again."""
        self.records.lessons, self.records.room = {}, []
        self._save()
        if self.page is not None:
            self.open()

    @Slot(object)
    def record_room(self, answered: RoomAnswer) -> None:
        """Keep a question of the guessing game that a room has answered."""
        from decodescope.app.features.tours.store import GuessRecord

        self.records.room.append(
            GuessRecord(
                choices=list(answered.choices),
                votes=list(answered.votes),
                is_room=True,
                shares=list(answered.shares),
                answer=answered.answer,
                before=answered.before,
            )
        )
        self._save()

    def _on_closed(self, page: LessonPage) -> None:
        if self.page is page:
            self.page = None

    @Slot(object)
    def _connect_player(self, player: TourPlayer) -> None:
        player.stepShown.connect(partial(self._record_step, player))

    def _record_step(self, player: TourPlayer, step: TourStep) -> None:
        """Record the sentence of the shown step of a lesson, and its run."""
        from decodescope.app.features.tours.state import Lesson

        lesson = player.tour
        if not isinstance(lesson, Lesson) or step.asks or player.narration is None:
            return
        is_last = step is lesson.steps[-1]
        if step.guess is not None:
            self._begin_record(player, lesson.name, step)
        record = self.records.lessons.get(lesson.name)
        if record is None or not record.runs:
            return
        if is_last:
            record.is_done = True
        elif player.narration.text not in record.sentences:
            record.sentences.append(player.narration.text)
        name = lesson.run_of(player.step_index)
        known = len(record.runs)
        if name in player.runs and list(player.runs).index(name) == known:
            record.runs.append(_run_record(player.runs[name]))
        self._save()

    def _begin_record(self, player: TourPlayer, name: str, step: TourStep) -> None:
        """Begin the record of a lesson with its guess, its first run and a picture."""
        from decodescope.app.features.tours.state import evaluate_guess
        from decodescope.app.features.tours.store import GuessRecord
        from decodescope.resources.language import tr

        guess = step.guess
        assert guess is not None
        before = self.records.lessons.get(name)
        first = _run_record(player.runs[guess.run])
        if before is not None and before.runs[:1] == [first] and before.guess.votes == list(player.votes):
            return  # the same step again
        record, result = self.records.begin(name), evaluate_guess(guess, player.runs)
        record.guess = GuessRecord(
            question=tr(guess.question),
            choices=[choice.strip() if guess.words else tr(choice) for choice in guess.choices],
            votes=list(player.votes),
            is_room=player.is_room_vote,
            shares=[text for _share, text in result.shares],
            answer=-1 if result.answer is None else result.answer,
        )
        record.runs.append(first)
        record.picture = self._picture()

    def _picture(self) -> str:
        """Return the front view in shades of grey, as PNG in base64."""
        from decodescope.app.widgets.widget_pictures import PictureOptions, PictureSubject, render_view

        view = self._centre.columns[0].current_view
        zoom = view.current_theme.scale  # of a presentation; the picture has type of the usual size
        size = (QSize(*PICTURE_SIZE).toSizeF() * zoom).toSize()
        options = PictureOptions(size, expands_scrolled=True, scale=PICTURE_SCALE / zoom, theme="light")
        image = render_view(PictureSubject("", view), options).convertToFormat(QImage.Format.Format_Grayscale8)
        content = QByteArray()
        buffer = QBuffer(content)
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        cast(Any, image).save(buffer, "PNG")  # PySide takes a str
        return base64.b64encode(content.data()).decode("ascii")

    def _save(self) -> None:
        from decodescope.app.storage.json_files import StorageError

        try:
            self.records.save()
        except StorageError as error:
            self._messages.show_notice(str(error))


def _run_record(run: Run) -> LessonRun:
    """Return what the sheet needs of a run."""
    from decodescope.app.features.tours.store import MAX_TOKENS, LessonRun
    from decodescope.core import strategies, words
    from decodescope.resources.language import tr

    request = run.request
    temperature = request.settings.get("temperature")
    heads = [tr(strategies.registry[request.strategy].title)] if request.strategy in strategies.registry else []
    if isinstance(temperature, int | float) and request.strategy == "sampling":
        heads.append(f"{tr('Temperature')} {temperature:g}")
    best = run.beams.tokens(run.beams.leader(len(run.beams.steps))) if run.beams is not None else run.tokens
    return LessonRun(
        settings=" · ".join(heads),
        prompt="".join(token.text for token in run.prompt if not token.special),
        tokens=[[token.text, words.percent(token.probability)] for token in best[: MAX_TOKENS + 1]],
        text=run.finished.texts[0] if run.finished and run.finished.texts else run.text,
    )
