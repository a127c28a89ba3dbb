"""The sounds and pictures that go with the prompt, and which of them the chosen model takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.control.model_choice import ModelChoice
from app.control.model_list import takes_of
from app.session.media_cache import MediaCache
from app.state.media import PICTURE, SOUND, Medium, why_unfit
from app.state.worker_messages import ErrorReport, ModelInfo
from app.storage.settings import LastChoices
from resources.language import mark, tr

if TYPE_CHECKING:
    from core import Takes

_WANTED = {
    (SOUND,): mark("{model} writes down what it hears: give it a sound."),
    (PICTURE,): mark("{model} writes about what it sees: give it a picture."),
    (SOUND, PICTURE): mark("{model} writes about a sound or a picture: give it one."),
}


class MediaController(QObject):
    """`changed` when other files go with the prompt; `told` when there is something else to show of them;
    `refused(title, cause, remedy)`: why a file does not."""

    changed = Signal()
    told = Signal()
    refused = Signal(str, str, str)

    def __init__(self, model: ModelChoice, shelf: MediaCache, kept: LastChoices) -> None:
        super().__init__(model)
        self._model, self._shelf = model, shelf
        self._paths = kept.media
        self._info: ModelInfo | None = None
        self._is_new: set[str] = set()
        """Files that were given just now: one that proves to be none is not kept, but told."""
        model.changed.connect(self._on_model)
        model.ready.connect(self._on_ready)
        shelf.known.connect(self._on_known)

    @property
    def takes(self) -> Takes:
        """What the chosen model reads."""
        return takes_of(self._model.entry, self._info)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of files that it takes."""
        return tuple(kind for kind, is_taken in ((SOUND, self.takes.sound), (PICTURE, self.takes.picture)) if is_taken)

    @property
    def given(self) -> list[Medium]:
        """Every file that stands above the prompt, whether the model takes it or not."""
        return [self._shelf.of(path) for path in self._paths]

    @property
    def paths(self) -> Sequence[str]:
        """The files that stand above the prompt."""
        return tuple(self._paths)

    @property
    def sent(self) -> tuple[str, ...]:
        """The files that go to the model: others that stand above the prompt it does not take."""
        return tuple(path for path in self._paths if not self.why_not(self._shelf.of(path)))

    @property
    def problems(self) -> list[str]:
        """Why no run can start with them, a sentence each."""
        if not self.sent:
            return self._wishes
        troubles = (self._shelf.of(path).trouble for path in self.sent)
        return [trouble.cause for trouble in troubles if trouble is not None]

    @property
    def wanted(self) -> str:
        """What the model has to be given; empty where it needs nothing, or something stands there."""
        return "" if self._paths else " ".join(self._wishes)

    @property
    def no_text(self) -> str:
        """That the model reads none; empty where it does."""
        if self.takes.text:
            return ""
        return tr("{model} reads no text: what stands here is not sent.").format(model=self._title)

    def why_not(self, medium: Medium) -> str:
        """Why a file is not sent to the model; empty where it is."""
        return why_unfit(medium, self.kinds, self._title)

    @Slot(list)
    def add(self, paths: Sequence[str]) -> None:
        """Files that were dropped, pasted, opened or recorded; where the model takes one alone, the last one stays."""
        new = [path for path in dict.fromkeys(paths) if path not in self._paths]
        self._is_new.update(paths)
        for path in paths:
            self._shelf.read_again(path)
        is_single = self.takes.most == 1
        self._put(paths[-1:] if is_single else [*self._paths, *new])

    def put(self, paths: Sequence[str]) -> None:
        """These and no others: an example's, an earlier run's."""
        for path in paths:
            self._shelf.read_again(path)
        self._put(paths)

    def remove(self, number: int) -> None:
        """That one goes no longer with the prompt; its file stays."""
        self._put([path for place, path in enumerate(self._paths) if place != number])

    @Slot(object)
    def show_error(self, error: ErrorReport) -> None:
        """Something is wrong with a file or a device; whatever else is set stays."""
        self.refused.emit(error.title, error.cause, error.remedy)

    def _put(self, paths: Sequence[str]) -> None:
        if list(paths) != self._paths:
            self._paths[:] = paths
            self.changed.emit()
        self.told.emit()

    @property
    def _wishes(self) -> list[str]:
        """What it asks for that cannot do without; nothing of any other."""
        return [tr(_WANTED[self.kinds]).format(model=self._title)] if self.takes.needs else []

    @property
    def _title(self) -> str:
        entry = self._model.entry
        return entry.title if entry is not None else self._model.name

    @Slot()
    def _on_model(self) -> None:
        self.told.emit()
        if self._paths:
            self.changed.emit()

    @Slot(object)
    def _on_ready(self, info: ModelInfo) -> None:
        self._info = info
        self.told.emit()

    @Slot(object)
    def _on_known(self, medium: Medium) -> None:
        """It has been read; what is no sound and no picture is told, and was not asked for any longer."""
        is_new = medium.path in self._is_new
        self._is_new.discard(medium.path)
        if medium.path not in self._paths:
            return
        if medium.trouble is not None and is_new:
            self.show_error(medium.trouble)
            self._put([path for path in self._paths if path != medium.path])
        self.told.emit()
        self.changed.emit()
