"""Glossary tooltips on the controls, and the glossary window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QWidget

from decodescope.app.panels.centre import Centre
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.panels.toolbar import Toolbar
from decodescope.app.session.session import Session
from decodescope.app.state.glossary_terms import find_term
from decodescope.app.storage.settings import UsageSection
from decodescope.app.theme.themed import inherit_theme
from decodescope.app.views.shared.glossary_tooltip import LazyTooltip, add_glossary_tooltip

if TYPE_CHECKING:
    from decodescope.app.panels.glossary_dialog import GlossaryDialog
    from decodescope.app.panels.welcome.welcome_page import WelcomePage

LOAD_DELAY_MS = 1_000
"""Delay before the glossary is first loaded, so that the window appears first."""


class GlossaryController(QObject):
    """Adds glossary tooltips to the toolbar, updates all tooltips after a change of the explanation level, and opens
    the glossary at the term of the widget under the pointer. `claimsRequested(name)`: show the claims about a strategy,
    setting or cache.
    """

    claimsRequested = Signal(str)

    def __init__(self, toolbar: Toolbar, setup: SetupPanel, centre: Centre) -> None:
        super().__init__(centre)
        self._parent_window = centre
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
        """Update every tooltip of this window."""
        for tip in self._parent_window.window().findChildren(LazyTooltip):
            tip.refresh_description()
        if self._dialog is not None:
            self._dialog.wording_changed()

    @Slot()
    def open_glossary(self) -> None:
        """Open the glossary at the term of the widget under the pointer, else of the focused widget."""
        pointed = QApplication.widgetAt(QCursor.pos())
        self.open_at(_topic_of(pointed) or focused_topic())

    def open_at(self, name: str) -> None:
        """Open the glossary at a term, given its id or the name it explains (`param.top_k`); at the top if there is
        none.
        """
        from decodescope.app.panels.glossary_dialog import GlossaryDialog

        term = find_term(name)
        if self._dialog is None:
            self._dialog = GlossaryDialog(parent=self._parent_window.window())
            self._dialog.destroyed.connect(self._on_closed)
            self._dialog.claimsRequested.connect(self.claimsRequested)
        if term is not None:
            self._dialog.show_term(term.id)
        self._dialog.show()
        self._dialog.activateWindow()

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None


def _topic_of(widget: QWidget | None) -> str:
    """Return the glossary topic of a widget or of its nearest parent with one."""
    while widget is not None:
        tip = widget.findChild(LazyTooltip, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if isinstance(tip, LazyTooltip):
            return tip.topic(widget.mapFromGlobal(QCursor.pos())).split(" ")[0]
        widget = widget.parentWidget()
    return ""


def focused_topic() -> str:
    """Return the glossary topic of the focused control, else of the view that contains it; empty if there is none."""
    widget = QApplication.focusWidget()
    if topic := _topic_of(widget):
        return topic
    while widget is not None:
        name = f"view.{widget.objectName().removesuffix('View')}"
        if topic := next((one for one in (name, f"{name}s") if find_term(one) is not None), ""):
            return topic
        widget = widget.parentWidget()
    return ""


STORY = "story"
"""Id of the example of the first button."""


class WelcomeController(QObject):
    """Shows the welcome page over `body`. `storyRequested`: run the story example; `lessonRequested`, `tourRequested`:
    choose a lesson or a tour; `modelRequested`: get a model; `wordingChosen(depth)`: a level of detail was chosen;
    `seen`: the page was shown for the first time.
    """

    wordingChosen = Signal(str)
    storyRequested = Signal()
    lessonRequested = Signal()
    tourRequested = Signal()
    modelRequested = Signal()
    seen = Signal()

    def __init__(self, body: QWidget, setup: SetupPanel, session: Session, usage: UsageSection) -> None:
        super().__init__(body)
        self._body, self._setup, self._usage = body, setup, usage
        self._previous_focus: QWidget | None = None
        self.page: WelcomePage | None = None
        """None until first shown."""
        for signal in (session.runStarted, session.runShown):
            signal.connect(self._on_run)

    @property
    def is_open(self) -> bool:
        """Whether the page covers the window."""
        return self.page is not None and not self.page.isHidden()

    @property
    def asks_wording(self) -> bool:
        """Whether the open page shows the question of a first start."""
        return self.page is not None and self.is_open and self.page.asks_wording

    def show_once(self) -> None:
        """Show the page with the question which words the program should use, if it was never shown."""
        if not self._usage.welcomed:
            self.show(asks_wording=True)

    @Slot()
    def show(self, asks_wording: bool = False) -> None:
        """Show the page."""
        self._previous_focus = QApplication.focusWidget()
        if self.page is None:
            self.page = self._make_page()
        self.page.open(asks_wording)
        if not self._usage.welcomed:
            self._usage.welcomed = True
            self.seen.emit()

    @Slot()
    def leave(self) -> None:
        """Hide the page and restore the focus."""
        if self.page is None or not self.is_open:
            return
        has_cursor = self.page.isAncestorOf(QApplication.focusWidget() or self._body)
        self.page.hide()
        if has_cursor and self._previous_focus is not None:
            self._previous_focus.setFocus()

    def _make_page(self) -> WelcomePage:
        from decodescope.app.panels.welcome.welcome_page import WelcomePage

        page = WelcomePage(self._body)
        for signal, slot in (
            (page.wordingChosen, self.wordingChosen),
            (page.storyRequested, self._on_story),
            (page.lessonRequested, self._on_lesson),
            (page.tourRequested, self._on_tour),
            (page.modelRequested, self._on_model),
            (page.skipped, self.leave),
        ):
            signal.connect(slot)
        inherit_theme(page)
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
    def _on_lesson(self) -> None:
        self.leave()
        self.lessonRequested.emit()

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
        """Hide the page when a run is shown."""
        self.leave()
