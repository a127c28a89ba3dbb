"""The window on a stage: one view, large, and the words below it. Everything is as it was once it is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QByteArray, QEvent, QObject, QSize, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QBoxLayout, QMainWindow, QWidget

from app.control.messages import Messages
from app.control.stage.steering import Steering
from app.panels.centre import Centre
from app.session.session import Session
from app.widgets.screen import screen_of
from app.window.appearance import Appearance
from app.window.panel_layout import PanelLayout

if TYPE_CHECKING:
    from app.control.stage.demo import DemoRecorder
    from app.control.stage.presenter import Presenter
    from app.control.stage.presenter_page import PresenterPageController


class Stage(QObject):
    """F5 and Esc. What it needs is made when it is first wanted; `changed(is on)`."""

    changed = Signal(bool)
    runWanted = Signal()
    happened = Signal(str)
    """As the presenter's."""

    def __init__(
        self,
        window: QMainWindow,
        centre: Centre,
        around: Sequence[QWidget],
        session: Session,
        appearance: Appearance,
        layout: PanelLayout,
        messages: Messages,
    ) -> None:
        """`around`: what is hidden meanwhile, besides the panels of `layout`."""
        super().__init__(centre)
        self._window, self._centre, self._around, self._session = window, centre, around, session
        self._appearance, self._layout, self._messages = appearance, layout, messages
        self._presenter: Presenter | None = None
        self._presenter_page: PresenterPageController | None = None
        self._recorder: DemoRecorder | None = None
        self.steering = Steering(self)
        self._keys: list[QShortcut] = []
        self._geometry = QByteArray()
        self._size = QSize()
        self._view = ""
        self._focus: QWidget | None = None
        self.is_on = False

    @property
    def presenter(self) -> Presenter:
        """What plays; made now if nobody has wanted it yet."""
        if self._presenter is None:
            self._presenter = self._make()
        return self._presenter

    @Slot()
    def toggle(self) -> None:
        """F5."""
        if self.is_on:
            self.leave()
        else:
            self.enter()

    def enter(self) -> None:
        """Clear the window for one view."""
        if self.is_on:
            return
        self.is_on = True
        self._geometry, self._focus = self._window.saveGeometry(), self._window.focusWidget()
        self._view = self._centre.columns[0].current
        self._layout.stand_back(True)
        for part in self._around:
            part.hide()
        self.presenter.begin()
        self._restage()
        self._window.installEventFilter(self)
        if self._fill_screen():
            self.open_page()
        for key in self._keys:
            key.setEnabled(True)
        self.changed.emit(True)

    @Slot()
    def leave(self) -> bool:
        """Everything as it was; False where nothing was presented."""
        if not self.is_on:
            return False
        self.is_on = False
        for key in self._keys:
            key.setEnabled(False)
        self._window.removeEventFilter(self)
        self._appearance.stage(None)  # first: what was in sight is put back in its own measure
        self.presenter.end()
        if self._presenter_page is not None:
            self._presenter_page.close()
        for part in self._around:
            part.show()
        self._layout.stand_back(False)
        self._centre.show_view(self._view)
        if self._window.isFullScreen():
            self._window.restoreGeometry(self._geometry)
        if self._focus is not None:
            self._focus.setFocus()
            self._focus = None
        self.changed.emit(False)
        return True

    @property
    def presenter_page(self) -> PresenterPageController:
        """The presenter's page; made now if nobody has wanted it yet."""
        if self._presenter_page is None:
            from app.control.stage.presenter_page import PresenterPageController

            self._presenter_page = PresenterPageController(
                self.presenter, self.steering, self._session, self._centre, self._window, self._appearance.usual
            )
            self._presenter_page.leaveWanted.connect(self.leave)
            for key, slot in (self._table(self.presenter) | {"Esc": self.leave, "F5": self.leave}).items():
                if key != "Space":  # presses what has the focus there
                    QShortcut(QKeySequence(key), self._presenter_page.page).activated.connect(slot)
            self._appearance.changed.connect(self._dress_desk)
        return self._presenter_page

    @Slot()
    def record_demo(self) -> None:
        """Film the shown run as it would be presented."""
        self.recorder.ask()

    @property
    def recorder(self) -> DemoRecorder:
        """What films."""
        if self._recorder is None:
            from app.control.stage.demo import DemoRecorder

            self._recorder = DemoRecorder(self._centre, self._session, self._messages, self._appearance)
        return self._recorder

    @Slot()
    def open_page(self) -> None:
        """The presenter's page, on the first screen."""
        self.presenter_page.open()

    @Slot()
    def _dress_desk(self) -> None:
        self.presenter_page.set_theme(self._appearance.usual)

    def _fill_screen(self) -> bool:
        """Full screen, on the hall's where there is one: True then. A window that is larger than its screen stays as it
        is: a picture is taken of it."""
        window, hall = self._window, hall_of(QGuiApplication.screens(), QGuiApplication.primaryScreen())
        room = screen_of(window).size()
        if not window.isVisible() or window.width() > room.width() or window.height() > room.height():
            return False
        if hall is not None:
            window.setGeometry(hall.geometry())
        window.showFullScreen()
        return hall is not None

    def _restage(self) -> None:
        """Type by the size of the window."""
        from app.theme.stage import on_stage

        self._size = self._window.size()
        self._appearance.stage(lambda theme: on_stage(theme, self._window.size()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Larger type in a larger window."""
        if watched is self._window and event.type() == QEvent.Type.Resize and self._window.size() != self._size:
            self._restage()
        return False

    def _make(self) -> Presenter:
        from app.control.stage.presenter import Presenter

        theme = self._appearance.theme
        assert theme is not None, "the window has its theme before anybody can press a key"
        presenter = Presenter(
            self._session, self._centre, theme, self._appearance.animates, lambda: self.steering.is_toured
        )
        self.steering.presenter = presenter
        self.steering.told.connect(presenter.tell)
        presenter.runWanted.connect(self.runWanted)
        presenter.happened.connect(self.happened)
        self._appearance.changed.connect(presenter.set_theme)
        self._appearance.wordsChanged.connect(presenter.tell)
        body, panels = self._window.centralWidget(), self._centre.parentWidget()
        column = body.layout() if body is not None else None
        assert isinstance(column, QBoxLayout)
        assert panels is not None
        column.insertWidget(column.indexOf(panels) + 1, presenter.caption)
        self._bind(presenter)
        return presenter

    def _bind(self, presenter: Presenter) -> None:
        """Let the stage's own keys work; while it is left, they mean what they always do."""
        for key, slot in self._table(presenter).items():
            bound = QShortcut(QKeySequence(key), self._centre)
            bound.activated.connect(slot)
            self._keys.append(bound)

    def _table(self, presenter: Presenter) -> dict[str, Callable[[], object]]:
        """What each key does, a clicker's among them."""
        return {
            "Space": self.steering.toggle,
            "Right": lambda: self.steering.step(1),
            "Left": lambda: self.steering.step(-1),
            "PgDown": lambda: self.steering.step(1),
            "PgUp": lambda: self.steering.step(-1),
            "Home": lambda: presenter.playback.go_to(0),
            "End": self._to_the_end,
            "+": lambda: presenter.change_pace(1),
            "=": lambda: presenter.change_pace(1),
            "-": lambda: presenter.change_pace(-1),
            "P": self.open_page,
            "Ctrl+PgDown": lambda: self._centre.show_beside(1),
            "Ctrl+PgUp": lambda: self._centre.show_beside(-1),
        }

    def _to_the_end(self) -> None:
        run = self._session.run
        if run is not None:
            self.presenter.playback.go_to(run.length)


S = TypeVar("S")


def hall_of(screens: Sequence[S], own: S) -> S | None:
    """The screen that the audience sees: the first that is not the presenter's own; None where there is one alone."""
    return next((screen for screen in screens if screen != own), None)
