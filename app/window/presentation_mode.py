"""Presentation mode: one large view with a caption. Everything is restored at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QBoxLayout, QWidget

from decodescope.app.features.presentation.controller.step_controls import StepControls
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.choice_row import VOTE_KEYS
from decodescope.app.session.session import Session
from decodescope.app.window.appearance import AppearanceController
from decodescope.app.window.panel_layout import ViewOnlyMode

if TYPE_CHECKING:
    from decodescope.app.features.presentation.controller.presenter import Presenter
    from decodescope.app.features.presentation.controller.presenter_page import PresenterPageController


class PresentationMode(QObject):
    """Handles F5 and Esc. Its parts are created on first use. `changed(is on)`."""

    changed = Signal(bool)
    runRequested = Signal()
    soundTriggered = Signal(str)
    """Forwarded from the presenter."""

    def __init__(
        self, centre: Centre, session: Session, appearance: AppearanceController, view_only: ViewOnlyMode
    ) -> None:
        super().__init__(centre)
        self._centre, self._session, self._appearance, self._view_only = centre, session, appearance, view_only
        self._presenter: Presenter | None = None
        self._presenter_page: PresenterPageController | None = None
        self.step_controls = StepControls(self)
        self._shortcut_objects: list[QShortcut] = []
        self._vote_shortcuts: list[QShortcut] = []
        self.step_controls.questionChanged.connect(self._enable_vote_keys)
        self._view = ""
        self.is_on = False
        view_only.resized.connect(self._update_stage_theme)

    @property
    def presenter(self) -> Presenter:
        """The presenter, created on first use."""
        if self._presenter is None:
            self._presenter = self._make_presenter()
        return self._presenter

    @Slot()
    def toggle(self) -> None:
        """Start or end the presentation (F5)."""
        if self.is_on:
            self.leave()
        else:
            self.enter()

    def enter(self) -> None:
        """Start the presentation."""
        if self.is_on:
            return
        self.is_on = True
        self._view = self._centre.columns[0].current_name
        self._view_only.hide_surroundings()
        self.presenter.begin()
        self._update_stage_theme()
        if self._view_only.show_full_screen():
            self.open_page()
        for key in self._shortcut_objects:
            key.setEnabled(True)
        self.step_controls.set_room(True)
        self.step_controls.take_focus()
        self._enable_vote_keys()
        self.changed.emit(True)

    @Slot()
    def leave(self) -> bool:
        """End the presentation and restore everything; return False if there was none."""
        if not self.is_on:
            return False
        self.is_on = False
        for key in self._shortcut_objects:
            key.setEnabled(False)
        self.step_controls.set_room(False)
        self._enable_vote_keys()
        self._view_only.stop_watching()
        self._appearance.set_stage_theme(None)  # first, so that views restore their position at their own scale
        self.presenter.end()
        if self._presenter_page is not None:
            self._presenter_page.close()
        self._view_only.show_surroundings()
        self._centre.show_view(self._view)
        self._view_only.restore()
        self.changed.emit(False)
        return True

    @property
    def presenter_page(self) -> PresenterPageController:
        """The presenter page, created on first use."""
        if self._presenter_page is None:
            from decodescope.app.features.presentation.controller.presenter_page import PresenterPageController

            over, theme = self._centre.window(), self._appearance.settings_theme
            self._presenter_page = PresenterPageController(self.presenter, self.step_controls, over, theme)
            self._presenter_page.leaveRequested.connect(self.leave)
            self._presenter_page.viewRequested.connect(self._centre.show_adjacent_view)
            for key, slot in (self._shortcuts(self.presenter) | {"Esc": self.leave, "F5": self.leave}).items():
                if key != "Space":  # activates the focused widget there
                    QShortcut(QKeySequence(key), self._presenter_page.page).activated.connect(slot)
            self._bind_vote_keys(self._presenter_page.page)
            self._enable_vote_keys()
            self._appearance.changed.connect(self._set_page_theme)
        return self._presenter_page

    @Slot()
    def open_page(self) -> None:
        """Open the presenter page on the first screen."""
        self.presenter_page.open()

    @Slot()
    def _set_page_theme(self) -> None:
        self.presenter_page.page.set_theme(self._appearance.settings_theme)

    @Slot()
    def _update_stage_theme(self) -> None:
        """Scale the text with the window size."""
        from decodescope.app.theme.theme import stage_theme

        self._appearance.set_stage_theme(lambda theme: stage_theme(theme, self._centre.window().size()))

    def _make_presenter(self) -> Presenter:
        from decodescope.app.features.presentation.controller.presenter import Presenter

        presenter = Presenter(self._session, self._centre, self._appearance, lambda: self.step_controls.is_tour_playing)
        self.step_controls.presenter = presenter
        self.step_controls.changed.connect(presenter.update_stage)
        presenter.runRequested.connect(self.runRequested)
        presenter.soundTriggered.connect(self.soundTriggered)
        self._appearance.wordingChanged.connect(presenter.update_stage)
        panels = self._centre.parentWidget()
        body = panels.parentWidget() if panels is not None else None
        column = body.layout() if body is not None else None
        assert isinstance(column, QBoxLayout)
        assert panels is not None
        column.insertWidget(column.indexOf(panels) + 1, presenter.caption)
        self._bind_shortcuts(presenter)
        return presenter

    def _bind_shortcuts(self, presenter: Presenter) -> None:
        """Bind the shortcuts of the presentation; they are disabled outside it."""
        for key, slot in self._shortcuts(presenter).items():
            bound = QShortcut(QKeySequence(key), self._centre)
            bound.activated.connect(slot)
            self._shortcut_objects.append(bound)

        self._bind_vote_keys(self._centre)

    def _bind_vote_keys(self, parent: QWidget) -> None:
        """Bind the keys that enter a room's hands; they are enabled only while a question is open."""
        for key in VOTE_KEYS:
            bound = QShortcut(QKeySequence(key), parent)
            bound.setEnabled(False)
            bound.activated.connect(partial(self.step_controls.press, Qt.Key[f"Key_{key}"].value))
            self._vote_shortcuts.append(bound)

    @Slot()
    def _enable_vote_keys(self) -> None:
        """Give letters, digits and Enter to the open question, and to the focused widget otherwise."""
        is_open = self.is_on and self.step_controls.has_open_question
        for bound in self._vote_shortcuts:
            bound.setEnabled(is_open)

    def _shortcuts(self, presenter: Presenter) -> dict[str, Callable[[], object]]:
        """Return the shortcuts, including those of presenter remotes."""
        return {
            "Space": self.step_controls.toggle,
            "Right": lambda: self.step_controls.step(1),
            "Left": lambda: self.step_controls.step(-1),
            "PgDown": lambda: self.step_controls.step(1),
            "PgUp": lambda: self.step_controls.step(-1),
            "Home": lambda: presenter.playback.go_to(0),
            "End": self._to_the_end,
            "+": lambda: presenter.change_pace(1),
            "=": lambda: presenter.change_pace(1),
            "-": lambda: presenter.change_pace(-1),
            "P": self.open_page,
            "Ctrl+PgDown": lambda: self._centre.show_adjacent_view(1),
            "Ctrl+PgUp": lambda: self._centre.show_adjacent_view(-1),
        }

    def _to_the_end(self) -> None:
        run = self._session.run
        if run is not None:
            self.presenter.playback.go_to(run.length)
