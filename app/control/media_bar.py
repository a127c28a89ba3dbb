"""The bar above the prompt in step with the files that go with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.control.media import MediaController
from app.panels.prompt import PromptPanel
from app.theme.theme import Theme

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from app.control.media_tools import MediaTools
    from app.panels.media.bar import MediaBar


class MediaBarController(QObject):
    """The bar, and all that fills it, is made once a model takes such files, or one is given."""

    def __init__(self, panel: PromptPanel, media: MediaController, data: Callable[[], Path]) -> None:
        """`data()`: where the user's data lies."""
        super().__init__(panel)
        self._panel, self._media, self._data = panel, media, data
        self._theme: Theme | None = None
        self._bar: MediaBar | None = None
        self._tools: MediaTools | None = None
        media.displayChanged.connect(self._show)
        panel.filesInserted.connect(media.add)
        panel.imageInserted.connect(self.add_picture)
        self._show()

    @Slot(object)
    def add_picture(self, picture: QImage) -> None:
        """A picture that has no file yet."""
        self.ensure_bar()[1].add_picture(picture)

    @Slot(int)
    def remove(self, index: int) -> None:
        """That file goes no longer with the prompt, and is no longer heard."""
        if self._tools is not None:
            self._tools.stop_playback()
        self._media.remove(index)

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
            self._tools.close()

    def ensure_bar(self) -> tuple[MediaBar, MediaTools]:
        """The bar and what its buttons do, made when first wanted."""
        if self._bar is None or self._tools is None:
            from app.control.media_tools import MediaTools
            from app.panels.media.bar import MediaBar

            self._bar = MediaBar()
            self._panel.insert_above_editor(self._bar)
            self._tools = MediaTools(self._bar, self._data, self)
            self._tools.filesAdded.connect(self._media.add)
            self._tools.failed.connect(self._media.show_error)
            self._bar.removeRequested.connect(self.remove)
            if self._theme is not None:
                self.set_theme(self._theme)
        return self._bar, self._tools

    @Slot()
    def _show(self) -> None:
        """What stands above the prompt."""
        media = self._media
        if self._bar is None and not media.kinds and not media.media:
            return
        bar, tools = self.ensure_bar()
        bar.show_buttons(media.kinds)
        bar.show_media([(medium, media.unsupported_reason(medium)) for medium in media.media], tools.can_play)
        bar.show_required(media.missing_media_text)
        self._panel.set_text_unsupported(media.text_unsupported_reason)
