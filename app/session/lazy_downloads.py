"""Downloads, made when they are first asked for: most who start the program never do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from app.session.downloads import Downloads


class LazyDownloads:
    """One for the life of the window."""

    def __init__(self, parent: QObject) -> None:
        self._parent = parent
        self.created: Downloads | None = None
        """None until they are wanted."""

    def get(self) -> Downloads:
        """The downloads."""
        if self.created is None:
            from app.session.downloads import Downloads

            self.created = Downloads(self._parent)
        return self.created

    def stop_all(self) -> None:
        """Stop what is under way, if anything ever was."""
        if self.created is not None:
            self.created.stop_all()
