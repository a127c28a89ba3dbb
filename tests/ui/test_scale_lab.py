"""The Scale lab window: opening, numbers that match the formulas, and accessible schedules."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication, QPushButton, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.labs.controller.scale import ScaleController
from decodescope.app.features.labs.session import ScaleJobs
from decodescope.app.features.labs.view.scale.window import ScaleView
from decodescope.app.panels.export_dialog import ExportDialog
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.core.errors import ScaleError
from decodescope.core.labs import scale
from decodescope.core.labs.scale.ranks.rank_messages import StepMemory
from decodescope.core.labs.scale.ranks.residual_memory import ResidualEstimate
from decodescope.resources import depth
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, open_window

pytestmark = pytest.mark.usefixtures("restore_english")


@pytest.fixture
def view(qtbot: QtBot) -> ScaleView:
    shown = ScaleView()
    qtbot.addWidget(shown)
    shown.setStyleSheet(theme_for("light").stylesheet())
    with qtbot.waitExposed(shown):
        shown.show()
    return shown


@pytest.fixture
def work() -> Iterator[ScaleJobs]:
    running = ScaleJobs()
    yield running
    running.stop_and_wait()


@pytest.fixture
def opened(qtbot: QtBot, work: ScaleJobs) -> Callable[[], ScaleView]:
    """Opens the lab's room above a window of its own."""
    over = QWidget()
    qtbot.addWidget(over)

    def open_room() -> ScaleView:
        room = ScaleController(over, work).lab
        room.setStyleSheet(theme_for("light").stylesheet())
        with qtbot.waitExposed(room):
            room.show()
        return room

    return open_room


def test_lab_opens_once_and_follows_explanation_level(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    assert not window.findChildren(ScaleView)
    for _ in range(2):
        window.parts.menu_bar.commands["open_scale"].trigger()
    (found,) = window.findChildren(ScaleView)
    assert found.objectName() == "scaleView"
    usual = found.memory.sentence.text()
    window.parts.appearance.set_depth(depth.EXACT)
    assert found.memory.sentence.text() != usual
    assert "Φ" in found.memory.sentence.text()
    window.parts.appearance.set_depth(depth.USUAL)
    assert "action.open_scale" in {entry.key for entry in window.parts.palette.gather()}


def test_memory_bars_match_formulas(view: ScaleView) -> None:
    """GPT 7.5 B on 64 devices, the states of every scheme: ZeRO's table."""
    page = view.memory
    assert page.shape.name == "GPT 7.5 B"
    for bar, scheme in zip(page.schemes.rows, scale.SCHEMES, strict=True):
        assert bar.parts.states == scale.plan(page.shape.parameters, 64, scheme).states
    assert "does not fit" in page.sentence.text()
    assert scale.decimal_bytes(page.bars.rows[0].parts.total) in page.sentence.text()
    page.form.set_value("pipeline", "4")
    assert [bar.label for bar in page.bars.rows] == ["Stage 1", "Stage 2", "Stage 3", "Stage 4"]
    assert "The devices are idle 27 % of the time" in page.sentence.text()  # 3 of 8 + 3
    page.form.set_value("pipe", "pipedream")
    assert "idle" not in page.sentence.text()
    page.form.set_value("devices", 6)
    assert "6 devices cannot be divided" in page.sentence.text()
    assert not page.bars.rows


def test_remedy_button_makes_model_fit(view: ScaleView) -> None:
    page = view.memory
    button = page.remedies.findChild(QPushButton, "scaleRemedy0")
    assert isinstance(button, QPushButton)
    assert button.text() == "ZeRO-1: optimizer states: 65.7 GB"
    button.click()
    assert page.sentence.text().startswith("It fits: the fullest device uses 65.7 GB")
    assert page.remedies.isHidden()


def test_custom_config_sets_model_shape(view: ScaleView, tmp_path: Path) -> None:
    config = {"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    view.memory.open_config(str(file))
    assert view.memory.sentence.text() == "The config lacks vocab_size."
    file.write_text(json.dumps(config | {"vocab_size": 500}))
    view.memory.open_config(str(file))
    assert view.memory.shape.layers == 3


def test_pipeline_describes_state_at_each_time(view: ScaleView, qtbot: QtBot) -> None:
    view.show_page("pipeline")
    page = view.pipeline
    page.form.set_value("kind", "pipedream")
    assert page.sentence.text().startswith("27 % idle")
    page.go_to_time(12.5)
    lines = page.moment.text().splitlines()
    assert lines[0] == (
        "Device 1 updates its weights to version 1. "
        "Device 1 computes micro-batch 5 forward, with version 1 of its weights."
    )
    assert len(lines) == 4
    on = page.scrubber.findChild(QPushButton, "scaleOn")
    assert isinstance(on, QPushButton)
    on.click()
    assert page.moment.text().startswith("Device 1 computes micro-batch 2 backward, with version 0")
    page.form.set_value("weights", "latest")
    page.go_to_time(13)
    assert page.moment.text().startswith("Device 1 computes micro-batch 2 backward, with version 1")
    page.form.set_value("hop", 5)
    assert "sending takes time too" in page.sentence.text()
    assert len(page.lanes.accessible_parts()) == len(page.boxes)


@pytest.mark.parametrize(("name", "size"), [("light", 1.0), ("dark", 1.5)])
def test_lab_pages_are_not_clipped(view: ScaleView, name: str, size: float) -> None:
    theme = theme_for(name, size)
    view.setStyleSheet(theme.stylesheet())
    view.set_theme(theme)
    for page in view.pages:
        view.show_page(page)
        settle(view)
        assert faults(view) == []


PARTS = scale.Parts(parameters=400, gradients=200, optimizer=400, buffers=200)
MEASURED = scale.RankMeasurement(
    "zero2", (PARTS, PARTS), (PARTS, PARTS), (800, 800), 800, 800, (9.0, 8.0), (9.0, 8.0), 0.1
)
PIPED = scale.RankMeasurement(
    "gpipe", (PARTS, PARTS), (PARTS, PARTS), (800, 700), 800, 0, (9.0, 8.0), (9.0, 8.0), 0.1, (800, 700), 1e-7,
    scale.schedule(2, 3, forward=20, backward=45, update=8), scale.schedule(2, 3, forward=15, backward=30, update=5),
)  # fmt: skip
STOPPED = threading.Event()


def measuring(
    model: str, scheme: str, processes: int, options: scale.Options, cancel: threading.Event
) -> Iterator[scale.RankProgress | scale.RankMeasurement]:
    """Replace the measurement of the core: wait to be stopped, fail or measure, by the scheme."""
    yield scale.RankProgress(0, "step", 2, 3, 4711)
    if scheme == "ddp":
        assert cancel.wait(WAIT_MS / 1000)
        STOPPED.set()
    elif scheme == "zero1":
        raise ScaleError("Process 2 of 2 exited in step 1 with code -9.", "Try again.", "what it wrote")
    else:
        yield PIPED if scheme == "gpipe" else MEASURED


def test_measurement_can_be_run_and_stopped(
    qtbot: QtBot, opened: Callable[[], ScaleView], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "measuring", measuring)
    STOPPED.clear()
    view = opened()
    page = view.run
    view.show_page("run")
    page.button.click()
    qtbot.waitUntil(lambda: page.progress.text() == "Process 1 is training: step 2 of 3.")
    assert page.button.text() == "Stop"
    assert page.button.isEnabled()
    settle(view)
    assert faults(view) == []
    page.button.click()
    qtbot.waitUntil(lambda: not page.is_running)
    assert STOPPED.is_set()
    page.form.set_value("scheme", "zero1")
    page.button.click()
    qtbot.waitUntil(lambda: "with code -9" in page.sentence.text())
    assert page.details.text() == "what it wrote"
    page.form.set_value("scheme", "zero2")
    page.button.click()
    qtbot.waitUntil(lambda: page.measured is not None and not page.is_running)
    assert page.sentence.text().startswith("Every process held exactly the predicted bytes: 1.2 kB on the fullest.")
    assert [row.expected for row in page.bars.rows] == [1200, 1200]
    settle(view)
    assert faults(view) == []


def test_measured_pipeline_is_shown_below_predicted_one(view: ScaleView) -> None:
    view.show_page("run")
    page = view.run
    micro = page.form.findChild(QSpinBox, "scale.micro")
    assert isinstance(micro, QSpinBox)
    assert not micro.isEnabled()
    page.form.set_value("scheme", "gpipe")
    assert micro.isEnabled()
    weights, again = (page.form.findChild(QWidget, f"scale.{name}") for name in ("weights", "recompute"))
    assert weights is not None
    assert again is not None
    assert (weights.isEnabled(), again.isEnabled()) == (False, True)
    page.form.set_value("scheme", "pipedream")
    assert (weights.isEnabled(), again.isEnabled()) == (True, False)
    page.on_started()
    page.on_event(PIPED)
    page.on_ended(None)
    assert (
        "took 268 ms, 24 % idle; with one core per process, the schedule predicts 185 ms, 24 % idle"
        in page.sentence.text()
    )
    assert "single process, to within 1.0e-07" in page.sentence.text()
    assert page.lanes.expected.x_of(100) == page.lanes.measured.x_of(100)
    page.lanes.measured.picked.emit(30)
    assert page.lanes.moment.text().splitlines()[1].startswith("Device 2 computes micro-batch 1 forward")
    settle(view)
    assert faults(view) == []


def test_closing_lab_stops_measurement(
    qtbot: QtBot, opened: Callable[[], ScaleView], work: ScaleJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "measuring", measuring)
    STOPPED.clear()
    shown = opened()
    shown.run.button.click()
    with qtbot.waitSignal(work.ended, timeout=WAIT_MS):
        shown.close()
    assert STOPPED.is_set()
    assert opened().run.button.text() == "Run"


def test_measurement_continues_after_language_change(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "measuring", measuring)
    STOPPED.clear()
    window = open_window(qtbot, tmp_path)
    window.parts.labs.open_scale()
    (before,) = window.findChildren(ScaleView)
    work = window.parts.services.labs.scale()
    before.run.form.set_value("processes", 3)
    with qtbot.waitSignal(work.arrived, timeout=WAIT_MS):
        before.run.button.click()
    with qtbot.waitSignal(window.parts.services.language_switch.rebuildRequested, timeout=WAIT_MS):
        window.parts.actions.do("speak_chinese")
    (after,) = window.findChildren(ScaleView)
    assert after.run.is_running
    assert after.run.button.text() == "停止"
    assert after.run.form.number_value("processes") == 3
    assert after.run.progress.text().startswith("进程 1")
    assert not STOPPED.is_set()
    with qtbot.waitSignal(work.ended, timeout=WAIT_MS):
        after.run.button.click()
    assert STOPPED.is_set()
    assert not after.run.is_running


def test_collective_shows_transfers_of_each_step(view: ScaleView) -> None:
    view.show_page("ring")
    page = view.ring
    assert page.sentence.text().endswith("Each device has sent 0 B; a tensor has 32 B.")
    assert not page.transfers.text()
    page.scrubber.go_to(1)
    assert page.transfers.text().splitlines()[0] == "Device 1 sends part 4 to device 2, which adds it to its own."
    page.scrubber.go_to(len(page.steps) - 1)
    assert "has sent 48 B" in page.sentence.text()  # 2 · 3/4 · 32
    reported = [part.name for part in page.grid.accessible_parts()]
    sums = [reported[place].partition(": ")[2] for place in range(4)]
    assert sums == [reported[4 + place].partition(": ")[2] for place in range(4)]


BLOCKS = [scale.Block(0, 3, 400), scale.Block(1, 9, 200, "checkpoint"), scale.Block(4, 9, 800, "gradient")]
REMEMBERED = StepMemory(200, 800, 0, 1.0, BLOCKS)
RESIDUAL = scale.Residual(
    (REMEMBERED, REMEMBERED),
    (replace(REMEMBERED, checkpoints=100, buffer=80, sent=200),) * 2,
    ResidualEstimate(200, 800, 0),
    ResidualEstimate(100, 80, 200),
    1e-8,
    (scale.arena(BLOCKS), scale.arena(BLOCKS, apart=True)),
)


def measuring_memory(
    model: str, processes: int, cancel: threading.Event
) -> Iterator[scale.RankProgress | scale.Residual]:
    """In the core's place."""
    yield scale.RankProgress(0, "step", 1, 2, 4711)
    yield RESIDUAL


def test_memory_is_compared_without_and_with_zero_r(
    qtbot: QtBot, opened: Callable[[], ScaleView], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "measuring_memory", measuring_memory)
    view = opened()
    page = view.residual
    view.show_page("residual")
    assert not page.without_zero_r.isVisible()
    page.button.click()
    qtbot.waitUntil(lambda: page.measurement is not None and not page.is_running)
    assert page.sentence.text().startswith("Each of 2 processes keeps 100 B of checkpoints instead of 200 B")
    assert page.with_zero_r.accessibleDescription().startswith("With ZeRO-R: 1.0 kB at the peak, in 1.4 kB; gaps 0 B")
    assert [part.name for part in page.without_zero_r.accessible_parts()] == [
        "checkpoints: 200 B", "gradients: 800 B", "temporary: 400 B",
    ]  # fmt: skip
    settle(view)
    assert faults(view) == []


def test_results_are_kept_when_lab_is_reopened(
    qtbot: QtBot, opened: Callable[[], ScaleView], work: ScaleJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "measuring", measuring)
    monkeypatch.setattr(scale, "measuring_memory", measuring_memory)
    first = opened()
    first.run.form.set_value("scheme", "gpipe")
    for page in (first.run, first.residual):
        page.button.click()
    qtbot.waitUntil(lambda: all(not run.is_running for run in work.runs.values()), timeout=WAIT_MS)
    with qtbot.waitSignal(first.destroyed):
        first.close()
    second = opened()
    assert second.run.measured is PIPED
    assert second.residual.measurement is RESIDUAL
    assert "24 % idle" in second.run.sentence.text()
    assert second.run.form.choice_value("scheme") == "gpipe"


def test_a_collective_is_played_to_its_end(view: ScaleView, qtbot: QtBot) -> None:
    view.show_page("ring")
    scrubber = view.ring.scrubber
    scrubber.timer.setInterval(1)
    scrubber.play.click()
    assert scrubber.play.accessibleName() == "Pause"
    qtbot.waitUntil(lambda: scrubber.step == len(view.ring.steps) - 1, timeout=WAIT_MS)
    assert not scrubber.timer.isActive()
    assert scrubber.position_label.text() == "6 / 6"
    scrubber.play.click()
    assert scrubber.step == 0
    view.show_page("memory")
    assert not scrubber.timer.isActive()


def test_long_schedule_is_scrolled_to_end(view: ScaleView, qtbot: QtBot) -> None:
    """Its cursor is there without scrolling."""
    view.show_page("pipeline")
    page = view.pipeline
    page.form.set_value("count", 40)
    bar = page.lanes.parent().parent().horizontalScrollBar()  # type: ignore[union-attr]
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum(), timeout=WAIT_MS)


def test_every_page_with_results_is_exported_as_table_and_picture(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path / "settings")
    window.parts.menu_bar.commands["open_scale"].trigger()
    (lab,) = window.findChildren(ScaleView)
    export = window.parts.export
    for name, page in lab.pages.items():
        lab.show_page(name)
        (offer,) = (offer for offer in export.exports.offers() if offer.name == "scale")
        assert ("csv" in offer.formats) == bool(page.export_table()) == (name not in ("run", "residual"))
        for kind in offer.formats:
            export.save("scale", PictureOptions(QSize(900, 600)), str(tmp_path / f"{name}.{kind}"))
            assert (tmp_path / f"{name}.{kind}").stat().st_size > 100
        lab.copyWanted.emit()
        assert QApplication.clipboard().text() == page.sentence.text()
    head, first, *_ = lab.memory.export_table()
    assert dict(zip(head, first, strict=True))["sent_data"] == lab.memory.estimate.traffic.data
    lab.export_button.menu().actions()[0].trigger()
    dialog = next(iter(lab.findChildren(ExportDialog)))
    assert dialog.windowTitle() == "Export"
    dialog.close()
    lab.close()


@pytest.mark.parametrize("devices", [1, 2, 8, 64])
def test_memory_page_tells_what_a_ring_sends(view: ScaleView, devices: int) -> None:
    form = view.memory.form
    for name, value in (("scheme", "ddp"), ("tensor", "1"), ("pipeline", "1"), ("devices", devices)):
        form.set_value(name, value)
    whole = 2 * 2 * view.memory.shape.parameters  # two passes of two bytes for each parameter
    assert view.memory.estimate is not None
    assert view.memory.estimate.traffic.data == pytest.approx(whole * (devices - 1) / devices, rel=1e-9)
