"""The Speed lab: live measurement, stop, failure and export; no result is lost and no process keeps running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.features.labs.panel import SpeedLabDialog
from decodescope.app.features.labs.session import SpeedJobs
from decodescope.app.features.labs.view.speed.speed_plots import technique_plots
from decodescope.app.features.labs.view.speed.view import SpeedView
from decodescope.app.panels.export_dialog import ExportDialog
from decodescope.app.storage.exported_files import as_json
from decodescope.app.theme.language import set_language
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import ScaleError
from decodescope.core.labs import speed
from decodescope.core.labs.speed import MeasurementRequest, Row, RowMeasurement
from decodescope.resources.language import ENGLISH
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, open_window

ONE, EIGHT, LOST = Row("batch", "1"), Row("batch", "8"), Row("batch", "64")
PLAIN, FLOAT, INT8 = Row("drafts", "plain"), Row("weights", "float32"), Row("weights", "int8")
ASSISTED = Row("drafts", "assisted")
ROWS = (ONE, EIGHT, LOST, FLOAT, INT8, PLAIN, ASSISTED)
GROUND = speed.SpeedReference("storyteller", "cpu", "float32", 22_825_728, 17.5e9, 1, 64, "storyteller-draft")
TOLD: tuple[speed.Event, ...] = (
    speed.RowPlan(ROWS), GROUND,
    speed.RowStarted(ONE), RowMeasurement(ONE, (190.0, 200.0, 210.0), 23_000_000, 765.0),
    speed.RowStarted(EIGHT), RowMeasurement(EIGHT, (790.0, 800.0, 810.0), 30_000_000, 6120.0, 8, base=200.0),
    speed.RowStarted(LOST), speed.SkippedRow(LOST, "needs 900 MiB of 12 MiB free: it does not fit"),
    speed.RowStarted(FLOAT), RowMeasurement(FLOAT, (190.0, 200.0, 210.0), 23_000_000, 765.0),
    speed.RowStarted(INT8), RowMeasurement(INT8, (390.0, 400.0, 410.0), 7_000_000, 2400.0, base=200.0),
    speed.RowStarted(PLAIN), RowMeasurement(PLAIN, (190.0, 200.0, 210.0), 23_000_000, 765.0),
    speed.RowStarted(ASSISTED),
    RowMeasurement(ASSISTED, (280.0, 300.0, 310.0), 24_000_000, 765.0, same=True, per_pass=3.2, base=200.0),
    speed.MeasurementFinished(42.0),
)  # fmt: skip
STOPPED = threading.Event()


def to_the_end(_asked: MeasurementRequest, _cancel: threading.Event) -> Iterator[speed.Event]:
    """Replace the measurement of the core; yield all events."""
    yield from TOLD


def until_stopped(_asked: MeasurementRequest, cancel: threading.Event) -> Iterator[speed.Event]:
    """Replace the measurement of the core; yield two rows and wait to be stopped."""
    yield from TOLD[:7]
    assert cancel.wait(WAIT_MS / 1000)
    STOPPED.set()


def killed(_asked: MeasurementRequest, _cancel: threading.Event) -> Iterator[speed.Event]:
    """Its process is ended from outside."""
    yield from TOLD[:6]
    written = f"what it wrote\n    {'~' * 60}{'^' * 60}"  # the marks under a line of a traceback, which nothing breaks
    raise ScaleError("The measuring process exited with code -9.", "Close other programs.", written)


@pytest.fixture(autouse=True)
def restore_english(qapp: QApplication) -> Iterator[None]:
    STOPPED.clear()
    yield
    set_language(ENGLISH)


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> Iterator[MainWindow]:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    yield window
    window.parts.services.labs.stop_all()


def opened(window: MainWindow) -> SpeedView:
    """By the line of its menu."""
    window.parts.menu_bar.commands["open_speed"].trigger()
    (view,) = window.findChildren(SpeedView, "speedView")
    return view


def work_of(window: MainWindow) -> SpeedJobs:
    return window.parts.services.labs.speed()


def measure(qtbot: QtBot, window: MainWindow, view: SpeedView) -> None:
    """Press the button, and wait for the end."""
    with qtbot.waitSignal(work_of(window).ended, timeout=WAIT_MS):
        view.settings.button.click()


def test_measurement_uses_selected_model_and_techniques(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[MeasurementRequest] = []
    monkeypatch.setattr(speed, "measuring", lambda one, _cancel: iter(requested.append(one) or ()))
    window.parts.settings.models.weights["storyteller-draft"] = "int8"
    assert window.parts.chosen.model.choose("storyteller-draft") == []
    view = opened(window)
    assert "action.open_speed" in {entry.key for entry in window.parts.palette.gather()}
    assert view.settings.model.currentData() == "storyteller-draft"
    for way, box in view.settings.ways.items():
        box.setChecked(way in ("weights", "batch"))
    measure(qtbot, window, view)
    assert (requested[0].model, requested[0].weights, requested[0].ways) == (
        "storyteller-draft",
        "int8",
        ("batch", "weights"),
    )
    for box in view.settings.ways.values():
        box.setChecked(False)
    assert not view.settings.button.isEnabled(), "there is nothing to measure"


def test_measurements_are_plotted_and_described(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "measuring", to_the_end)
    view = opened(window)
    assert not view.export_button.isEnabled()
    measure(qtbot, window, view)
    assert view.conditions.text() == str(speed.explain_reference(GROUND))
    assert view.progress.text() == "Measured in 42 s."
    batch, weights = view.cards["batch"], view.cards["weights"]
    assert batch.sentence.text().startswith("8 texts at once were fastest: 800 tokens/s in total, 4.0 ×")
    assert batch.skipped.text() == "64 skipped: needs 900 MiB of 12 MiB free: it does not fit"
    together, each, *limit = batch.charts.plots[0].figure.lines
    assert (together.points, each.points) == (((0.0, 200.0), (1.0, 800.0)), ((0.0, 200.0), (1.0, 100.0)))
    assert limit[0].points[0] == (0.0, 765.0)
    assert limit[0].points[1] == (pytest.approx(435 / 5355), 1200.0), "8 times that is out of sight"
    figure = weights.charts.plots[0].figure
    assert figure.bars[0].figures == ("200 · 26 % of its limit", "400 · 2.0 × · 17 % of its limit")
    assert figure.dots == (), "both limits are out of sight, and told in words"
    assert figure.bars[0].tooltips[1].startswith("int8: 400 tokens/s, 17 % of its limit, 2,400, 2.0 ×")
    assert view.cards["parallel"].isHidden()
    settle(view.window())
    assert faults(view.window()) == []


def test_visible_limit_is_drawn_as_stroke() -> None:
    near = [RowMeasurement(FLOAT, (200.0,), 1, 250.0), RowMeasurement(INT8, (400.0,), 1, 800.0, predicted=380.0)]
    figure = technique_plots("weights", near)[0][1]
    limit, predicted = figure.dots
    assert (limit.shape, limit.points) == ("stroke", ((250.0, 1.0),))
    assert (predicted.shape, predicted.points) == ("diamond", ((380.0, 0.0),))


def test_stop_keeps_finished_measurements(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "measuring", until_stopped)
    view = opened(window)
    view.settings.button.click()
    qtbot.waitUntil(lambda: view.progress.text() == "2 of 7. Measuring: Several texts at once, 64.", timeout=WAIT_MS)
    assert (view.bar.value(), view.bar.maximum()) == (2, 7)
    assert not view.settings.model.isEnabled()
    with qtbot.waitSignal(work_of(window).ended, timeout=WAIT_MS):
        view.settings.button.click()
        assert view.settings.button.text() == "Stopping…"
    assert STOPPED.is_set()
    assert view.progress.text() == "Stopped after 2 of 7; the results so far are kept."
    assert view.cards["batch"].isVisible()
    assert view.settings.button.text() == "Measure"


def test_killed_process_shows_error_with_remedy(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "measuring", killed)
    view = opened(window)
    measure(qtbot, window, view)
    assert view.problem.text() == "The measuring process exited with code -9. Close other programs."
    assert "what it wrote" in view.details.text()
    assert len(view.speeds.measured) == 2
    settle(view.window())
    assert faults(view.window()) == []


def test_closing_lab_stops_measurement(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "measuring", until_stopped)
    view = opened(window)
    with qtbot.waitSignal(work_of(window).changed, timeout=WAIT_MS):
        view.settings.button.click()
    with qtbot.waitSignal(work_of(window).ended, timeout=WAIT_MS):
        view.window().close()
    assert STOPPED.is_set()
    assert opened(window).cards["batch"].charts.plots, "opened again, it shows what was measured"


def test_language_change_keeps_measurements(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "measuring", to_the_end)
    measure(qtbot, window, opened(window))
    with qtbot.waitSignal(window.parts.services.language_switch.rebuildRequested, timeout=WAIT_MS):
        window.parts.actions.do("speak_chinese")
    view = opened(window)
    assert view.progress.text() != "Measured in 42 s."
    assert view.cards["batch"].sentence.text() == str(speed.explain_way("batch", view.speeds.measurements_of("batch")))
    assert "800" in view.cards["batch"].sentence.text()


def test_measurements_can_be_exported(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(speed, "measuring", to_the_end)
    view = opened(window)
    assert speed.TITLES["batch"] not in as_json([["way"], *view.export_table()])
    measure(qtbot, window, view)
    head, *lines = view.export_table()
    assert [line[1] for line in lines] == ["1", "8", "64", "float32", "int8", "plain", "assisted"]
    assert lines[1][2:7] == [800.0, 790.0, 810.0, 8, 100.0]
    assert lines[2][-1] == "needs 900 MiB of 12 MiB free: it does not fit"
    assert len({len(line) for line in (head, *lines)}) == 1
    view.copyWanted.emit()
    assert "Assisted" not in (copied := QGuiApplication.clipboard().text())
    assert "Draft model: 300 tokens/s" in copied
    QGuiApplication.clipboard().clear()  # the offscreen one outlives the program's objects
    view.exportWanted.emit()
    (dialog,) = view.window().findChildren(ExportDialog)
    assert [offer.title for offer in dialog.offers] == ["Speed lab"]
    dialog.close()
    for name in ("speed.png", "speed.svg", "speed.csv"):
        window.parts.export.save("speed", PictureOptions(view.size(), expands_scrolled=True), str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 500
    assert "speed" in {offer.name for offer in window.parts.export.exports.offers()}
    view.window().close()
    exports = window.parts.export.exports
    qtbot.waitUntil(lambda: "speed" not in {offer.name for offer in exports.offers()}, timeout=WAIT_MS)


@pytest.mark.parametrize(("name", "size"), [("light", 1.0), ("dark", 1.5)])
def test_lab_is_not_clipped(qtbot: QtBot, name: str, size: float) -> None:
    lab, theme = SpeedLabDialog(), theme_for(name, size)
    qtbot.addWidget(lab)
    lab.setStyleSheet(theme.stylesheet())
    lab.set_theme(theme)
    lab.resize(900, 600)
    speeds = SpeedJobs().speeds
    with qtbot.waitExposed(lab):
        lab.show()
    for event in TOLD:
        speeds.process(event)
        lab.view.show_speeds(speeds)
    settle(lab)
    assert faults(lab) == []


@pytest.mark.slow
def test_a_real_measurement_of_a_small_model(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own process, one way: every row is there."""
    real = speed.measuring
    short = {"seconds": 0.01, "repeats": 1, "threads": 1}
    monkeypatch.setattr(speed, "measuring", lambda asked, cancel: real(replace(asked, **short), cancel))
    window.parts.chosen.model.choose("storyteller-draft")
    view = opened(window)
    for way, box in view.settings.ways.items():
        box.setChecked(way == "weights")
    with qtbot.waitSignal(work_of(window).ended, timeout=120_000):
        view.settings.button.click()
    assert view.speeds.error is None
    assert [row.name for row in view.speeds.measured] == ["float32", "bfloat16", "int8", "int4"]
    assert view.cards["weights"].sentence.text()
