"""Native code is compiled while the program is idle, used from the next run on, and its state is shown."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox, QLabel
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.panels.settings.settings_dialog import SettingsDialog
from decodescope.app.session import kernel_builder
from decodescope.app.session.local_models import LocalModels
from decodescope.app.state.worker_messages import DecodeBackend, LoadRequest, ModelInfo
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.window.main_window import MainWindow
from decodescope.core.models import devices
from decodescope.core.models.model_saving import save_gguf
from decodescope.core.native import kernel_build, library_choice, native_library
from tests.core import gguf_models
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, find, open_window, run


class Builder:
    """A fake compiler that waits for `go` or for cancellation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.begun, self.ended = threading.Event(), 0, threading.Event()
        self.outcome, self.standing = "built", "missing"
        self.is_on = True
        monkeypatch.setattr(kernel_builder, "build_kernels", self.build)
        monkeypatch.setattr(kernel_builder, "IDLE_MS", 0)
        monkeypatch.setattr(core, "kernel_status", self.look)
        monkeypatch.setattr(core, "enable_native_steps", self.switch)

    def switch(self, on: bool) -> None:
        self.is_on = on

    def look(self) -> core.BuildResult:
        return core.BuildResult(self.standing if self.is_on else "off", "")

    def build(self, cancel: threading.Event) -> core.BuildResult:
        self.begun += 1
        while not (self.go.wait(0.01) or cancel.is_set()):
            pass
        outcome = "cancelled" if cancel.is_set() else self.outcome
        self.standing = "ready" if outcome == "built" else self.standing
        self.ended.set()
        return core.BuildResult(outcome, "", details="decode_step.h:7: error")


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    return Builder(monkeypatch)


def until(qtbot: QtBot, window: MainWindow, state: str, quick: bool | None = None) -> DecodeBackend:
    """Wait for the state and return the decode backend."""
    reported = window.parts.services.kernel_builder
    qtbot.waitUntil(
        lambda: (
            reported.backend is not None
            and (reported.backend.state, reported.backend.uses_native_code) == (state, quick)
        ),
        timeout=WAIT_MS,
    )
    assert reported.backend is not None
    return reported.backend


def open_interactive_window(qtbot: QtBot, folder: Path, engine: ScriptedEngine | None = None) -> MainWindow:
    """Open an interactive window, which may build kernels."""
    window = open_window(qtbot, folder, engine)
    window.parts.services.kernel_builder.allow_building()
    return window


def test_kernels_are_built_once_and_used_by_next_run(qtbot: QtBot, config_dir: Path, builder: Builder) -> None:
    window = open_interactive_window(qtbot, config_dir)
    until(qtbot, window, "building")
    status = window.parts.status.device
    assert "quick" not in status.text()
    assert "being built" in status.toolTip()
    assert run(qtbot, window).kind == "completed"  # it does not wait for the compiler
    builder.go.set()
    until(qtbot, window, "ready", True)
    assert "native code" in status.toolTip()
    window.session.emit_current()
    until(qtbot, window, "ready", True)
    assert builder.begun == 1


def test_unsupported_model_builds_nothing(qtbot: QtBot, config_dir: Path, builder: Builder) -> None:
    builder.standing = "ready"
    window = open_interactive_window(qtbot, config_dir, ScriptedEngine(is_quick=False))
    until(qtbot, window, "ready", False)
    assert "thread, native code" not in window.parts.status.device.toolTip()
    assert "does not support" in window.parts.status.device.toolTip()
    assert builder.begun == 0


@pytest.mark.parametrize(("outcome", "words"), [("failed", "could not be built"), ("no_compiler", "C++ compiler")])
def test_failed_build_shows_no_error_banner(
    outcome: str, words: str, qtbot: QtBot, config_dir: Path, builder: Builder
) -> None:
    builder.outcome = outcome
    builder.standing = "missing" if outcome == "failed" else outcome
    builder.go.set()
    window = open_interactive_window(qtbot, config_dir)
    until(qtbot, window, outcome)
    assert not window.parts.centre.error_banner.isVisible()
    assert not window.parts.centre.notice_banner.isVisible()
    assert words in window.parts.status.device.toolTip()
    window.parts.dialogs.open_settings()
    dialog = find(window, SettingsDialog, "settingsDialog")
    settle(dialog)
    assert not faults(dialog)
    standing = find(dialog, QLabel, "quickStanding")
    assert words in standing.text()
    assert ("decode_step.h:7" in standing.toolTip()) == (outcome == "failed")
    dialog.close()
    window.session.emit_current()
    assert builder.begun == (outcome == "failed")  # not tried again


def test_disabling_stops_build_and_enabling_restarts_it(qtbot: QtBot, config_dir: Path, builder: Builder) -> None:
    window = open_interactive_window(qtbot, config_dir)
    until(qtbot, window, "building")
    window.parts.dialogs.open_settings()
    dialog = find(window, SettingsDialog, "settingsDialog")
    box = find(dialog, QCheckBox, "quickChoice")
    box.setChecked(False)
    until(qtbot, window, "off")
    qtbot.waitUntil(builder.ended.is_set, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: not window.parts.services.kernel_builder.is_building, timeout=WAIT_MS)
    assert "turned off" in find(dialog, QLabel, "quickStanding").text()
    assert not SettingsStore(config_dir).load().compute.quick_steps
    builder.go.set()
    box.setChecked(True)
    until(qtbot, window, "ready", True)
    assert builder.begun == 2
    dialog.close()


def test_closing_window_stops_compiler(qtbot: QtBot, config_dir: Path, builder: Builder) -> None:
    window = open_interactive_window(qtbot, config_dir)
    until(qtbot, window, "building")
    window.close()
    assert builder.ended.is_set()


def test_model_on_gpu_builds_nothing(qtbot: QtBot, config_dir: Path, builder: Builder) -> None:
    window = open_interactive_window(qtbot, config_dir, ScriptedEngine(info=ModelInfo("storyteller", device="cuda")))
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS):
        window.session.emit_current()
    assert window.parts.services.kernel_builder.backend is None
    assert builder.begun == 0


def test_screenshot_window_builds_nothing(qtbot: QtBot, config_dir: Path, builder: Builder) -> None:
    window = open_window(qtbot, config_dir)
    until(qtbot, window, "missing")
    run(qtbot, window)
    assert builder.begun == 0


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use this machine's compiler without optimization, in a temporary cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(library_choice.LEVEL_VARIABLE, library_choice.COMPILED)
    monkeypatch.setattr(kernel_build, "FLAGS", tuple("-O0" if flag == "-O3" else flag for flag in kernel_build.FLAGS))
    monkeypatch.setattr(native_library, "_HOLDER", native_library._LibraryHolder())
    monkeypatch.setattr(kernel_builder, "IDLE_MS", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_compiler", "real")
def test_native_kernels_give_same_text(qtbot: QtBot, config_dir: Path) -> None:
    """The storyteller's text is the same before and after."""
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        window.show()
    window.parts.settings_controller.update_values({"max_new_tokens": 12})
    run(qtbot, window)
    assert window.session.run is not None
    before = window.session.run.text
    window.parts.services.kernel_builder.allow_building()
    with qtbot.waitSignal(
        window.parts.services.kernel_builder.changed,
        timeout=12 * WAIT_MS,
        check_params_cb=lambda steps: bool(steps.uses_native_code),
    ):
        pass
    run(qtbot, window)
    assert window.session.run.text == before


def test_model_unpacked_before_the_compilation_is_packed_at_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save_gguf(gguf_models.make("llama"), tmp_path / "small.gguf", "Q4_0")
    monkeypatch.setenv(devices.UNPACK_VARIABLE, "1")
    monkeypatch.setattr(devices, "library", lambda: None)
    models, request = LocalModels(), LoadRequest(str(file), device="cpu")
    models.load(request)
    unpacked = models.find(request)
    assert unpacked is not None
    assert unpacked.unpacked_format == "Q4_0"
    models.load(request)
    assert models.find(request) is unpacked
    monkeypatch.setattr(devices, "library", object)
    monkeypatch.setattr(core, "kernel_status", lambda: core.BuildResult("ready", ""))
    models.load(request)
    packed = models.find(request)
    assert packed is not None
    assert packed.weights == "Q4_0"
