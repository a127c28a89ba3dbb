"""What is shown, on the clipboard: as words, or as words with their colours."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from app.control.messages import Messages
from app.panels.centre import Centre
from app.views.base import Excerpt
from app.widgets.clipboard import copy_text_and_html
from resources.language import mark, tr

_TITLE = mark("Nothing was copied")
_NOTHING = mark("There is no text yet: run something first.")


class CopyController(QObject):
    """Takes the words of the view in front, or the run's text where that view shows none."""

    def __init__(self, centre: Centre, messages: Messages) -> None:
        super().__init__(centre)
        self._centre, self._messages = centre, messages

    @Slot()
    def copy_text(self) -> None:
        """Plain words."""
        excerpt = self._excerpt()
        if excerpt is not None:
            QGuiApplication.clipboard().setText(excerpt.plain)

    @Slot()
    def copy_coloured(self) -> None:
        """Words with colours for what takes HTML, and plain for what does not."""
        excerpt = self._excerpt()
        if excerpt is not None:
            copy_text_and_html(excerpt.plain, excerpt.html)

    def _excerpt(self) -> Excerpt | None:
        column = self._centre.columns[0]
        excerpt = column.current_view.excerpt() or column.view("tokens").excerpt()
        if excerpt is None:
            self._messages.show_notice(tr(_NOTHING), tr(_TITLE))
        return excerpt
