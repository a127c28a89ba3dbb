"""Records what is spoken: how loud it is, how long it has been, and a button that ends it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.dialog import BaseDialog
from app.widgets.labels import WrappedLabel
from app.widgets.plain_text import PlainLabel
from core import words
from resources.language import tr

_LEVEL_DECAY = 0.86
"""Of the level that is shown, from one look to the next: the bar rises at once and falls slowly."""
_CLIPPING_LEVEL = 0.95
"""From here on samples are cut off."""
_SILENCE_LEVEL = 0.02


class LevelMeter(QWidget):
    """A bar as long as the loudest sample of the last moment is high; it is said as well, for those who do not see."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._level = theme_for("light"), 0.0
        self.setAccessibleName(tr("Level"))

    def show_level(self, level: float) -> None:
        """From silence, 0, to as loud as can be recorded, 1."""
        self._level = max(level, self._level * _LEVEL_DECAY)
        self.setAccessibleDescription(words.whole_percent(self._level))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
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
    """`stopRequested`: what was heard is kept; `forgetRequested`: it is not, which closing the window means too."""

    stopRequested = Signal()
    forgetRequested = Signal()

    def __init__(self, max_seconds: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("recorder")
        self.setWindowTitle(tr("Record"))
        self._is_done = False
        self._loudest = 0.0
        self.time = PlainLabel("0:00")
        self.time.setProperty("role", "title")
        self.time.setAccessibleName(tr("Recorded so far"))
        self.meter = LevelMeter(self)
        self.message = WrappedLabel(
            tr("Speak now. It ends by itself after {minutes:g} minutes.").format(minutes=max_seconds / 60)
        )
        self.message.setProperty("role", "muted")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.stop = buttons.addButton(tr("Stop"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.stop.setObjectName("stopRecording")
        self.stop.setDefault(True)
        buttons.accepted.connect(self.stopRequested)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(10)
        for part in (self.time, self.meter, self.message):
            column.addWidget(part)
        column.addStretch(1)
        column.addWidget(buttons)
        self.setMinimumWidth(320)

    @Slot(float, float)
    def show_level(self, seconds: float, level: float) -> None:
        """So long it has been, and so loud it is."""
        self._loudest = max(self._loudest, level)
        self.time.setText(f"{int(seconds) // 60}:{int(seconds) % 60:02}")
        self.meter.show_level(level)
        if seconds > 2 and self._loudest < _SILENCE_LEVEL:
            self.message.setText(tr("Nothing is heard. Is the microphone on, and is it the right one?"))

    def done(self, result: int) -> None:
        """It has ended, or is given up."""
        self._end()
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._end()
        super().closeEvent(event)

    def close_kept(self) -> None:
        """Close: what was heard is kept already."""
        self._is_done = True
        self.close()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.meter.set_theme(theme)

    def _end(self) -> None:
        if not self._is_done:
            self._is_done = True
            self.forgetRequested.emit()
