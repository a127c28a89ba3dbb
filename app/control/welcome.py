"""The first page: when it is shown, and what its three ways lead to. Nothing of it is made before it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QApplication, QWidget

from app.panels.setup import SetupPanel
from app.session.session import Session
from app.storage.settings import UsageSection
from app.theme.theme import Theme

if TYPE_CHECKING:
    from app.panels.welcome.welcome_page import WelcomePage

STORY = "story"
"""The example of the first way."""


class WelcomeController(QObject):
    """Lies over `body`. `storyRequested`: what is set is to be written, and seen; `tourRequested`: one is to be
    chosen; `modelRequested`: another is to be got; `seen`: it has been shown, which is to be remembered."""

    storyRequested = Signal()
    tourRequested = Signal()
    modelRequested = Signal()
    seen = Signal()

    def __init__(self, body: QWidget, setup: SetupPanel, session: Session, habits: UsageSection) -> None:
        super().__init__(body)
        self._body, self._setup, self._habits = body, setup, habits
        self._theme: Theme | None = None
        self._previous_focus: QWidget | None = None
        self.page: WelcomePage | None = None
        """None until it is first wanted."""
        for signal in (session.runStarted, session.runShown):
            signal.connect(self._on_run)

    @property
    def is_open(self) -> bool:
        """Whether it covers the window."""
        return self.page is not None and not self.page.isHidden()

    def show_once(self) -> None:
        """Show it, if it never has been."""
        if not self._habits.welcomed:
            self.show()

    @Slot()
    def show(self) -> None:
        """Show it, as often as it is asked for."""
        self._previous_focus = QApplication.focusWidget()
        if self.page is None:
            self.page = self._make_page()
        self.page.open()
        if not self._habits.welcomed:
            self._habits.welcomed = True
            self.seen.emit()

    @Slot()
    def leave(self) -> None:
        """The window is to be seen; the cursor is where it was."""
        if self.page is None or not self.is_open:
            return
        has_cursor = self.page.isAncestorOf(QApplication.focusWidget() or self._body)
        self.page.hide()
        if has_cursor and self._previous_focus is not None:
            self._previous_focus.setFocus()

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once it is there."""
        self._theme = theme
        if self.page is not None:
            self.page.set_theme(theme)

    def _make_page(self) -> WelcomePage:
        from app.panels.welcome.welcome_page import WelcomePage

        page = WelcomePage(self._body)
        for signal, slot in (
            (page.storyRequested, self._on_story),
            (page.tourRequested, self._on_tour),
            (page.modelRequested, self._on_model),
            (page.skipped, self.leave),
        ):
            signal.connect(slot)
        if self._theme is not None:
            page.set_theme(self._theme)
        return page

    @Slot()
    def _on_story(self) -> None:
        prompt = self._setup.prompt
        for example in prompt.examples:
            if example.id == STORY:
                prompt.exampleChosen.emit(example)
        self.leave()
        self.storyRequested.emit()

    @Slot()
    def _on_tour(self) -> None:
        self.leave()
        self.tourRequested.emit()

    @Slot()
    def _on_model(self) -> None:
        self.leave()
        self.modelRequested.emit()

    @Slot(object)
    def _on_run(self, _run: object) -> None:
        """However it was begun, it is to be seen."""
        self.leave()
