"""The sounds and pictures that go with the prompt: how they come, which of them the chosen model takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QImage

from app.control.messages import Messages
from app.control.model_choice import ModelChoice
from app.control.model_list import ModelList, takes_of
from app.panels.prompt import PromptPanel
from app.session.media import MediaShelf
from app.state.media import PICTURE, SOUND, Medium, why_unfit
from app.state.requests import ErrorReport, ModelInfo
from app.storage.settings import Choices
from app.theme.theme import Theme
from resources.language import mark, tr

if TYPE_CHECKING:
    from app.control.media_tools import MediaTools
    from app.panels.media.bar import MediaBar
    from core import Takes

_WANTED = {
    (SOUND,): mark("{model} writes down what it hears: give it a sound."),
    (PICTURE,): mark("{model} writes about what it sees: give it a picture."),
    (SOUND, PICTURE): mark("{model} writes about a sound or a picture: give it one."),
}


class MediaController(QObject):
    """`changed` when other files go with the prompt. The bar above the prompt, and all that fills it, is made once a
    model takes such files, or one is given."""

    changed = Signal()

    def __init__(
        self,
        panel: PromptPanel,
        model: ModelChoice,
        models: ModelList,
        shelf: MediaShelf,
        messages: Messages,
        kept: Choices,
        data: Callable[[], Path],
    ) -> None:
        super().__init__(panel)
        self._panel, self._model, self._models, self._shelf = panel, model, models, shelf
        self._messages, self._kept, self._data = messages, kept, data
        self._info: ModelInfo | None = None
        self._theme: Theme | None = None
        self._bar: MediaBar | None = None
        self._tools: MediaTools | None = None
        self._is_new: set[str] = set()
        """Files that were given just now: one that proves to be none is not kept, but told."""
        model.changed.connect(self._on_model)
        model.ready.connect(self._on_ready)
        shelf.known.connect(self._on_known)
        panel.filesGiven.connect(self.add)
        panel.pictureGiven.connect(self.add_picture)
        self._show()

    @property
    def takes(self) -> Takes:
        """What the chosen model reads."""
        return takes_of(self._models.get(self._model.name), self._info)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of files that it takes."""
        return tuple(kind for kind, is_taken in ((SOUND, self.takes.sound), (PICTURE, self.takes.picture)) if is_taken)

    @property
    def sent(self) -> tuple[str, ...]:
        """The files that go to the model: others that stand above the prompt it does not take."""
        return tuple(path for path in self._kept.media if not self.why_not(self._shelf.of(path)))

    @property
    def problems(self) -> list[str]:
        """Why no run can start with them, a sentence each."""
        found = [self._shelf.of(path).trouble for path in self.sent]
        told = [trouble.cause for trouble in found if trouble is not None]
        if self.takes.needs and not self.sent:
            told.append(tr(_WANTED[self.kinds]).format(model=self._title))
        return told

    @Slot(list)
    def add(self, paths: Sequence[str]) -> None:
        """Files that were dropped, pasted, opened or recorded; where the model takes one alone, the last one stays."""
        new = [path for path in dict.fromkeys(paths) if path not in self._kept.media]
        self._is_new.update(paths)
        for path in paths:
            self._shelf.read_again(path)
        is_single = self.takes.most == 1
        self._put(paths[-1:] if is_single else [*self._kept.media, *new])

    def put(self, paths: Sequence[str]) -> None:
        """These and no others: an example's, an earlier run's."""
        for path in paths:
            self._shelf.read_again(path)
        self._put(paths)

    @Slot(int)
    def remove(self, number: int) -> None:
        """That one goes no longer with the prompt; its file stays."""
        if self._tools is not None:
            self._tools.silence()
        self._put([path for place, path in enumerate(self._kept.media) if place != number])

    @Slot(object)
    def show_error(self, error: ErrorReport) -> None:
        """Something is wrong with a file or a device; whatever else is set stays."""
        self._messages.show_setup_error(error.title, error.cause, error.remedy)

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once the bar is there."""
        self._theme = theme
        if self._bar is not None and self._tools is not None:
            self._bar.set_theme(theme)
            self._tools.theme = theme

    def stop(self) -> None:
        """The parts that are seen go: nothing is to be heard any more."""
        if self._tools is not None:
            self._tools.end()

    def _put(self, paths: Sequence[str]) -> None:
        if list(paths) != self._kept.media:
            self._kept.media[:] = paths
            self.changed.emit()
        self._show()

    @property
    def _title(self) -> str:
        entry = self._models.get(self._model.name)
        return entry.title if entry is not None else self._model.name

    def why_not(self, medium: Medium) -> str:
        """Why a file is not sent to the model; empty where it is."""
        return why_unfit(medium, self.kinds, self._title)

    @Slot()
    def _on_model(self) -> None:
        self._show()
        if self._kept.media:
            self.changed.emit()

    @Slot(object)
    def _on_ready(self, info: ModelInfo) -> None:
        self._info = info
        self._show()

    @Slot(object)
    def _on_known(self, medium: Medium) -> None:
        """It has been read; what is no sound and no picture is told, and was not asked for any longer."""
        is_new = medium.path in self._is_new
        self._is_new.discard(medium.path)
        if medium.path not in self._kept.media:
            return
        if medium.trouble is not None and is_new:
            self.show_error(medium.trouble)
            self._put([path for path in self._kept.media if path != medium.path])
        self._show()
        self.changed.emit()

    @Slot(object)
    def add_picture(self, picture: QImage) -> None:
        """A picture that has no file yet."""
        self._make()[1].keep(picture)

    def _show(self) -> None:
        """What stands above the prompt."""
        if self._bar is None and not self.kinds and not self._kept.media:
            return
        bar, tools = self._make()
        bar.offer(self.kinds)
        known = [self._shelf.of(path) for path in self._kept.media]
        bar.show_media([(medium, self.why_not(medium)) for medium in known], tools.can_play)
        wanted = tr(_WANTED[self.kinds]).format(model=self._title) if self.takes.needs and not known else ""
        bar.tell_wanted(wanted)
        reason = "" if self.takes.text else tr("{model} reads no text: what stands here is not sent.")
        self._panel.refuse_text(reason.format(model=self._title))

    def _make(self) -> tuple[MediaBar, MediaTools]:
        """The bar and what its buttons do, made when first wanted."""
        if self._bar is None or self._tools is None:
            from app.control.media_tools import MediaTools
            from app.panels.media.bar import MediaBar

            self._bar = MediaBar()
            self._panel.show_above(self._bar)
            self._tools = MediaTools(self._bar, self._data, self)
            self._tools.given.connect(self.add)
            self._tools.failed.connect(self.show_error)
            self._bar.removeWanted.connect(self.remove)
            if self._theme is not None:
                self.set_theme(self._theme)
        return self._bar, self._tools
