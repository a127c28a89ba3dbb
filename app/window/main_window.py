"""The main window: first an empty frame, which is on the screen at once, then everything in it.

What the frame needs is all that is imported here; `Qt` itself is not, for its enums take as long as the frame.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, QSize, QTimer, Signal, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QGuiApplication,
    QMoveEvent,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QMainWindow, QWidget

from app.storage.settings_file import SettingsStore
from app.theme.language import set_language
from app.theme.palettes import PALETTES

if TYPE_CHECKING:
    from app.control.history import History
    from app.session.session import Session
    from app.theme.theme import Theme
    from app.widgets.tab_order import TabOrder
    from app.window.window_parts import WindowParts

log = logging.getLogger(__name__)
FIRST_SIZE = (1440, 900)
MIN_SIZE = (900, 600)
FRAME_SIZE = QSize(16, 48)
"""What a title bar and borders take around the first window; how much it really is, is known only once it is shown."""
WHEEL_NOTCH = 120
"""What Qt counts for a notch of the wheel."""
Step = Callable[[], object]
_open_windows: set[MainWindow] = set()
"""None is collected as garbage before it was closed: its worker would still be running, and Qt aborts then."""


def first_size(screen: QSize) -> QSize:
    """How large the very first window is on a screen that has so much room, its frame included."""
    return QSize(*FIRST_SIZE).boundedTo(screen - FRAME_SIZE)


class MainWindow(QMainWindow):
    """A frame that knows how to begin and how to end. What it holds is put together by `assemble`, of
    `app.window.assembly`; `parts` is for the command line and for tests."""

    closed = Signal()
    textSizeRequested = Signal(int)
    """1 for larger text, -1 for smaller: the wheel was turned with Ctrl."""
    firstPainted = Signal()
    """Everything has been drawn once."""
    geometryChanged = Signal()
    """Its place on the screen or its size has changed."""

    parts: WindowParts

    def __init__(self, store: SettingsStore, assemble: Callable[[MainWindow], WindowParts], language: str = "") -> None:
        super().__init__()
        self.setWindowTitle("Decodescope")
        self._store = store
        self._assemble: Callable[[MainWindow], WindowParts] | None = assemble
        self.is_assembled = self.is_closed = False
        self._is_painted = False
        self._wheel_delta = 0
        self.tab_order: TabOrder | None = None
        """The way that Tab takes, once there is anything to go to."""
        self._rebuild: Callable[[WindowParts], WindowParts] | None = None
        self._before_hiding: Sequence[Step] = ()
        self._after_hiding: Sequence[Step] = ()
        _open_windows.add(self)
        set_language(language or store.saved_language)
        store.load()
        self._restore_geometry()
        self._set_background()

    @property
    def session(self) -> Session:
        """What runs, and what it has written."""
        return self.parts.session

    @property
    def history(self) -> History:
        """The runs that are kept."""
        return self.parts.history

    @property
    def body(self) -> QWidget:
        """What fills the frame, once it is assembled."""
        body = self.centralWidget()
        assert body is not None
        return body

    def assemble(self) -> None:
        """Put everything into the frame; once."""
        assemble, self._assemble = self._assemble, None
        if assemble is not None:
            self.is_assembled = True
            self.parts = assemble(self)

    @Slot()
    def rebuild(self) -> None:
        """Make everything in the frame anew: the program speaks another language."""
        if self._rebuild is not None and not self.is_closed:
            self.parts = self._rebuild(self.parts)

    def clear(self) -> None:
        """Take everything out of the frame, and close what lies over it: none of it hears of anything any more."""
        self.tab_order = None
        for part in [child for child in self.children() if isinstance(child, QWidget)]:
            part.deleteLater()
            QCoreApplication.sendPostedEvents(part, QEvent.Type.DeferredDelete)

    def set_rebuild(self, rebuild: Callable[[WindowParts], WindowParts]) -> None:
        """What makes of the parts others that speak another language."""
        self._rebuild = rebuild

    def at_close(self, before_hiding: Sequence[Step], after_hiding: Sequence[Step]) -> None:
        """What is done at the end: what is remembered while it can still be seen, then whatever may take its time."""
        self._before_hiding, self._after_hiding = before_hiding, after_hiding

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes of everything in it."""
        from app.theme.theme import panel_stylesheet

        self.setStyleSheet(theme.stylesheet() + panel_stylesheet(theme))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Change the text size by a step for each notch that is turned with Ctrl, wherever nothing zooms by itself."""
        from app.widgets.inputs import changes_text_size

        if not changes_text_size(event):
            super().wheelEvent(event)
            return
        self._wheel_delta += event.angleDelta().y()
        steps = int(self._wheel_delta / WHEEL_NOTCH)
        self._wheel_delta -= steps * WHEEL_NOTCH
        for _ in range(abs(steps)):
            self.textSizeRequested.emit(1 if steps > 0 else -1)
        event.accept()

    def focusNextPrevChild(self, forwards: bool) -> bool:
        """Tab and Shift+Tab."""
        if self.tab_order is not None and self.tab_order.move_focus(forwards):
            return True
        return super().focusNextPrevChild(forwards)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.is_assembled and not self._is_painted:
            self._is_painted = True
            QTimer.singleShot(0, self.firstPainted.emit)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember everything, stop everything; whatever goes wrong with that, the window closes."""
        if not self.is_closed:
            self.is_closed = True
            _run_steps(self._before_hiding)
            self.hide()
            _run_steps(self._after_hiding)
            _open_windows.discard(self)
            self.closed.emit()
        event.accept()

    @Slot()
    def save_now(self) -> None:
        """Write what is set: the desktop's session ends, and may end the program without closing its window."""
        if self.is_assembled and not self.is_closed:
            self.parts.settings_saver.save_settings()
            self.parts.services.chat_saver.save()

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        self.geometryChanged.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.geometryChanged.emit()

    def store_geometry(self) -> None:
        """Write its place into the settings."""
        self._store.settings.layout.window = bytes(self.saveGeometry().toBase64().data()).decode("ascii")

    def _restore_geometry(self) -> None:
        self.setMinimumSize(*MIN_SIZE)
        self.resize(first_size(QGuiApplication.primaryScreen().availableSize()))
        if geometry := self._store.settings.layout.window:
            self.restoreGeometry(QByteArray.fromBase64(geometry.encode("ascii")))

    def _set_background(self) -> None:
        """The ground of the theme, so that the frame does not flash in another colour."""
        name = self._store.settings.appearance.theme
        palette = self.palette()
        if name == "system":  # told by the desktop's own ground: the name of its scheme is among Qt's many enums
            name = "dark" if palette.color(QPalette.ColorRole.Window).lightness() < 128 else "light"
        palette.setColor(QPalette.ColorRole.Window, QColor(PALETTES[name]["panel"]))
        self.setPalette(palette)


def _run_steps(steps: Sequence[Step]) -> None:
    """One step that fails does not keep the others from being done."""
    for step in steps:
        try:
            step()
        except Exception:
            log.exception("Closing the window went on without one step")
