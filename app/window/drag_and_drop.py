"""Files, folders, addresses and text that are dragged over the window and dropped on it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QObject, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QImage
from PySide6.QtWidgets import QWidget

from app.storage import dropped
from app.storage.dropped import DropOffer
from app.theme.theme import Theme
from app.widgets.drop_overlay import DropOverlay
from resources.language import tr


class DropTarget(QObject):
    """Shows over `body` what a drop will do, and announces what was dropped: `dropped(DropOffer)`, `pictureDropped(QImage)`
    for a picture without a file, `rejected(title, reason)` for what cannot be used."""

    dropped = Signal(object)
    pictureDropped = Signal(object)
    rejected = Signal(str, str)

    def __init__(self, window: QWidget, body: QWidget, media_unsupported_reason: Callable[[str], str]) -> None:
        """`media_unsupported_reason(path)`: why the chosen model does not use a picture or sound; empty where it does."""
        super().__init__(body)
        self._body, self._media_unsupported_reason = body, media_unsupported_reason
        self._theme: Theme | None = None
        self._offer: DropOffer | None = None
        self.overlay: DropOverlay | None = None
        """None until something is first dragged over the window."""
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once there is an overlay."""
        self._theme = theme
        if self.overlay is not None:
            self.overlay.set_theme(theme)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show what would happen, and let it happen."""
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
        """What dropping this does; None for what is not from outside, such as a row that is moved in a list."""
        paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
        addresses = [url.toString() for url in data.urls() if url.scheme() in ("http", "https")]
        if paths:
            return self._with_reason(dropped.offer_for_files(paths))
        if addresses:
            return dropped.offer_for_address(addresses[0])
        if data.hasImage():
            return DropOffer(
                dropped.PICTURE, tr("Add this picture to the prompt"), self._media_unsupported_reason(".png")
            )
        if data.hasText():
            return dropped.offer_for_text(data.text())
        return None

    def _with_reason(self, offer: DropOffer) -> DropOffer:
        if offer.action != dropped.MEDIA:
            return offer
        reasons = filter(None, map(self._media_unsupported_reason, offer.values))
        return offer._replace(detail=next(reasons, offer.detail))

    def _handle_drop(self, offer: DropOffer, data: QMimeData) -> None:
        self._hide()
        if not offer.action:
            self.rejected.emit(offer.title, offer.detail)
        elif offer.action == dropped.PICTURE:
            image = data.imageData()
            if isinstance(image, QImage):
                self.pictureDropped.emit(image)
        else:
            self.dropped.emit(offer)

    def _show(self, offer: DropOffer) -> None:
        if self.overlay is None:
            self.overlay = DropOverlay(self._body)
            if self._theme is not None:
                self.overlay.set_theme(self._theme)
        self.overlay.show_drop_effect(offer.title, offer.detail, bool(offer.action))

    def _hide(self) -> None:
        self._offer = None
        if self.overlay is not None:
            self.overlay.hide()
