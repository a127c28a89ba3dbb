"""The window as a whole: public object names, running, stopping, errors, appearance, saved state."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QRegularExpression, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.session.worker import SWITCH_INTERVAL
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from decodescope.core.errors import NumericError, PickledWeightsError
from decodescope.core.events import Notice
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.windows import WAIT_MS, find, finish, open_window, run

_PARAMETER = QRegularExpression(r"^param\..+")


def test_loading_bar_stops_animation(qtbot: QtBot, window: MainWindow) -> None:
    """A style that still animates it repaints the whole window thirty times a second without end."""
    run(qtbot, window)
    bar, frame = window.parts.centre.progress, QEvent(QEvent.Type.StyleAnimationUpdate)
    place = window.parts.centre.splitter.y()
    for loading in (True, False):
        window.parts.centre.set_loading(loading)
        frame.setAccepted(False)
        QApplication.sendEvent(bar, frame)
        assert frame.isAccepted() == loading
        assert window.parts.centre.splitter.y() == place


def test_thread_switch_interval_is_short(window: MainWindow) -> None:
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL)


def test_public_object_names_exist(window: MainWindow) -> None:
    for name in ("modelCombo", "strategyCombo", "cacheCombo"):
        find(window, QComboBox, name)
    find(window, QPlainTextEdit, "promptEdit")
    find(window, QPushButton, "runButton")
    find(window, QSpinBox, "seedSpin")
    for name in ("tokenView", "treeView", "memoryView", "inspector", "timeline", "errorBanner", "historyView"):
        find(window, QWidget, name)
    for name in ("branchButton", "scoreButton", "exportButton"):
        find(window, QAbstractButton, name)
    assert window.history is window.parts.history
    for strategy in strategies.registry.values():
        window.parts.toolbar.strategy.select_data(strategy.name)
        assert window.parts.chosen.strategy.name == strategy.name
        editors = {part.objectName() for part in window.parts.setup.parameters.findChildren(QWidget, _PARAMETER)}
        parts_of_rows = {name for name in editors if name.count(".") > 1}
        assert editors - parts_of_rows == {f"param.{parameter.name}" for parameter in strategy.parameters}


def test_every_control_has_an_accessible_name(window: MainWindow) -> None:
    kinds = (QPushButton, QComboBox, QSpinBox, QPlainTextEdit)
    nameless = [
        part
        for kind in kinds
        for part in window.findChildren(kind)
        if not (part.accessibleName() or getattr(part, "text", str)())
    ]
    assert nameless == []


def test_run_from_the_button(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    window.parts.setup.prompt.editor.setPlainText("A small fox")
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        qtbot.mouseClick(window.parts.toolbar.run_button, Qt.MouseButton.LeftButton)
    assert signal.args[0].kind == "completed"
    assert window.session.run.text == "".join(STORY)
    assert (engine.runs[0].prompt, engine.runs[0].model) == ("A small fox", window.parts.chosen.model.name)
    assert window.parts.status.outcome.text() == f"EOS after {len(STORY)} tokens"
    assert "118 tok/s" in window.parts.status.number_labels["decode"].text()
    assert window.parts.toolbar.run_button.mode == "run"


@pytest.mark.parametrize("way", ["button", "escape"])
def test_run_becomes_stop_in_place(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, way: str) -> None:
    engine.hold = threading.Event()
    place = window.parts.toolbar.run_button.geometry()
    window.parts.runs.run()
    qtbot.waitUntil(lambda: len(window.session.run.tokens) == 10, timeout=WAIT_MS)
    assert (window.parts.toolbar.run_button.mode, window.parts.toolbar.run_button.geometry()) == ("stop", place)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        if way == "button":
            qtbot.mouseClick(window.parts.toolbar.run_button, Qt.MouseButton.LeftButton)
        else:
            qtbot.keyClick(window.parts.setup.prompt.editor, Qt.Key.Key_Escape)
        assert window.parts.toolbar.run_button.mode == "stopping"
        assert not window.parts.toolbar.run_button.isEnabled()
    assert signal.args[0].kind == "stopped"
    assert window.parts.toolbar.run_button.geometry() == place
    assert window.session.run.text == "".join(STORY[:10])


def test_ctrl_enter_runs_from_the_prompt(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    window.parts.setup.prompt.editor.setFocus()
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.keyClick(window.parts.setup.prompt.editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert "\n" not in window.parts.setup.prompt.editor.toPlainText()


def test_run_again_repeats_request_despite_changed_settings(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    run(qtbot, window)
    window.parts.setup.prompt.editor.setPlainText("Something else")
    window.parts.toolbar.seed.spin.setValue(99)
    finish(qtbot, window, window.parts.runs.run_again)
    assert engine.runs[1] == engine.runs[0]


def test_locked_seed_is_reused(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    seed = window.parts.toolbar.seed
    seed.spin.setValue(7)
    seed.lock_button.setChecked(True)
    run(qtbot, window)
    run(qtbot, window)
    seed.lock_button.setChecked(False)
    run(qtbot, window)
    assert [request.seed for request in engine.runs[:2]] == [7, 7]
    assert engine.runs[2].seed == seed.spin.value()


def test_settings_reach_the_engine(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    window.parts.toolbar.strategy.setCurrentIndex(window.parts.toolbar.strategy.findText("Sampling"))
    find(window, QWidget, "param.temperature").setValue(0.8)
    find(window, QWidget, "param.max_new_tokens").setValue(33)
    window.parts.settings.compute.top_n = 3
    run(qtbot, window)
    request = engine.runs[0]
    assert (request.strategy, request.top_n, request.cache) == ("sampling", 3, "dynamic")
    assert (request.settings["temperature"], request.settings["max_new_tokens"]) == (0.8, 33)
    assert "min_p" not in request.settings


def test_run_error_is_shown_with_retry(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    engine.fail_at, engine.error = 5, NumericError("NaN at step 5.", "Load it in float32.")
    banner = window.parts.centre.error_banner
    assert not banner.isVisible()
    assert run(qtbot, window).kind == "failed"
    assert banner.isVisible()
    assert (banner.title.text(), banner.cause.text()) == ("The model's output is invalid", "NaN at step 5.")
    assert not banner.details.isVisible()
    banner.details_button.click()
    assert banner.details.isVisible()
    assert "NumericError" in banner.details.toPlainText()
    assert window.session.run.text == "".join(STORY[:5])
    engine.fail_at = None
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        banner.button("retry").click()
    assert signal.args[0].kind == "completed"
    assert not banner.isVisible()


def test_escape_dismisses_error_banner(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    engine.fail_at, engine.error = 0, NumericError("x", "y")
    run(qtbot, window)
    qtbot.keyClick(window.parts.setup.prompt.editor, Qt.Key.Key_Escape)
    assert not window.parts.centre.error_banner.isVisible()


def test_permission_is_granted_per_model_and_saved(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    engine.load_error = PickledWeightsError("Only pickled weights.", "Allow it if you trust it.")
    run(qtbot, window)
    banner = window.parts.centre.error_banner
    assert banner.button("retry") is None
    engine.load_error = None
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        banner.button("allow_pickle").click()
    assert signal.args[0].kind == "completed"
    assert engine.loads[-1].allow_pickle
    assert not engine.loads[-1].allow_remote_code
    assert window.parts.settings.models.allow_pickle == [window.parts.chosen.model.name]
    assert "allow_pickle" in window.parts.store.path.read_text(encoding="utf-8")


def test_notices_of_a_run_are_shown(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    script = engine.stream
    engine.stream = lambda request, cancel: iter([Notice("x", "So it was."), *script(request, cancel)])
    run(qtbot, window)
    assert window.parts.centre.notice_banner.isVisible()
    assert window.parts.centre.notice_banner.cause.text() == "So it was."


def test_invalid_setting_prevents_run(window: MainWindow, engine: ScriptedEngine) -> None:
    find(window, QPlainTextEdit, "param.bad_words_ids").setPlainText("[[1, 2")
    window.parts.runs.run()
    assert window.parts.centre.error_banner.isVisible()
    assert "Banned phrases" in window.parts.centre.error_banner.cause.text()
    assert engine.runs == []


def test_changes_since_run_are_shown(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.toolbar.strategy.select_data("sampling")
    button = window.parts.status.settings_button
    find(window, QDoubleSpinBox, "param.temperature").setValue(0.8)
    run(qtbot, window)
    assert button.text() == "Settings used"
    find(window, QDoubleSpinBox, "param.temperature").setValue(1.9)
    qtbot.waitUntil(lambda: button.text() == "Settings changed", timeout=WAIT_MS)
    assert "Temperature 0.8 → 1.9" in button.toolTip()
    window.parts.toolbar.cache.select_data("static")
    qtbot.waitUntil(lambda: "Cache Dynamic → Static" in button.toolTip(), timeout=WAIT_MS)
    window.parts.dialogs.open_used_settings()
    texts = [label.text() for label in find(window, QDialog, "usedSettingsDialog").findChildren(QLabel)]
    assert "0.8 → 1.9" in texts
    run(qtbot, window)
    qtbot.waitUntil(lambda: button.text() == "Settings used", timeout=WAIT_MS)
    window.parts.setup.prompt.set_prompt("Another beginning")
    window.parts.toolbar.seed.lock_button.setChecked(False)
    run(qtbot, window)
    assert window.parts.changes.changes == []


def test_layout_is_stable_while_streaming(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    run(qtbot, window)
    parts = (
        window.parts.toolbar.run_button,
        window.parts.setup,
        window.parts.centre,
        window.parts.inspector,
        window.parts.timeline,
        window.parts.status,
    )

    def places() -> list[tuple[QPoint, object]]:
        return [(part.mapTo(window, QPoint(0, 0)), part.size()) for part in parts]

    before = places()
    engine.hold = threading.Event()
    window.parts.runs.run()
    qtbot.waitUntil(lambda: len(window.session.run.tokens) == 10, timeout=WAIT_MS)
    assert places() == before
    finish(qtbot, window, engine.hold.set)
    assert places() == before


def test_sequence_can_be_selected(qtbot: QtBot, window: MainWindow) -> None:
    find(window, QSpinBox, "param.num_return_sequences").setValue(3)
    run(qtbot, window)
    assert not window.parts.centre.sequence_combo.isVisible()  # the token view has a choice of its own
    window.parts.centre.show_view("memory")
    assert window.parts.centre.sequence_combo.isVisible()
    assert window.parts.centre.sequence_combo.count() == 3
    window.parts.centre.sequence_combo.setCurrentIndex(2)
    assert window.session.run.shown_index == 2


def test_earlier_run_is_shown_with_its_settings(qtbot: QtBot, window: MainWindow) -> None:
    button, status = window.parts.status.settings_button, window.parts.status
    window.parts.toolbar.strategy.select_data("sampling")
    run(qtbot, window)
    first, reported = window.session.run, status.outcome.text()
    shown = window.parts.centre.columns[0].current_view.export_table()
    find(window, QDoubleSpinBox, "param.temperature").setValue(1.9)
    run(qtbot, window)
    assert first is not None
    assert window.session.show(first)
    qtbot.waitUntil(lambda: button.text() == "Settings changed", timeout=WAIT_MS)
    assert status.outcome.text() == reported
    assert window.parts.centre.columns[0].current_view.export_table() == shown


def test_themes_change_live(window: MainWindow) -> None:
    grounds = []
    for name in ("light", "dark"):
        window.parts.appearance.set_theme(name)
        grounds.append(window.grab().toImage().pixelColor(3, 3))
    assert grounds[0].lightness() > 200 > 60 > grounds[1].lightness()


def test_a_system_theme_follows_the_system(window: MainWindow) -> None:
    window.parts.appearance.set_theme("system")
    window.parts.appearance._on_system_scheme_changed()
    assert window.parts.appearance.theme.name in ("light", "dark")


def test_text_size_scales_by_keys(qtbot: QtBot, window: MainWindow) -> None:
    before = window.parts.toolbar.run_button.height()
    for _ in range(5):
        window.parts.actions.do("enlarge_text")
    assert window.parts.settings.appearance.font_scale == 1.5
    assert window.parts.toolbar.run_button.height() == round(before * 1.5)
    window.parts.actions.do("reset_text")
    assert window.parts.toolbar.run_button.height() == before


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_smallest_window_shows_every_part(window: MainWindow, scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.resize(900, 600)
    assert window.size().toTuple() == (900, 600)
    for part in (
        window.parts.toolbar.run_button,
        window.parts.toolbar.seed,
        window.parts.setup.prompt.editor,
        window.parts.centre,
        window.parts.inspector,
    ):
        left = part.mapTo(window, QPoint(0, 0))
        assert left.x() >= 0
        assert left.x() + part.width() <= 900
        assert part.width() > 60


def test_panels_collapse_and_are_remembered(qtbot: QtBot, config_dir: Path) -> None:
    first = open_window(qtbot, config_dir)
    first.parts.layout.toggle_inspector()
    first.parts.setup.parameters.groups["Filters"].set_open(True)
    first.parts.setup.prompt.set_prompt("Remember me")
    first.parts.toolbar.strategy.select_data("greedy")
    first.parts.setup.parameters.set_values({"repetition_penalty": 1.3})
    first.parts.appearance.set_font_scale(1.2)
    first.close()
    second = open_window(qtbot, config_dir)
    assert not second.parts.inspector.isVisible()
    assert second.parts.setup.isVisible()
    assert second.parts.setup.parameters.open_groups["Filters"]
    assert second.parts.setup.prompt.editor.toPlainText() == "Remember me"
    assert second.parts.chosen.strategy.name == "greedy"
    assert second.parts.setup.parameters.changed_values() == {"repetition_penalty": 1.3}
    assert second.parts.settings.appearance.font_scale == 1.2
    assert second.size() == first.size()


def test_repaired_settings_show_notice(qtbot: QtBot, config_dir: Path) -> None:
    (config_dir / "settings.json").write_text("{", encoding="utf-8")
    window = open_window(qtbot, config_dir)
    assert window.parts.centre.notice_banner.isVisible()
    assert "settings.json.bad-1" in window.parts.centre.notice_banner.cause.text()


def test_closing_window_stops_run(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(hold=threading.Event())
    window = open_window(qtbot, config_dir, engine)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: len(window.session.run.tokens) == 10, timeout=WAIT_MS)
    window.close()
    assert engine.closed == 1
    assert window.session.run.outcome.kind == "stopped"


def test_empty_window_has_theme_background(qtbot: QtBot, config_dir: Path) -> None:
    store = SettingsStore(config_dir)
    store.settings.appearance.theme = "dark"
    store.save()
    window = build_window(config_dir, ScriptedEngine(), assembled=False)
    qtbot.addWidget(window)
    assert window.grab().toImage().pixelColor(5, 5) == QColor("#1b1f26")
    window.assemble()
    window.assemble()
    find(window, QWidget, "runButton")


def test_the_model_is_loaded_only_after_the_first_paint(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = build_window(config_dir, engine)
    qtbot.addWidget(window)
    assert engine.loads == []
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS):
        window.show()
    assert [load.model for load in engine.loads] == [window.parts.chosen.model.name]


def test_opening_window_imports_no_heavy_modules(config_dir: Path) -> None:
    """In an interpreter of its own: this one has long imported everything."""
    import subprocess

    code = (
        "import sys; from PySide6.QtWidgets import QApplication; a = QApplication([]); from decodescope import app;"
        f"w = app.build_window({str(config_dir)!r}, assembled=False); w.show(); w.assemble(); w.grab();"
        "print('decodescope.core.events' in sys.modules); w.parts.centre.create_all_views();"
        "bad = {'torch', 'transformers', 'numpy', 'pyqtgraph'} & set(sys.modules); print(bad or 'light'); w.close();"
        "import linecache, statistics; print(__import__ is __feature_import__, statistics.__file__ in linecache.cache)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    events, light, hook = done.stdout.splitlines()
    assert events == "False"  # creating all these classes takes a while
    assert light == "light"
    assert hook == "False False"  # PySide6's own would read and keep the source of whatever comes next
