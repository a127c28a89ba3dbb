"""Keeps the presenter's page in step with the stage, and does what is pressed on it."""

from __future__ import annotations

from PySide6.QtCore import QDateTime, QElapsedTimer, QLocale, QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.stage.presenter import Presenter
from app.control.stage.steering import Steering
from app.panels.stage.presenter_page import SIZE, PresenterContent, PresenterPage
from app.theme.theme import Theme
from resources.language import tr, trn

_SECOND = 1000


class PresenterPageController(QObject):
    """One page for as long as something is presented; `leaveWanted` when it is to end; `viewWanted(by)`: the view that
    is so many tabs further on."""

    leaveWanted = Signal()
    viewWanted = Signal(int)

    def __init__(self, presenter: Presenter, steering: Steering, over: QWidget, theme: Theme) -> None:
        super().__init__(presenter)
        self._presenter, self._steering = presenter, steering
        self.page = PresenterPage(over)
        self.page.resize(*(theme.px(side) for side in SIZE))
        self._since = QElapsedTimer()
        self._tick = QTimer(self, interval=_SECOND)
        self._tick.timeout.connect(self._show_time)
        self.set_theme(theme)
        self._connect()

    def _connect(self) -> None:
        page, presenter = self.page, self._presenter
        presenter.told.connect(self.tell)
        presenter.playback.playingChanged.connect(page.show_playing)
        page.played.connect(self._steering.toggle)
        page.stepped.connect(self._steering.step)
        page.paceChanged.connect(presenter.change_pace)
        page.viewChanged.connect(self.viewWanted)
        page.left.connect(self.leaveWanted)
        page.closed.connect(self._tick.stop)

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.page.set_theme(theme)

    def open(self) -> None:
        """Show the page; its watch begins with the first time."""
        if not self._since.isValid():
            self._since.start()
        self._tick.start()
        self._show_time()
        self.page.show()
        self.tell()

    def close(self) -> None:
        """Put it away; the watch begins anew the next time."""
        self._tick.stop()
        self._since.invalidate()
        self.page.close()

    @Slot()
    def tell(self) -> None:
        """Say what is on the stage, and what comes."""
        if not self.page.isVisible():
            return
        caption, following = self._presenter.caption, self._presenter.following
        self.page.show_playing(self._presenter.playback.playing)
        self.page.say(
            PresenterContent(
                now=caption.title.text(),
                why=caption.sentence.text(),
                notes=self._steering.notes,
                after=f"{following.title}\n{following.sentence}" if following is not None else "",
                place=caption.place.text(),
                pace=pace_told(self._presenter.playback.pace),
                view=self._presenter.view_title,
            )
        )

    @Slot()
    def _show_time(self) -> None:
        clock = QLocale().toString(QDateTime.currentDateTime().time(), QLocale.FormatType.ShortFormat)
        minutes, seconds = divmod(self._since.elapsed() // _SECOND, 60)
        self.page.show_time(clock, f"{minutes}:{seconds:02}")


def pace_told(pace: float) -> str:
    """`1 token a second`, `a token in 4 s`."""
    if pace < 1:
        return tr("a token in {seconds:g} s").format(seconds=1 / pace)
    return trn("{count:g} token a second", "{count:g} tokens a second", pace).format(count=pace)
