"""The Scale lab's measurement: run beside the window, told to its page, stopped with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QWidget

from app.session.errand import Errand
from app.views.labs.scale.running_page import RunningPage
from app.views.labs.scale.window import ScaleView
from core.errors import TokenscopeError, UnforeseenError
from core.labs import scale
from resources.language import tr

LOOK_MS = 50
END_S = 5.0
"""How long an end waits for the processes to be gone."""


class ScaleRun(QObject):
    """One measurement at a time; goes with the page, and no process outlives it."""

    def __init__(self, page: RunningPage) -> None:
        super().__init__(page)
        self._page = page
        self._under_way: list[Errand] = []
        """One at most."""
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._deliver)
        page.runWanted.connect(self.start)
        page.stopWanted.connect(self.stop)
        page.destroyed.connect(partial(_end, self._under_way))

    @Slot(str, str, int, object)
    def start(self, model: str, scheme: str, processes: int, options: scale.Options) -> None:
        """Begin, unless one is under way."""
        if self._under_way:
            return
        page = self._page

        def work(errand: Errand) -> None:
            try:
                for event in _events(model, scheme, processes, options, errand.stop):
                    errand.tell(page.go_on, event)
                errand.tell(page.ended, None)
            except TokenscopeError as error:
                errand.tell(page.ended, error)
            except Exception as error:
                cause = tr("The lab met something that nothing here foresees.")
                errand.tell(page.ended, UnforeseenError(cause, "", f"{type(error).__name__}: {error}"))

        errand = Errand(work, "scale")
        self._under_way.append(errand)
        page.started()
        errand.start()
        self._look.start()

    @Slot()
    def stop(self) -> None:
        """End the processes; the page is told when they are gone."""
        for errand in self._under_way:
            errand.stop.set()

    @Slot()
    def _deliver(self) -> None:
        if self._under_way and self._under_way[0].deliver():
            self._look.stop()
            self._under_way.clear()


def _end(under_way: list[Errand]) -> None:
    """The page is gone, so nobody is left to be told; the processes go too."""
    for errand in under_way:
        errand.end(END_S)


def open_scale(window: QWidget, measured: dict[str, object]) -> ScaleView:
    """The lab's room above a window, with what its pages start; they show again what was `measured` before, and put
    there what comes next."""
    view = ScaleView(window)
    for name, page in (("run", view.run), ("residual", view.residual)):
        ScaleRun(page)
        if name in measured:
            page.go_on(measured[name])
        page.arrived.connect(partial(measured.__setitem__, name))
    return view


def _events(
    model: str, scheme: str, processes: int, options: scale.Options, cancel: threading.Event
) -> Iterator[object]:
    if scheme == scale.ZERO_R:
        yield from scale.remembering(model, processes, cancel=cancel)
    else:
        yield from scale.measuring(model, scheme, processes, options=options, cancel=cancel)
