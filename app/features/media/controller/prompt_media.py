"""Audio files and images of the prompt, and which of them the selected model accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.model_list import accepted_modalities
from decodescope.app.features.media.session.media_cache import MediaCache
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.state.media import PICTURE, SOUND, Medium, medium_unsupported_reason
from decodescope.app.state.worker_messages import ErrorReport, ModelInfo
from decodescope.app.storage.settings import LastChoices
from decodescope.app.theme.themed import inherit_theme
from decodescope.resources.language import join_sentences, mark, tr

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from decodescope.app.features.media.controller.media_tools import MediaTools
    from decodescope.app.features.media.panel.media_bar import MediaBar
    from decodescope.core import Modalities

_MISSING_TEXTS = {
    (SOUND,): mark("{model} transcribes audio. Add an audio file."),
    (PICTURE,): mark("{model} describes images. Add an image."),
    (SOUND, PICTURE): mark("{model} describes audio or images. Add one."),
}


class MediaController(QObject):
    """Holds the media files of the prompt. `changed`: the files changed; `displayChanged`: their display changed;
    `rejected(title, cause, remedy)`: a file was rejected.
    """

    changed = Signal()
    displayChanged = Signal()
    rejected = Signal(str, str, str)

    def __init__(self, model: ModelChoice, cache: MediaCache, choices: LastChoices) -> None:
        super().__init__(model)
        self._model, self._cache = model, cache
        self._paths = choices.media
        self._info: ModelInfo | None = None
        self._new_paths: set[str] = set()
        """Files added just now: invalid ones are removed with an error message."""
        model.changed.connect(self._on_model)
        model.ready.connect(self._on_ready)
        cache.mediumRead.connect(self._on_medium_read)

    @property
    def takes(self) -> Modalities:
        """The modalities that the selected model accepts."""
        return accepted_modalities(self._model.entry, self._info)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of files that the model accepts."""
        return tuple(kind for kind, is_taken in ((SOUND, self.takes.sound), (PICTURE, self.takes.picture)) if is_taken)

    @property
    def media(self) -> list[Medium]:
        """All media above the prompt, accepted or not."""
        return [self._cache.get(path) for path in self._paths]

    @property
    def paths(self) -> Sequence[str]:
        """The files above the prompt."""
        return tuple(self._paths)

    @property
    def sent_paths(self) -> tuple[str, ...]:
        """The files that are sent to the model, without those it does not accept."""
        return tuple(path for path in self._paths if not self.unsupported_reason(self._cache.get(path)))

    @property
    def problems(self) -> list[str]:
        """Return the reasons why no run can start with these files, a sentence each."""
        if not self.sent_paths:
            return self._missing_media
        troubles = (self._cache.get(path).error for path in self.sent_paths)
        return [trouble.cause for trouble in troubles if trouble is not None]

    @property
    def missing_media_text(self) -> str:
        """Sentence that names the media the model still needs; empty if none."""
        return "" if self._paths else join_sentences(*self._missing_media)

    @property
    def text_unsupported_reason(self) -> str:
        """That the model reads no text; empty if it does."""
        if self.takes.text:
            return ""
        return tr("{model} does not read text. Text entered here is not sent.").format(model=self._title)

    def unsupported_reason(self, medium: Medium) -> str:
        """Return why a file is not sent to the model; empty if it is."""
        return medium_unsupported_reason(medium, self.kinds, self._title)

    @Slot(list)
    def add(self, paths: Sequence[str]) -> None:
        """Add files that were dropped, pasted, opened or recorded; a model with a single input keeps only the last."""
        new = [path for path in dict.fromkeys(paths) if path not in self._paths]
        self._new_paths.update(paths)
        for path in paths:
            self._cache.reload(path)
        is_single = self.takes.max_count == 1
        self._set_paths(paths[-1:] if is_single else [*self._paths, *new])

    def set_paths(self, paths: Sequence[str]) -> None:
        """Replace all files, e.g. by those of an example or earlier run."""
        for path in paths:
            self._cache.reload(path)
        self._set_paths(paths)

    def remove(self, index: int) -> None:
        """Remove a file from the prompt; the file itself stays."""
        self._set_paths([path for position, path in enumerate(self._paths) if position != index])

    @Slot(object)
    def show_error(self, error: ErrorReport) -> None:
        """Show an error of a file or device; all settings stay."""
        self.rejected.emit(error.title, error.cause, error.remedy)

    def _set_paths(self, paths: Sequence[str]) -> None:
        if list(paths) != self._paths:
            self._paths[:] = paths
            self.changed.emit()
        self.displayChanged.emit()

    @property
    def _missing_media(self) -> list[str]:
        """The media that a model needs and does not have."""
        return [tr(_MISSING_TEXTS[self.kinds]).format(model=self._title)] if self.takes.needs else []

    @property
    def _title(self) -> str:
        entry = self._model.entry
        return entry.title if entry is not None else self._model.name

    @Slot()
    def _on_model(self) -> None:
        self.displayChanged.emit()
        if self._paths:
            self.changed.emit()

    @Slot(object)
    def _on_ready(self, info: ModelInfo) -> None:
        self._info = info
        self.displayChanged.emit()

    @Slot(object)
    def _on_medium_read(self, medium: Medium) -> None:
        """Update a medium that was read; reject a new file that is neither audio nor image."""
        is_new = medium.path in self._new_paths
        self._new_paths.discard(medium.path)
        if medium.path not in self._paths:
            return
        if medium.error is not None and is_new:
            self.show_error(medium.error)
            self._set_paths([path for path in self._paths if path != medium.path])
        self.displayChanged.emit()
        self.changed.emit()


class MediaBarController(QObject):
    """Creates the bar once a model accepts media or a file is added."""

    def __init__(self, panel: PromptPanel, media: MediaController, data: Callable[[], Path]) -> None:
        """`data()` returns the user's data folder."""
        super().__init__(panel)
        self._panel, self._media, self._data = panel, media, data
        self._bar: MediaBar | None = None
        self._tools: MediaTools | None = None
        media.displayChanged.connect(self._show)
        panel.filesInserted.connect(media.add)
        panel.imageInserted.connect(self.add_picture)
        self._show()

    @Slot(object)
    def add_picture(self, picture: QImage) -> None:
        """Add a picture that has no file yet."""
        self.ensure_bar()[1].add_picture(picture)

    @Slot(int)
    def remove(self, index: int) -> None:
        """Remove a file from the prompt and stop its playback."""
        if self._tools is not None:
            self._tools.stop_playback()
        self._media.remove(index)

    def stop(self) -> None:
        """Stop playback and recording."""
        if self._tools is not None:
            self._tools.close()

    def ensure_bar(self) -> tuple[MediaBar, MediaTools]:
        """Create the bar and its tools if needed and return them."""
        if self._bar is None or self._tools is None:
            from decodescope.app.features.media.controller.media_tools import MediaTools
            from decodescope.app.features.media.panel.media_bar import MediaBar

            self._bar = MediaBar()
            self._panel.insert_above_editor(self._bar)
            self._tools = MediaTools(self._bar, self._data, self)
            self._tools.filesAdded.connect(self._media.add)
            self._tools.failed.connect(self._media.show_error)
            self._bar.removeRequested.connect(self.remove)
            inherit_theme(self._bar)
        return self._bar, self._tools

    @Slot()
    def _show(self) -> None:
        """Show the current files."""
        media = self._media
        if self._bar is None and not media.kinds and not media.media:
            return
        bar, tools = self.ensure_bar()
        bar.show_buttons(media.kinds)
        bar.show_media([(medium, media.unsupported_reason(medium)) for medium in media.media], tools.can_play)
        bar.show_required(media.missing_media_text)
        self._panel.set_text_unsupported(media.text_unsupported_reason)
