"""The presenter's own page: current and next step, speaker notes, clock and stopwatch."""

from __future__ import annotations

from PySide6.QtCore import QDateTime, QElapsedTimer, QLocale, QObject, QSize, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.features.presentation.controller.presenter import Presenter
from decodescope.app.features.presentation.controller.step_controls import StepControls
from decodescope.app.features.presentation.panel.presenter_window import SIZE, PresenterContent, PresenterWindow
from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.dialog import WINDOW_FRAME
from decodescope.app.widgets.screen import available_rect
from decodescope.resources.language import tr, trn

_SECOND = 1000


class PresenterPageController(QObject):
    """Controls the page during a presentation. `leaveRequested`: end it; `viewRequested(by)`: switch the view by a
    number of tabs.
    """

    leaveRequested = Signal()
    viewRequested = Signal(int)

    def __init__(self, presenter: Presenter, steering: StepControls, parent_window: QWidget, theme: Theme) -> None:
        super().__init__(presenter)
        self._presenter, self._controls = presenter, steering
        self.page = PresenterWindow(parent_window)
        size = QSize(*(theme.px(side) for side in SIZE))
        self.page.resize(size.boundedTo(available_rect(parent_window).size() - WINDOW_FRAME))
        self._stopwatch = QElapsedTimer()
        self._clock_timer = QTimer(self, interval=_SECOND)
        self._clock_timer.timeout.connect(self._show_time)
        self.page.set_theme(theme)
        self._connect()

    def _connect(self) -> None:
        page, presenter = self.page, self._presenter
        presenter.updated.connect(self.update_page)
        presenter.playback.playingChanged.connect(page.show_playing)
        page.played.connect(self._controls.toggle)
        page.stepped.connect(self._controls.step)
        page.paceChanged.connect(presenter.change_pace)
        page.viewChanged.connect(self.viewRequested)
        page.exitRequested.connect(self.leaveRequested)
        page.closed.connect(self._clock_timer.stop)

    def open(self) -> None:
        """Show the page; the stopwatch starts on first opening."""
        if not self._stopwatch.isValid():
            self._stopwatch.start()
        self._clock_timer.start()
        self._show_time()
        self.page.show()
        self.update_page()

    def close(self) -> None:
        """Close the page and reset the stopwatch."""
        self._clock_timer.stop()
        self._stopwatch.invalidate()
        self.page.close()

    @Slot()
    def update_page(self) -> None:
        """Update the current and the next step."""
        if not self.page.isVisible():
            return
        caption = self._presenter.caption
        self.page.show_playing(self._presenter.playback.is_playing)
        self.page.show_content(
            PresenterContent(
                current=caption.title.text(),
                reason=caption.sentence.text(),
                notes=self._controls.notes,
                next_step=self._next_text(),
                progress=caption.progress.text(),
                speed=pace_text(self._presenter.playback.pace),
                view=self._presenter.view_title,
            )
        )

    def _next_text(self) -> str:
        """Return the next step, or the answer that the audience is guessing."""
        following = self._presenter.next_caption
        if self._controls.is_guessing or following is None:
            return self._controls.answer
        return f"{following.title}\n{following.sentence}"

    @Slot()
    def _show_time(self) -> None:
        clock = QLocale().toString(QDateTime.currentDateTime().time(), QLocale.FormatType.ShortFormat)
        minutes, seconds = divmod(self._stopwatch.elapsed() // _SECOND, 60)
        self.page.show_time(clock, f"{minutes}:{seconds:02}")


def pace_text(pace: float) -> str:
    """Return `1 token per second` or `one token every 4 s`."""
    if pace < 1:
        return tr("one token every {seconds:g} s").format(seconds=1 / pace)
    return trn("{count:g} token per second", "{count:g} tokens per second", pace).format(count=pace)
