"""Downloads, made when they are first asked for: most who start the program never do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from app.session.downloads import Downloads


class LateDownloads:
    """One for the life of the window."""

    def __init__(self, parent: QObject) -> None:
        self._parent = parent
        self.made: Downloads | None = None
        """None until they are wanted."""

    def get(self) -> Downloads:
        """The downloads."""
        if self.made is None:
            from app.session.downloads import Downloads

            self.made = Downloads(self._parent)
        return self.made

    def end(self) -> None:
        """Stop what is under way, if anything ever was."""
        if self.made is not None:
            self.made.end()
