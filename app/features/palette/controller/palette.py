"""Command palette controller: opens it, collects the entries and runs the selected one.

Nothing is created and no source is loaded before it is first opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication, QWidget

from decodescope.app.storage.settings import UsageSection
from decodescope.app.theme.themed import inherit_theme

if TYPE_CHECKING:
    from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry
    from decodescope.app.features.palette.controller.search import RankedEntry
    from decodescope.app.features.palette.panel import CommandPalette, PaletteRow

MAX_RECENT = 12
"""Maximum number of recently used entries."""


class PaletteController(QObject):
    """Shows the palette over `body`, the content of the window."""

    def __init__(self, body: QWidget, usage: UsageSection) -> None:
        super().__init__(body)
        self._body, self._usage = body, usage
        self._make_context: Callable[[], PaletteContext] | None = None
        self._context: PaletteContext | None = None
        self._entries: Sequence[PaletteEntry] = ()
        self._results: Sequence[RankedEntry] = ()
        self._previous_focus: QWidget | None = None
        self.panel: CommandPalette | None = None
        """None until first opened."""

    def set_context(self, make_context: Callable[[], PaletteContext]) -> None:
        """Set the function that creates the context; called once, on first opening."""
        self._make_context = make_context

    @Slot()
    def open(self) -> None:
        """Open the palette with all entries, or close it if it is open."""
        if self.panel is not None and self.panel.isVisible():
            self.close()
            return
        self._previous_focus = QApplication.focusWidget()
        self._entries = self.gather()
        panel = self._ensure_panel()
        panel.open()
        self._search("")

    def gather(self) -> list[PaletteEntry]:
        """Collect the current entries of all sources."""
        from decodescope.app.features.palette.controller.entry_sources import all_entries
        from decodescope.app.features.palette.controller.search import with_synonyms

        if self._context is None and self._make_context is not None:
            self._context = self._make_context()
        context = self._context
        if context is None:
            return []
        return [with_synonyms(entry) for entry in all_entries(context)]

    @Slot()
    def close(self) -> None:
        """Hide the palette and restore the focus."""
        if self.panel is not None:
            self.panel.hide()
        if self._previous_focus is not None and self._previous_focus.isVisible():
            self._previous_focus.setFocus()
        self._previous_focus = None

    @Slot(str)
    def _search(self, query: str) -> None:
        from decodescope.app.features.palette.controller.search import rank_entries

        self._results = rank_entries(self._entries, query, self._usage.recent)
        if self.panel is not None:
            self.panel.show_rows([_row(item) for item in self._results])

    @Slot(int)
    def _run_entry(self, index: int) -> None:
        """Run the entry in the given row; keep the palette open if it is unavailable."""
        entry = self._results[index].entry
        if entry.reason:
            return
        self.close()
        self._remember(entry.key)
        entry.run()

    def _remember(self, key: str) -> None:
        others = [used for used in self._usage.recent if used != key]
        self._usage.recent = [key, *others][:MAX_RECENT]

    def _ensure_panel(self) -> CommandPalette:
        if self.panel is None:
            from decodescope.app.features.palette.panel import CommandPalette

            panel = self.panel = CommandPalette(self._body)
            panel.searched.connect(self._search)
            panel.chosen.connect(self._run_entry)
            panel.closeRequested.connect(self.close)
            inherit_theme(panel)
        return self.panel


def _row(result: RankedEntry) -> PaletteRow:
    from decodescope.app.features.palette.panel import PaletteRow

    entry = result.entry
    return PaletteRow(entry.title, entry.kind, entry.shortcut, entry.about, entry.reason, result.positions)
