"""Carries out what was dropped on the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.control.labs.lab_windows import LabWindows
from app.control.media import MediaController
from app.control.messages import Messages
from app.control.model_download import ModelDownload
from app.control.model_folders import ModelFolders
from app.control.preset_library import PresetLibrary
from app.control.recorded_runs import RecordedRuns
from app.control.settings_setup import SettingsController
from app.state.media import kind_by_name
from app.storage import dropped
from app.storage.dropped import DropOffer
from resources.language import tr

if TYPE_CHECKING:
    from app.state.labs import Task


class DropController(QObject):
    """`handle_drop` carries out an offer, `show_rejection` says why something could not be used."""

    def __init__(
        self,
        over: QWidget,
        recorded: RecordedRuns,
        folders: ModelFolders,
        library: PresetLibrary,
        media: MediaController,
        model_download: ModelDownload,
        labs: LabWindows,
        setup: SettingsController,
        messages: Messages,
    ) -> None:
        super().__init__(over)
        self._media, self._model_download, self._labs = media, model_download, labs
        self._setup, self._messages = setup, messages
        self._actions: Mapping[str, Callable[..., object]] = {
            dropped.RECORDING: recorded.open,
            dropped.MODEL: folders.use,
            dropped.SETTINGS: library.use_preset_file,
            dropped.MEDIA: lambda *paths: media.add(paths),
            dropped.TEXT: self._use_text,
            dropped.HUB: self._find_on_hub,
            dropped.ENGINE: self._connect,
            dropped.LEARN: self._learn,
        }

    @Slot(object)
    def handle_drop(self, offer: DropOffer) -> None:
        """Do what the overlay has announced."""
        self._actions[offer.action](*offer.values)

    @Slot(str, str)
    def show_rejection(self, title: str, reason: str) -> None:
        """Say why nothing happens."""
        self._messages.show_notice(reason, title)

    def media_unsupported_reason(self, path: str) -> str:
        """Why the chosen model does not use a sound or picture of that name; empty where it does."""
        kind = kind_by_name(path)
        if kind in self._media.kinds:
            return ""
        return tr("It will wait above the prompt: the chosen model does not read files of this kind.")

    def _use_text(self, text: str, source: str = "") -> None:
        if source:
            try:
                text = Path(text).read_bytes().decode("utf-8-sig")
            except (OSError, ValueError):
                self.show_rejection(tr("The file cannot be read as text"), tr("Save it as UTF-8 and drop it again."))
                return
        self._setup.write_prompt(text)

    def _find_on_hub(self, name: str) -> None:
        dialog = self._model_download.open().dialog
        dialog.field.setText(name)
        dialog.searchRequested.emit(name)

    def _connect(self, address: str) -> None:
        self._model_download.connect_engine().dialog.address.setText(address)

    def _learn(self, path: str, task: Task) -> None:
        view = self._labs.open_preference().view
        view.show_page(task)
        view.page_of[task].use_file(path)
