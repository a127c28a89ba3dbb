"""The main window: first an empty frame, shown at once, then its content.

Only what the frame needs is imported here; `Qt` itself is not, as its enums take as long as the frame.
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

from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.language import set_language
from decodescope.app.theme.palettes import PALETTES
from decodescope.app.theme.themed import Themed

if TYPE_CHECKING:
    from decodescope.app.features.history.controller.history import History
    from decodescope.app.session.session import Session
    from decodescope.app.theme.theme import Theme
    from decodescope.app.widgets.tab_order import TabOrder
    from decodescope.app.window.window_parts import WindowParts

log = logging.getLogger(__name__)
FIRST_SIZE = (1440, 900)
MIN_SIZE = (900, 600)
FRAME_SIZE = QSize(16, 48)
"""Size of the title bar and borders for the first window; the real size is known only when shown."""
WHEEL_NOTCH = 120
"""Qt's angle delta of a wheel notch."""
Step = Callable[[], object]
_open_windows: set[MainWindow] = set()
"""Open windows, so that none is garbage-collected before it is closed: Qt aborts if a worker still runs."""


def first_size(screen: QSize) -> QSize:
    """Return the size of the first window on a screen, including its frame."""
    return QSize(*FIRST_SIZE).boundedTo(screen - FRAME_SIZE)


class MainWindow(Themed, QMainWindow):
    """Frame that opens and closes. Its content is built by `assemble` in `app.window.assembly`; `parts` is used by the
    command line and tests.
    """

    closed = Signal()
    textSizeRequested = Signal(int)
    """Ctrl+wheel: 1 for larger text, -1 for smaller."""
    firstPainted = Signal()
    """Everything was painted once."""
    geometryChanged = Signal()
    """Position or size changed."""

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
        """Tab order of the content."""
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
        """The session."""
        return self.parts.session

    @property
    def history(self) -> History:
        """The run history."""
        return self.parts.history

    @property
    def body(self) -> QWidget:
        """The central widget, once assembled."""
        body = self.centralWidget()
        assert body is not None
        return body

    def assemble(self) -> None:
        """Build the content; called once."""
        assemble, self._assemble = self._assemble, None
        if assemble is not None:
            self.is_assembled = True
            self.parts = assemble(self)

    @Slot()
    def rebuild(self) -> None:
        """Rebuild the content in another language."""
        if self._rebuild is not None and not self.is_closed:
            self.parts = self._rebuild(self.parts)

    def clear(self) -> None:
        """Delete the content and its dialogs, so that they receive no more signals."""
        self.tab_order = None
        for part in [child for child in self.children() if isinstance(child, QWidget)]:
            part.deleteLater()
            QCoreApplication.sendPostedEvents(part, QEvent.Type.DeferredDelete)

    def set_rebuild(self, rebuild: Callable[[WindowParts], WindowParts]) -> None:
        """Set the function that rebuilds the parts in another language."""
        self._rebuild = rebuild

    def at_close(self, before_hiding: Sequence[Step], after_hiding: Sequence[Step]) -> None:
        """Set the steps at closing: saving while visible, then whatever may take time."""
        self._before_hiding, self._after_hiding = before_hiding, after_hiding

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Apply a theme to everything in the window and its dialogs."""
        from decodescope.app.theme.theme import panel_stylesheet

        self.setStyleSheet(theme.stylesheet() + panel_stylesheet(theme))
        super().set_theme(theme)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Change the text size on Ctrl+wheel, except over widgets that zoom themselves."""
        from decodescope.app.widgets.inputs import changes_text_size

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
        """Move the focus on Tab and Shift+Tab."""
        if self.tab_order is not None and self.tab_order.move_focus(forwards):
            return True
        return super().focusNextPrevChild(forwards)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.is_assembled and not self._is_painted:
            self._is_painted = True
            QTimer.singleShot(0, self.firstPainted.emit)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save everything and stop everything; the window closes even if that fails."""
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
        """Save the settings, as the desktop session ends and may kill the program."""
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
        """Store the geometry in the settings."""
        self._store.settings.layout.window = bytes(self.saveGeometry().toBase64().data()).decode("ascii")

    def _restore_geometry(self) -> None:
        self.setMinimumSize(*MIN_SIZE)
        self.resize(first_size(QGuiApplication.primaryScreen().availableSize()))
        if geometry := self._store.settings.layout.window:
            self.restoreGeometry(QByteArray.fromBase64(geometry.encode("ascii")))

    def _set_background(self) -> None:
        """Use the theme's background, so that the frame does not flash in another colour."""
        name = self._store.settings.appearance.theme
        palette = self.palette()
        if name == "system":  # judged by the desktop's background: the scheme name is among Qt's many enums
            name = "dark" if palette.color(QPalette.ColorRole.Window).lightness() < 128 else "light"
        palette.setColor(QPalette.ColorRole.Window, QColor(PALETTES[name]["panel"]))
        self.setPalette(palette)


def _run_steps(steps: Sequence[Step]) -> None:
    """Run all steps, even if one fails."""
    for step in steps:
        try:
            step()
        except Exception:
            log.exception("Closing the window went on without one step")
