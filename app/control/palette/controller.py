"""Opens the palette, fills it with what can be done now, and does what is chosen.

Nothing of it is made, and no source asked, before it is first opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication, QWidget

from app.storage.settings import Habits
from app.theme.theme import Theme

if TYPE_CHECKING:
    from app.control.palette.entry import PaletteContext, PaletteEntry
    from app.control.palette.ranking import RankedEntry
    from app.panels.palette.command_palette import CommandPalette
    from app.panels.palette.palette_rows import PaletteRow

MOST_RECENT = 12
"""Entries that are remembered as used lately."""


class Palette(QObject):
    """Lies over `body`, all that the window holds."""

    def __init__(self, body: QWidget, habits: Habits) -> None:
        super().__init__(body)
        self._body, self._habits = body, habits
        self._make_reach: Callable[[], PaletteContext] | None = None
        self._reach: PaletteContext | None = None
        self._theme: Theme | None = None
        self._entries: Sequence[PaletteEntry] = ()
        self._found: Sequence[RankedEntry] = ()
        self._came_from: QWidget | None = None
        self.panel: CommandPalette | None = None
        """None until it is first wanted."""

    def act_on(self, reach: Callable[[], PaletteContext]) -> None:
        """The parts that entries act on; asked for once, when the palette is first opened."""
        self._make_reach = reach

    @Slot()
    def open(self) -> None:
        """Show it with everything that can be done now; a second time closes it."""
        if self.panel is not None and self.panel.isVisible():
            self.close()
            return
        self._came_from = QApplication.focusWidget()
        self._entries = self.gather()
        panel = self._panel()
        panel.open()
        self._search("")

    def gather(self) -> list[PaletteEntry]:
        """Every entry there is now, from all sources."""
        from app.control.palette.sources import sources
        from app.control.palette.synonyms import with_synonyms

        if self._reach is None and self._make_reach is not None:
            self._reach = self._make_reach()
        reach = self._reach
        if reach is None:
            return []
        return [with_synonyms(entry) for source in sources() for entry in source.entries(reach)]

    @Slot()
    def close(self) -> None:
        """Hide it; the cursor is where it was."""
        if self.panel is not None:
            self.panel.hide()
        if self._came_from is not None and self._came_from.isVisible():
            self._came_from.setFocus()
        self._came_from = None

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once it is there."""
        self._theme = theme
        if self.panel is not None:
            self.panel.set_theme(theme)

    @Slot(str)
    def _search(self, query: str) -> None:
        from app.control.palette.ranking import found

        self._found = found(self._entries, query, self._habits.recent)
        if self.panel is not None:
            self.panel.show_rows([_row(item) for item in self._found])

    @Slot(int)
    def _do(self, place: int) -> None:
        """Do what stands in that row; where it cannot be done, its reason is said and the palette stays."""
        entry = self._found[place].entry
        if entry.reason:
            return
        self.close()
        self._remember(entry.key)
        entry.do()

    def _remember(self, key: str) -> None:
        others = [used for used in self._habits.recent if used != key]
        self._habits.recent = [key, *others][:MOST_RECENT]

    def _panel(self) -> CommandPalette:
        if self.panel is None:
            from app.panels.palette.command_palette import CommandPalette

            panel = self.panel = CommandPalette(self._body)
            panel.searched.connect(self._search)
            panel.chosen.connect(self._do)
            panel.closeWanted.connect(self.close)
            if self._theme is not None:
                panel.set_theme(self._theme)
        return self.panel


def _row(found: RankedEntry) -> PaletteRow:
    from app.panels.palette.palette_rows import PaletteRow

    entry = found.entry
    return PaletteRow(entry.title, entry.kind, entry.shortcut, entry.about, entry.reason, found.places)
