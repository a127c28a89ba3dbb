"""Plug-ins in the window: the list, templates, reloading on save, errors, trust; never in recordings and tours."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.features.plugins import controller
from decodescope.app.features.plugins.panel import PluginDialog
from decodescope.app.features.plugins.session import PluginJobs
from decodescope.app.start import launch
from decodescope.app.start.cli import parse
from decodescope.app.state.comparison.run_metrics import compute_run_metrics
from decodescope.app.views.compare.plots import measure_columns
from decodescope.app.window.main_window import MainWindow
from decodescope.core import plugins, strategies
from tests.conftest import PATIENCE_MS
from tests.core import tiny
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import finish

PROCESSOR = '''
from transformers import LogitsProcessor

class Louder(LogitsProcessor):
    """Adds to every score."""

    def __init__(self, {arguments}):
        pass

    def __call__(self, input_ids, scores):
        return scores
'''
MEASURE = (
    "from decodescope.core.measures import Measure\n"
    "MEASURE = Measure('words', 'Words', 'Number of words.', {compute})\n"
)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were opened in an editor."""
    found: list[Path] = []
    monkeypatch.setattr(controller, "open_in_editor", lambda path: found.append(path) or True)
    return found


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, opened: list[Path]) -> Iterator[MainWindow]:
    window = build_window(tmp_path, ScriptedEngine())
    window.resize(1280, 800)
    window.show()
    yield window
    window.close()
    window.deleteLater()
    assert plugins.installed() == ()


def jobs_of(window: MainWindow) -> PluginJobs:
    return window.parts.services.plugins


def write(tmp_path: Path, name: str, code: str, *, is_on: bool = True) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(code, encoding="utf-8")
    if is_on:
        trusted = plugins.PluginFolder(tmp_path)
        trusted.switch_on(next(one for one in trusted.scan() if one.key == name))
    return folder / name


def replace_file(path: Path, code: str) -> None:
    """Save as editors do that write a new file and rename it."""
    part = path.with_suffix(".tmp")
    part.write_text(code, encoding="utf-8")
    os.replace(part, path)


def load(qtbot: QtBot, window: MainWindow) -> None:
    jobs = jobs_of(window)
    with qtbot.waitSignal(jobs.changed, timeout=PATIENCE_MS, check_params_cb=lambda: not jobs.is_loading):
        jobs.load()


def until(qtbot: QtBot, window: MainWindow, condition: object) -> None:
    qtbot.waitUntil(condition, timeout=PATIENCE_MS)  # type: ignore[arg-type]


def rows(dialog: PluginDialog) -> dict[str, str]:
    return {row.plugin.key: row.plugin.state for row in dialog.rows}


def settings(window: MainWindow) -> list[str]:
    return [name for name in window.parts.setup.parameters.rows if name.startswith(("louder", "my_"))]


def test_new_plugin_is_created_and_registered_immediately(qtbot: QtBot, window: MainWindow, opened: list[Path]) -> None:
    window.parts.actions.do("open_plugins")
    dialog = window.findChild(PluginDialog)
    assert not dialog.empty.isHidden()
    dialog.new_processor.click()
    until(qtbot, window, lambda: settings(window) == ["my_processor", "my_processor_letters"])
    dialog.new_strategy.click()
    until(qtbot, window, lambda: "my_strategy" in strategies.registry)
    assert [path.name for path in opened] == ["my_processor.py", "my_strategy.py"]
    assert rows(dialog) == {"my_processor.py": "on", "my_strategy.py": "on"}
    assert window.parts.settings_controller.choose(strategy="my_strategy") == []
    assert window.parts.requests.current_request().strategy == "my_strategy"
    dialog.rows[1].box.click()
    until(qtbot, window, lambda: "my_strategy" not in strategies.registry)
    assert window.parts.chosen.strategy.name == "greedy"
    assert rows(dialog) == {"my_processor.py": "on", "my_strategy.py": "off"}


def test_saving_an_edited_file_reloads_it_and_keeps_the_values(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = write(tmp_path, "louder.py", PROCESSOR.format(arguments="amount: float = 1.0"))
    load(qtbot, window)
    jobs_of(window).begin_editing(jobs_of(window).plugins[0])
    window.parts.settings_controller.update_values({"louder": True, "louder_amount": 3.0})
    replace_file(path, PROCESSOR.format(arguments="amount: float = 1.0, other: int = 2"))
    until(qtbot, window, lambda: settings(window) == ["louder", "louder_amount", "louder_other"])
    assert window.parts.setup.parameters.changed_values() == {"louder": True, "louder_amount": 3.0}
    replace_file(path, PROCESSOR.format(arguments="amount: float = 1.0").replace("):", ")"))
    until(qtbot, window, lambda: settings(window) == [])
    title, text, _actions = window.parts.messages.notice or ("", "", [])
    assert title == "A plug-in failed"
    assert "louder.py, line 4" in text
    path.write_text(PROCESSOR.format(arguments="amount: float = 1.0"), encoding="utf-8")
    until(qtbot, window, lambda: settings(window) == ["louder", "louder_amount"])
    assert window.parts.setup.parameters.changed_values() == {"louder": True, "louder_amount": 3.0}


def test_externally_changed_plugin_requires_confirmation(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    code = PROCESSOR.format(arguments="amount: float = 1.0")
    path = write(tmp_path, "louder.py", code)
    load(qtbot, window)
    assert settings(window) == ["louder", "louder_amount"]
    replace_file(path, code + "\n# changed")
    until(qtbot, window, lambda: settings(window) == [])
    assert (window.parts.messages.notice or ("",))[0] == "A plug-in was changed"
    dialog = window.parts.plugins.open()
    assert rows(dialog) == {"louder.py": "changed"}
    assert not dialog.rows[0].box.isChecked()
    dialog.rows[0].box.click()
    until(qtbot, window, lambda: settings(window) == ["louder", "louder_amount"])


@pytest.mark.slow
def test_disabled_plugin_is_not_run(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    write(tmp_path, "spy.py", f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()", is_on=False)
    load(qtbot, window)
    dialog = window.parts.plugins.open()
    assert rows(dialog) == {"spy.py": "off"}
    assert not (tmp_path / "ran").exists()
    dialog.rows[0].box.click()
    until(qtbot, window, lambda: (tmp_path / "ran").exists())


def test_the_list_names_file_and_line_of_an_error_as_plain_text(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    write(tmp_path, "bad.py", "\nraise ValueError('<b>bold</b><img src=x>')\n")
    load(qtbot, window)
    dialog = window.parts.plugins.open()
    texts = [label.text() for label in dialog.rows[0].findChildren(type(dialog.empty))]
    assert any("bad.py, line 2" in text and "<b>bold</b>" in text for text in texts)


def test_plugin_strategy_settings_are_restored_at_next_start(qtbot: QtBot, tmp_path: Path, opened: list[Path]) -> None:
    for _start in range(2):
        window = build_window(tmp_path, ScriptedEngine())
        window.show()
        if _start == 0:
            window.parts.plugins.open().new_strategy.click()
        else:
            jobs_of(window).load()
        until(qtbot, window, lambda: "my_strategy" in strategies.registry)
        if _start == 0:
            window.parts.settings_controller.choose(strategy="my_strategy")
            window.parts.settings_controller.update_values({"every": 9})
        assert window.parts.chosen.strategy.name == "my_strategy"
        assert window.parts.setup.parameters.changed_values() == {"every": 9}
        window.close()
        window.deleteLater()
        assert "my_strategy" not in strategies.registry


@pytest.mark.every(3)
@pytest.mark.parametrize(("options", "is_loaded"), [((), True), (("--tour", "sampling"), False), (("FILE",), False)])
def test_plugins_are_not_loaded_for_recordings_and_tours(
    options: tuple[str, ...], is_loaded: bool, qtbot: QtBot, window: MainWindow, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from decodescope.app.features.tours.state import names_and_titles

    name = next(name for name, _title in names_and_titles())
    arguments = ["--tour", name] if options[:1] == ("--tour",) else list(options)
    write(tmp_path, "spy.py", f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()")

    async def closed(*_given: object) -> None:
        return None

    monkeypatch.setattr(launch, "next_value", closed)
    with qtbot.waitSignal(window.firstPainted, timeout=PATIENCE_MS):
        asyncio.run(launch.start(window, parse(arguments)))
    jobs = jobs_of(window)
    assert (jobs.is_loading or jobs.is_loaded) == is_loaded
    if is_loaded:
        until(qtbot, window, lambda: jobs.is_loaded)
        assert (tmp_path / "ran").exists()
        return
    dialog = window.parts.plugins.open()
    assert not dialog.load.isHidden()
    assert not (tmp_path / "ran").exists()
    dialog.load.click()
    until(qtbot, window, lambda: (tmp_path / "ran").exists())


def test_plugin_measure_adds_comparison_column(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    write(tmp_path, "words.py", MEASURE.format(compute="lambda text: len(text.text.split())"))
    load(qtbot, window)
    finish(qtbot, window, window.parts.runs.run)
    run = window.session.run
    assert run is not None
    metrics = compute_run_metrics(run)
    assert metrics.measures == {"words": len(run.text.split())}
    (column,) = measure_columns()
    assert (column.title, column.value(metrics)) == ("Words", len(run.text.split()))


LOOP = '''
import torch

def generate(model, input_ids, generation_config=None, rank: int = 2, **kwargs):
    """Takes the token of a given rank."""
    for _ in range(generation_config.max_new_tokens):
        scores = model(input_ids).logits[:, -1]
        input_ids = torch.cat([input_ids, scores.topk(rank).indices[:, -1:]], 1)
    return input_ids
'''


def write_generate_folder(folder: Path, code: str) -> Path:
    inside = folder / "second-best" / "custom_generate"
    inside.mkdir(parents=True, exist_ok=True)
    (inside / "generate.py").write_text(code)
    return inside.parent


def answer_trust(qtbot: QtBot, dialog: PluginDialog, folder: Path, role: QMessageBox.ButtonRole) -> str:
    """Choose a folder as the file dialog does, and answer the question; return the question."""
    dialog.folderChosen.emit(str(folder))
    box = dialog.findChild(QMessageBox, "trustQuestion")
    assert box is not None
    assert box.textFormat() == Qt.TextFormat.PlainText
    text = box.text()
    with qtbot.waitSignal(box.destroyed, timeout=PATIENCE_MS):
        next(button for button in box.buttons() if box.buttonRole(button) == role).click()
    return text


def test_a_custom_generate_folder_is_a_strategy_once_it_is_trusted(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    spy = tmp_path / "ran"
    folder = write_generate_folder(tmp_path, f"from pathlib import Path\nPath({str(spy)!r}).touch()\n{LOOP}")
    dialog = window.parts.plugins.open()
    question = answer_trust(qtbot, dialog, folder, QMessageBox.ButtonRole.RejectRole)
    assert "custom_generate/generate.py" in question
    assert str(folder) in question
    assert rows(dialog) == {}
    assert not spy.exists()
    answer_trust(qtbot, dialog, folder, QMessageBox.ButtonRole.AcceptRole)
    until(qtbot, window, lambda: window.parts.chosen.strategy.name == "second_best")
    assert spy.exists()
    assert rows(dialog) == {str(folder): "on"}
    picker = window.parts.toolbar.strategy
    assert "Second best" in [picker.itemText(index) for index in range(picker.count())]
    assert "second_best_rank" in window.parts.setup.parameters.rows
    window.parts.settings_controller.update_values({"second_best_rank": 3, "max_new_tokens": 4})
    sent = window.parts.requests.current_request()
    assert (sent.strategy, dict(sent.options)) == ("second_best", {"second_best_rank": 3})
    write_generate_folder(tmp_path, LOOP.replace("rank: int = 2", "rank: int = 3"))
    until(qtbot, window, lambda: rows(dialog) == {str(folder): "changed"})
    assert "second_best" not in strategies.registry
    dialog.rows[0].box.click()
    until(qtbot, window, lambda: window.parts.chosen.strategy.name == "second_best")
    dialog.rows[0].remove.click()
    until(qtbot, window, lambda: rows(dialog) == {})
    assert window.parts.chosen.strategy.name == "greedy"
    assert (folder / "custom_generate" / "generate.py").exists()


def test_folder_without_generate_function_is_rejected(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    dialog = window.parts.plugins.open()
    dialog.folderChosen.emit(str(tmp_path))
    assert dialog.findChild(QMessageBox, "trustQuestion") is None
    assert f"{tmp_path} contains no custom_generate/generate.py." in dialog.message.text()
    broken = write_generate_folder(tmp_path, "def generate(:\n")
    answer_trust(qtbot, dialog, broken, QMessageBox.ButtonRole.AcceptRole)
    until(qtbot, window, lambda: rows(dialog) == {str(broken): "failed"})
    error = dialog.rows[0].plugin.error
    assert error is not None
    assert "generate.py, line 1" in error.cause


def test_a_language_change_keeps_list_and_plugins(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    write(tmp_path, "louder.py", PROCESSOR.format(arguments="amount: float = 1.0"))
    load(qtbot, window)
    window.parts.plugins.open()
    window.parts.actions.do("speak_chinese")
    until(qtbot, window, lambda: window.parts.plugins.is_open)
    assert settings(window) == ["louder", "louder_amount"]
    window.parts.actions.do("speak_english")


def test_a_recording_made_with_a_plugin_opens_without_it(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    write(tmp_path, "louder.py", PROCESSOR.format(arguments="amount: float = 1.0"))
    folder = plugins.PluginFolder(tmp_path)
    folder.create("strategy")
    plugins.install(folder.load())
    options = {"louder": True}
    request = core.Request(tiny.prompt(), {"max_new_tokens": 5}, strategy="my_strategy", options=options)
    path = tmp_path / "run.decodescope"
    for _event in core.record(path, core.stream(tiny.shared("llama"), request), request):
        pass
    plugins.install([])
    run = window.parts.recorded_runs.show(path)
    assert run is not None
    assert window.session.run is run
    assert [stage.name for stage in run.tokens[2].funnel] == ["raw", "louder"]
    for view in ("tokens", "compare", "memory", "tree"):
        window.parts.centre.show_view(view)
        window.session.select_token(2)
    assert window.parts.changes.changes
    window.parts.dialogs.open_used_settings()
    window.parts.settings_controller.apply_request(run.request)
    assert "my_strategy" in (window.parts.messages.notice or ("", ""))[1]


def test_uncreatable_plugin_folder_is_reported(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "plugins").write_text("a file")
    dialog = window.parts.plugins.open()
    for button in (dialog.new_processor, dialog.open_folder):
        dialog.show_message("")
        button.click()
        assert f"{tmp_path / 'plugins'} cannot be written" in dialog.message.text()
        assert dialog.message.isVisible()


def test_the_editor_never_runs_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[object] = []
    monkeypatch.setattr(controller.QProcess, "startDetached", lambda *given: started.append(given) or (True, 1))
    monkeypatch.setattr(controller.os, "startfile", lambda *given: started.append(given), raising=False)
    for platform, expected in (("win32", (str(tmp_path), "edit")), ("darwin", ("open", ["-t", str(tmp_path)]))):
        monkeypatch.setattr(controller.sys, "platform", platform)
        assert controller.open_in_editor(tmp_path)
        assert started.pop() == expected


def test_no_plugins_are_installed_by_default() -> None:
    assert plugins.installed() == ()
    assert not core.measures.registry
