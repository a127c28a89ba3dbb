"""Handle what was dropped on the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, QObject, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QImage
from PySide6.QtWidgets import QWidget

from decodescope.app.control.adapters import AdapterController
from decodescope.app.control.chat import ChatLibrary
from decodescope.app.control.messages import Messages
from decodescope.app.control.model_choice import ModelFolders
from decodescope.app.control.recorded_runs import RecordedRuns
from decodescope.app.control.settings_controller import PresetLibrary, SettingsController
from decodescope.app.features.downloads.controller.model_download import ModelDownload
from decodescope.app.features.labs.controller.lab_windows import LabWindows
from decodescope.app.features.media.controller.prompt_media import MediaController
from decodescope.app.features.studies.controller import StudyController
from decodescope.app.state.media import kind_by_name
from decodescope.app.storage import drop_offers
from decodescope.app.storage.drop_offers import DropOffer
from decodescope.app.theme.themed import inherit_theme
from decodescope.app.widgets.overlays import DropOverlay
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.features.labs.state import Task


class DropController(QObject):
    """`handle_drop` carries out an offer, `show_rejection` shows why something could not be used."""

    def __init__(
        self,
        parent_window: QWidget,
        recorded: RecordedRuns,
        folders: ModelFolders,
        library: PresetLibrary,
        media: MediaController,
        model_download: ModelDownload,
        labs: LabWindows,
        setup: SettingsController,
        messages: Messages,
        adapters: AdapterController,
        chats: ChatLibrary,
        studies: StudyController,
    ) -> None:
        super().__init__(parent_window)
        self._media, self._model_download, self._labs = media, model_download, labs
        self._setup, self._messages = setup, messages
        self._actions: Mapping[str, Callable[..., object]] = {
            drop_offers.RECORDING: recorded.open,
            drop_offers.MODEL: folders.use,
            drop_offers.ADAPTER: adapters.add,
            drop_offers.SETTINGS: library.use_preset_file,
            drop_offers.GRAMMAR: library.use_grammar_file,
            drop_offers.MEDIA: lambda *paths: media.add(paths),
            drop_offers.TEXT: self._use_text,
            drop_offers.HUB: self._find_on_hub,
            drop_offers.ENGINE: self._connect,
            drop_offers.LEARN: self._learn,
            drop_offers.CHATS: chats.import_file,
            drop_offers.STUDY: studies.open_file,
        }

    @Slot(object)
    def handle_drop(self, offer: DropOffer) -> None:
        """Carry out the action that the overlay announced."""
        self._actions[offer.action](*offer.values)

    @Slot(str, str)
    def show_rejection(self, title: str, reason: str) -> None:
        """Show why the dropped item cannot be used."""
        self._messages.show_notice(reason, title)

    def media_unsupported_reason(self, path: str) -> str:
        """Return why the selected model cannot use this audio or image file; empty if it can."""
        kind = kind_by_name(path)
        if kind in self._media.kinds:
            return ""
        return tr("The selected model cannot read this kind of file. It stays above the prompt.")

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


class DropTarget(QObject):
    """Shows an overlay over `body` with the effect of a drop. `dropped(DropOffer)`, `pictureDropped(QImage)` for a
    picture without a file, `rejected(title, reason)`.
    """

    dropped = Signal(object)
    pictureDropped = Signal(object)
    rejected = Signal(str, str)

    def __init__(self, window: QWidget, body: QWidget, media_unsupported_reason: Callable[[str], str]) -> None:
        """`media_unsupported_reason(path)`: why the model cannot use an image or audio file; empty if it can."""
        super().__init__(body)
        self._body, self._media_unsupported_reason = body, media_unsupported_reason
        self._offer: DropOffer | None = None
        self.overlay: DropOverlay | None = None
        """None until something is dragged over the window."""
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the effect of a drop, and carry it out."""
        if isinstance(event, QDragLeaveEvent):
            self._hide()
            return False
        if not isinstance(event, QDropEvent):
            return False
        if isinstance(event, QDragEnterEvent) or self._offer is None:
            self._offer = self.offer(event.mimeData())
        if self._offer is None:
            return False
        event.acceptProposedAction()
        if event.type() == QEvent.Type.Drop:
            self._handle_drop(self._offer, event.mimeData())
        else:
            self._show(self._offer)
        return True

    def offer(self, data: QMimeData) -> DropOffer | None:
        """Return what dropping this does; None for drags within the program, such as list rows."""
        paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
        addresses = [url.toString() for url in data.urls() if url.scheme() in ("http", "https")]
        if paths:
            return self._with_reason(drop_offers.offer_for_files(paths))
        if addresses:
            return drop_offers.offer_for_address(addresses[0])
        if data.hasImage():
            return DropOffer(
                drop_offers.PICTURE, tr("Add this image to the prompt"), self._media_unsupported_reason(".png")
            )
        if data.hasText():
            return drop_offers.offer_for_text(data.text())
        return None

    def _with_reason(self, offer: DropOffer) -> DropOffer:
        if offer.action != drop_offers.MEDIA:
            return offer
        reasons = filter(None, map(self._media_unsupported_reason, offer.values))
        return offer._replace(detail=next(reasons, offer.detail))

    def _handle_drop(self, offer: DropOffer, data: QMimeData) -> None:
        self._hide()
        if not offer.action:
            self.rejected.emit(offer.title, offer.detail)
        elif offer.action == drop_offers.PICTURE:
            image = data.imageData()
            if isinstance(image, QImage):
                self.pictureDropped.emit(image)
        else:
            self.dropped.emit(offer)

    def _show(self, offer: DropOffer) -> None:
        if self.overlay is None:
            self.overlay = DropOverlay(self._body)
            inherit_theme(self.overlay)
        self.overlay.show_drop_effect(offer.title, offer.detail, bool(offer.action))

    def _hide(self) -> None:
        self._offer = None
        if self.overlay is not None:
            self.overlay.hide()
