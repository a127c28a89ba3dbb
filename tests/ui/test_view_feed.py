"""A view in the background receives all events of a run when it becomes visible."""

import pytest
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QStackedWidget
from pytestqt.qtbot import QtBot

from decodescope.app.views.base import View
from decodescope.app.window.view_feed import ViewEventBuffer


class FakeRun:
    """A run of that name; it has ended if it has an outcome."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome: str | None = None

    def __str__(self) -> str:
        return self.name


class FakeSession(QObject):
    """The signals of the session that the buffer receives."""

    runStarted = Signal(object)
    runShown = Signal(object)
    cursorMoved = Signal(object)
    selectionChanged = Signal(object)
    eventsArrived = Signal(object, object)


class Page(View):
    """Record the notifications that the view gets."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.received: list[object] = []

    def show_run(self, run: FakeRun | None) -> None:  # type: ignore[override]
        self.received.append(f"shows {run}")

    def events_arrived(self, run: FakeRun, events: object) -> None:  # type: ignore[override]
        self.received.append((str(run), list(events)))  # type: ignore[call-overload]

    def cursor_moved(self, run: object) -> None:
        self.received.append("cursor")


@pytest.fixture
def pages(qtbot: QtBot) -> tuple[QStackedWidget, Page, Page, FakeSession, ViewEventBuffer]:
    """Two pages in a stack, the first in front, and the session that both follow."""
    stack, front, back, session = QStackedWidget(), Page("front"), Page("back"), FakeSession()
    for page in (front, back):
        stack.addWidget(page)
    feeds = [ViewEventBuffer(page, session) for page in (front, back)]  # type: ignore[arg-type]
    session.cursorMoved.connect(back.cursor_moved)
    qtbot.addWidget(stack)
    return stack, front, back, session, feeds[1]


def test_events_for_hidden_view_are_delivered_when_shown(pages) -> None:
    stack, front, back, session, _ = pages
    run = FakeRun("run")
    session.eventsArrived.emit(run, (1, 2))
    session.eventsArrived.emit(run, (3,))
    assert front.received == [("run", [1, 2]), ("run", [3])]
    assert back.received == []
    stack.show()
    stack.setCurrentWidget(back)
    assert back.received == [("run", [1, 2, 3])]
    session.eventsArrived.emit(run, (4,))
    assert back.received[1:] == [("run", [4])]
    assert front.received[2:] == []


def test_pending_events_are_delivered_before_other_signals(pages) -> None:
    _, _, back, session, _ = pages
    run = FakeRun("run")
    session.runStarted.emit(run)
    session.eventsArrived.emit(run, (1,))
    session.cursorMoved.emit(run)
    assert back.received == ["shows run", ("run", [1]), "cursor"]


def test_hidden_view_receives_events_after_end(qtbot: QtBot, pages) -> None:
    """Exports may use the data of a view that is not visible."""
    _, front, back, session, feed = pages
    run = FakeRun("run")
    session.runStarted.emit(run)
    session.eventsArrived.emit(run, (1,))
    assert front.received == ["shows run", ("run", [1])]
    run.outcome = "stopped"
    feed.finish(run)
    assert back.received == [], "what is in sight is drawn first"
    qtbot.waitUntil(lambda: bool(back.received))
    assert back.received == ["shows run", ("run", [1])], "once is enough"


def test_view_is_notified_of_end_once(pages) -> None:
    """With the last events where there are some, else alone: what it draws for a run that has ended it draws once."""
    stack, _, back, session, feed = pages
    stack.show()
    stack.setCurrentWidget(back)
    for last in ((2,), ()):
        run = FakeRun("run")
        back.received.clear()
        session.runStarted.emit(run)
        session.eventsArrived.emit(run, (1,))
        run.outcome = "finished"
        if last:
            session.eventsArrived.emit(run, last)
        feed.finish(run)
        assert back.received == ["shows run", ("run", [1]), ("run", list(last))]


def test_new_run_cancels_pending_delivery_to_hidden_view(qtbot: QtBot, pages) -> None:
    stack, _, back, session, feed = pages
    first = FakeRun("first")
    session.runStarted.emit(first)
    first.outcome = "finished"
    feed.finish(first)
    session.runStarted.emit(FakeRun("second"))
    assert not feed.findChild(QTimer).isActive()
    stack.show()
    stack.setCurrentWidget(back)
    assert back.received == ["shows second"]


def test_saved_run_is_shown_in_every_view_immediately(pages) -> None:
    _, _, back, session, _ = pages
    session.runShown.emit(FakeRun("kept"))
    assert back.received == ["shows kept"]


def test_events_of_replaced_run_are_dropped(pages) -> None:
    stack, _, back, session, _ = pages
    session.eventsArrived.emit(FakeRun("old"), (1,))
    session.runStarted.emit(FakeRun("new"))
    stack.show()
    stack.setCurrentWidget(back)
    assert back.received == ["shows new"]
