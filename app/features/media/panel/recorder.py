"""Audio recorder: level meter, elapsed time and a stop button."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core import words
from decodescope.resources.language import tr

_LEVEL_DECAY = 0.86
"""Decay of the shown level per update: the bar rises at once and falls slowly."""
_CLIPPING_LEVEL = 0.95
"""Level above which samples are likely to clip."""
_SILENCE_LEVEL = 0.02


class LevelMeter(Themed, QWidget):
    """Bar that shows the peak of the last moment; also described for screen readers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._level = theme_for("light"), 0.0
        self.setAccessibleName(tr("Level"))

    def show_level(self, level: float) -> None:
        """Show a level from 0 (silence) to 1 (full scale)."""
        self._level = max(level, self._level * _LEVEL_DECAY)
        self.setAccessibleDescription(words.whole_percent(self._level))
        self.update()

    def restyle(self, theme: Theme) -> None:
        self.setMinimumHeight(self.sizeHint().height())

    def sizeHint(self) -> QSize:
        """A thin bar."""
        return QSize(self._theme.px(280), self._theme.px(14))

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter, ground = self._theme, QPainter(self), QRectF(self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        painter.drawRoundedRect(ground, 4, 4)
        painter.setBrush(theme.color("danger" if self._level > _CLIPPING_LEVEL else "finished"))
        ground.setWidth(ground.width() * min(1.0, self._level))
        painter.drawRoundedRect(ground, 4, 4)


class RecorderDialog(BaseDialog):
    """Recorder window. Emits `stopRequested` to keep the recording and `forgetRequested` to discard it, also when the
    window is closed.
    """

    stopRequested = Signal()
    forgetRequested = Signal()

    def __init__(self, max_seconds: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("recorder")
        self.setWindowTitle(tr("Record"))
        self._is_done = False
        self._loudest = 0.0
        self.time = set_up(PlainLabel("0:00"), role="title", accessible_name=tr("Recorded so far"))
        self.meter = LevelMeter(self)
        self.message = WrappedLabel(
            tr("Recording stops automatically after {minutes:g} minutes.").format(minutes=max_seconds / 60)
        )
        self.message.setProperty("role", "muted")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.stop = buttons.addButton(tr("Stop"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.stop.setObjectName("stopRecording")
        self.stop.setDefault(True)
        buttons.accepted.connect(self.stopRequested)
        buttons.rejected.connect(self.close)
        column = arrange(QVBoxLayout(self), margins=(20, 16, 20, 16), spacing=10)
        arrange(column, self.time, self.meter, self.message, STRETCH, buttons)
        self.setMinimumWidth(320)

    @Slot(float, float)
    def show_level(self, seconds: float, level: float) -> None:
        """Show the elapsed seconds and the level."""
        self._loudest = max(self._loudest, level)
        self.time.setText(f"{int(seconds) // 60}:{int(seconds) % 60:02}")
        self.meter.show_level(level)
        if seconds > 2 and self._loudest < _SILENCE_LEVEL:
            self.message.setText(tr("No sound detected. Check that the microphone is on and is the right one."))

    def done(self, result: int) -> None:
        """Discard the recording unless it was kept, then close."""
        self._end()
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._end()
        super().closeEvent(event)

    def close_kept(self) -> None:
        """Close the window; the recording has been kept."""
        self._is_done = True
        self.close()

    def _end(self) -> None:
        if not self._is_done:
            self._is_done = True
            self.forgetRequested.emit()
