"""The memory view: live updates, cursor, hovering and export."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from decodescope.app.state.cache_history import CacheHistory
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, Outcome, RunRequest
from decodescope.app.theme.theme import theme_for
from decodescope.app.views import VIEWS
from decodescope.app.views.memory.cached_tokens import EVICTED, CachedTokenRow
from decodescope.app.views.memory.view import MemoryView
from decodescope.core.events import Event, Notice, Prefilled
from tests.app.test_cache_history import EACH, START, events, plan
from tests.ui.scripted import started
from tests.ui.windows import show_widget


def begun() -> Run:
    run = Run(RunRequest("", load=LoadRequest("storyteller")))
    run.apply([started(), Prefilled(START, 0.02)])
    return run


def ended(found: list[Event]) -> Run:
    run = begun()
    run.apply(found)
    run.outcome = Outcome("completed")
    return run


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[MemoryView]:
    return show_widget(qtbot, MemoryView(), 680, 640, "dark")


def test_memory_view_is_registered_with_factory(qtbot: QtBot) -> None:
    spec = next(spec for spec in VIEWS if spec.name == "memory")
    made = spec.factory()
    qtbot.addWidget(made)
    assert spec.title == "Memory"
    assert made.objectName() == "memoryView"
    assert made.accessibleName()


def test_empty_view_shows_hint_instead_of_chart(view: MemoryView) -> None:
    view.show_run(None)
    assert not view.chart.isVisible()
    empty = view.grab().toImage()
    view.show_run(ended(events(plan(), 30)))
    assert view.chart.isVisible()
    assert view.grab().toImage() != empty


def test_view_follows_run_and_sends_report_to_inspector(view: MemoryView, qtbot: QtBot) -> None:
    run, reported = begun(), []
    view.signals.reportSelected.connect(reported.append)
    view.show_run(run)
    for event in events(plan(window=20), 41):
        run.apply([event])
        view.events_arrived(run, [event])
    assert reported[-1] is view.report
    assert view.report is not None
    assert view.report.heading == "After token 41"
    assert "sinks" in view.report.sentence
    assert EVICTED in view.cells._rows[0].states
    view.show_run(None)
    assert reported[-1] is None


def test_report_and_chart_follow_cursor(view: MemoryView) -> None:
    run = ended(events(plan(), 41))
    view.show_run(run)
    assert view.report is not None
    whole = view.report.token
    run.move_cursor(9)
    view.cursor_moved(run)
    assert view.report.heading == "After token 9"
    assert view.report.token != whole
    assert f"{(START + 8) * EACH:,} bytes" in view.report.facts
    assert view.chart.figure.xs[-1] == 9


def test_two_views_share_one_history(view: MemoryView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    other, sorted_in = MemoryView(), []
    qtbot.addWidget(other)
    append = CacheHistory.append
    monkeypatch.setattr(
        CacheHistory, "append", lambda self, events: sorted_in.extend(events := list(events)) or append(self, events)
    )
    run, found = begun(), events(plan(), 30)
    for shown in (view, other):
        shown.show_run(run)
    for event in found:
        run.apply([event])
        for shown in (view, other):
            shown.events_arrived(run, [event])
    assert other.model is view.model
    assert sorted_in == run.events


def test_hovering_curve_or_token_shows_bytes(view: MemoryView) -> None:
    view.show_run(ended(events(plan(window=20), 41)))
    assert f"after token 9: {(START + 8) * EACH:,} bytes" in view.charts.tip(9)
    assert "predicted" in view.charts.tip(55)
    place = view.cells.cell_rect(0, 5).center()
    found = view.cells.token_at(place.x(), place.y())
    assert found == (0, 5)
    assert "evicted: 0 bytes now" in view.charts.token_tip(*found)


def test_dragging_on_the_curve_moves_the_cursor(view: MemoryView, qtbot: QtBot) -> None:
    view.show_run(ended(events(plan(), 41)))
    canvas = view.chart.canvas()
    where = canvas.pixel(20, 0) - QPoint(0, 10)
    with qtbot.waitSignal(view.signals.cursorRequested, check_params_cb=lambda n: n == 20):
        QTest.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=where)
    with qtbot.waitSignal(view.signals.cursorRequested, check_params_cb=lambda n: n == 31):
        QTest.keyClick(view.chart, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)


def test_legend_names_lowest_area(view: MemoryView) -> None:
    view.show_run(ended(events(plan(9), 40)))
    assert view.charts.legend.accessibleName().startswith("Colours: keys (lowest), values")


def test_hidden_view_updates_when_shown(view: MemoryView) -> None:
    view.hide()
    run = ended(events(plan(), 30))
    view.show_run(run)
    assert view.report is None
    view.show()
    assert view.report is not None


def test_memory_fallback_is_shown(view: MemoryView) -> None:
    view.show_run(ended([*events(plan(), 20), Notice("memory_fallback", "Going on with “Offloaded”.")]))
    assert view.charts.notice.isVisible()
    assert view.charts.notice.text() == "Going on with “Offloaded”."


def test_export_table_has_bytes_per_measurement(view: MemoryView) -> None:
    view.show_run(ended(events(plan(block=8), 41)))
    head, *lines = view.export_table()
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    assert [row["tokens_written"] for row in rows] == [0, 1, 9, 17, 25, 33, 41]
    assert all(row["bytes"] == row["host_keys"] + row["host_residual"] for row in rows)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_content_is_not_wider_than_view(view: MemoryView, scale: float) -> None:
    view.set_theme(theme_for("light", scale))
    view.resize(420, 500)
    view.show_run(ended(events(plan(window=20), 41)))
    assert view._page.minimumSizeHint().width() <= view.width()


def test_cells_of_fifty_thousand_tokens_are_hit_tested(view: MemoryView) -> None:
    view.show_run(ended(events(plan(), 9)))
    view.cells.set_rows([CachedTokenRow("All of them", ("held",) * 50_000, True)])
    assert view.cells.sizeHint().height() <= 140
    last = view.cells.cell_rect(0, 49_999).center()
    found = view.cells.token_at(last.x(), last.y())
    assert found is not None
    assert found[1] > 49_900
