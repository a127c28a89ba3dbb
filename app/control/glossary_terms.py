"""The field's words explained where they stand, and the glossary that holds them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QWidget

from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.panels.toolbar import Toolbar
from app.state.glossary_terms import find_term
from app.views.shared.glossary_link import add_glossary_tooltip
from app.widgets.lazy_tooltip import LazyTooltip

if TYPE_CHECKING:
    from app.panels.glossary import GlossaryDialog

LOAD_DELAY_MS = 1_000
"""Until the glossary is read for the first time: the window is to be seen before it."""


class GlossaryController(QObject):
    """Explains what stands in the toolbar, and keeps all explanations in the words of now; opens the
    glossary, at the term of what is pointed at."""

    def __init__(self, toolbar: Toolbar, setup: SetupPanel, centre: Centre) -> None:
        super().__init__(centre)
        self._over = centre
        self._dialog: GlossaryDialog | None = None
        for widget, name in (
            (toolbar.model, "control.model"),
            (toolbar.draft, "control.draft"),
            (toolbar.seed.spin, "control.seed"),
            (setup.prompt.editor, "control.prompt"),
        ):
            add_glossary_tooltip(widget, name)
        add_glossary_tooltip(toolbar.strategy, lambda: f"strategy.{toolbar.strategy.currentData()}")
        add_glossary_tooltip(toolbar.cache, lambda: f"cache.{toolbar.cache.currentData()}")
        self._refresh_timer = QTimer(self, singleShot=True, interval=LOAD_DELAY_MS)
        self._refresh_timer.timeout.connect(self.refresh)
        self._refresh_timer.start()
        for picker in (toolbar.strategy, toolbar.cache):
            picker.currentIndexChanged.connect(self._refresh_timer.start)

    @Slot()
    def refresh(self) -> None:
        """Say everything again that is explained in this window."""
        for tip in self._over.window().findChildren(LazyTooltip):
            tip.refresh_description()
        if self._dialog is not None:
            self._dialog.words_changed()

    @Slot()
    def open_glossary(self) -> None:
        """The glossary, at the term of what the pointer is on, else of what has the focus, where that has one."""
        pointed = QApplication.widgetAt(QCursor.pos())
        self.open_at(_topic_of(pointed) or _topic_of(QApplication.focusWidget()))

    def open_at(self, name: str) -> None:
        """The glossary at a term, by its id or by what it explains (`param.top_k`); where there is none, at its
        beginning."""
        from app.panels.glossary import GlossaryDialog

        term = find_term(name)
        if self._dialog is None:
            self._dialog = GlossaryDialog(parent=self._over.window())
            self._dialog.destroyed.connect(self._on_closed)
        if term is not None:
            self._dialog.show_term(term.id)
        self._dialog.show()
        self._dialog.activateWindow()

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None


def _topic_of(widget: QWidget | None) -> str:
    """What explains a widget, or the one that it lies in."""
    while widget is not None:
        tip = widget.findChild(LazyTooltip, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if isinstance(tip, LazyTooltip):
            return tip.topic(widget.mapFromGlobal(QCursor.pos())).split(" ")[0]
        widget = widget.parentWidget()
    return ""
