"""The panels in the window: examples, chats, presets, pickers, dialogs, menus, the prompt, views beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QDialog, QDoubleSpinBox, QLabel, QPlainTextEdit, QPushButton, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.panels.prompt_panel import PromptEdit
from decodescope.app.panels.settings.settings_dialog import SettingsDialog
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.storage.examples import ExamplePrompt, load_examples
from decodescope.app.widgets.picker_combo import SUBTITLE
from decodescope.app.window.main_window import MainWindow
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.model_folders import model_folder
from tests.ui.windows import WAIT_MS, find, open_window, run


def test_example_sets_prompt_strategy_seed_and_parameters(qtbot: QtBot, window: MainWindow) -> None:
    example = ExamplePrompt(
        "x",
        "X",
        "Write on",
        strategy="contrastive",
        params={"penalty_alpha": 0.4, "top_k": 6},
        seed=5,
        about="Watch the loop break.",
    )
    window.parts.toolbar.strategy.select_data("greedy")
    window.parts.toolbar.seed.lock_button.setChecked(False)
    window.parts.settings_controller.apply_example(example)
    request = window.parts.requests.request()
    assert (request.prompt, request.strategy, request.seed) == ("Write on", "contrastive", 5)
    assert (request.settings["penalty_alpha"], request.settings["top_k"]) == (0.4, 6)
    assert window.parts.setup.help.text() == "Watch the loop break."


def test_example_chips_set_prompt(qtbot: QtBot, window: MainWindow) -> None:
    prompt = window.parts.setup.prompt
    row = prompt.examples_row
    chips = [chip for chip in row.findChildren(QPushButton) if chip.objectName().startswith("example.")]
    assert chips
    with qtbot.waitSignal(prompt.exampleChosen) as signal:
        chips[-1].click()
    assert prompt.editor.toPlainText() == signal.args[0].text
    with qtbot.waitSignal(prompt.exampleChosen) as signal:
        prompt.more.menu().actions()[0].trigger()
    assert prompt.editor.toPlainText() == signal.args[0].text


def test_example_opens_its_view(window: MainWindow) -> None:
    shown = {}
    for example in load_examples():
        window.parts.setup.prompt.exampleChosen.emit(example)
        shown[example.id] = window.parts.centre.columns[0].current_name
    assert set(shown.values()) == {"tokens", "chat", "tree", "speculation"}
    assert (shown["beam-search"], shown["token-tree"], shown["tell-me"]) == ("tree", "speculation", "chat")
    assert all(shown[example.id] == example.shown_in for example in load_examples())


def test_chat_example_becomes_turns(window: MainWindow) -> None:
    chat = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"})
    window.parts.settings_controller.apply_example(ExamplePrompt("c", "C", messages=chat))
    assert window.parts.requests.request().prompt == chat
    window.parts.settings_controller.apply_example(ExamplePrompt("t", "T", "plain"))
    assert window.parts.requests.request().prompt == "plain"


def test_chat_without_chat_template_is_disabled(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine(info=ModelInfo("storyteller", "storyteller")))
    window.parts.toolbar.model.select_data("storyteller")
    run(qtbot, window)
    chat = window.parts.setup.prompt.mode.button("chat")
    assert not chat.isEnabled()
    assert "no chat template" in chat.toolTip()


def test_unsupported_strategy_is_disabled_with_reason(qtbot: QtBot, config_dir: Path) -> None:
    info = ModelInfo("storyteller", "storyteller", unsupported_strategies={"dola": "It has 2 layers; DoLa needs 4."})
    window = open_window(qtbot, config_dir, ScriptedEngine(info=info))
    window.parts.toolbar.model.select_data("storyteller")
    run(qtbot, window)
    combo = window.parts.toolbar.strategy
    row = combo.findData("dola")
    assert not combo.model().item(row).isEnabled()
    assert combo.itemData(row, SUBTITLE) == "It has 2 layers; DoLa needs 4."
    assert combo.model().item(combo.findData("greedy")).isEnabled()


def test_pickers_show_name_and_summary(qtbot: QtBot, window: MainWindow) -> None:
    combo = window.parts.toolbar.model
    assert combo.findText("storyteller") == combo.findData("storyteller")
    run(qtbot, window)
    assert combo.accessibleDescription().startswith("5.7 M · bundled · CPU")  # the glossary adds to it, once it is read
    window.parts.toolbar.strategy.select_data("sampling")
    find(window, QDoubleSpinBox, "param.temperature").setValue(0.8)
    assert window.parts.toolbar.strategy.accessibleDescription().startswith("temperature 0.8")


def test_model_folder_is_listed_selected_and_saved(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    window.parts.folders.use(str(folder))
    assert window.parts.centre.error_banner.isVisible()
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 2, "n_embd": 8}), encoding="utf-8")
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    window.parts.folders.use(str(folder))
    assert window.parts.chosen.model.name == str(folder)
    assert window.parts.settings.models.folders == [str(folder)]
    assert window.parts.toolbar.model.currentText() == "my-model"


def test_presets_are_saved_chosen_and_deleted(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.toolbar.strategy.select_data("sampling")
    window.parts.setup.parameters.set_values({"temperature": 0.55})
    window.parts.presets.save_preset_as("Mine")
    assert (
        json.loads((window.parts.store.presets_folder / "Mine.json").read_text(encoding="utf-8"))["temperature"] == 0.55
    )
    window.parts.toolbar.strategy.select_data("greedy")
    find(window, QPushButton, "preset.Mine").click()
    assert (window.parts.chosen.strategy.name, window.parts.setup.parameters.changed_values()) == (
        "sampling",
        {"temperature": 0.55},
    )
    window.parts.presets.delete_preset(window.parts.store.presets_folder / "Mine.json")
    qtbot.waitUntil(lambda: not window.findChildren(QPushButton, "preset.Mine"), timeout=WAIT_MS)


def test_preset_reports_extra_settings(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps({"do_sample": True, "temperature": 0.6, "pad_token_id": 0}), encoding="utf-8")
    window.parts.presets.use_preset(path)
    assert "pad_token_id" in window.parts.centre.notice_banner.cause.text()
    assert window.parts.settings_controller.as_preset("x").extra == {"pad_token_id": 0}
    path.write_text("{", encoding="utf-8")
    window.parts.presets.use_preset(path)
    assert window.parts.centre.error_banner.isVisible()


def test_settings_dialog_applies_changes_immediately(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.settings.models.allow_pickle.append("some/model")
    window.parts.dialogs.open_settings()
    dialog = find(window, SettingsDialog, "settingsDialog")
    find(dialog, QWidget, "themeChoice").setCurrentIndex(2)
    assert window.parts.appearance.theme.name == "dark"
    find(dialog, QSpinBox, "scaleChoice").setValue(130)
    assert window.parts.appearance.theme.scale == 1.3
    find(dialog, QSpinBox, "topChoice").setValue(0)
    assert window.parts.requests.request().top_n == 0
    find(dialog, QSpinBox, "threadsChoice").setValue(1)
    assert window.parts.loading.request().threads == 1
    dialog.permissions.allowed.setCurrentRow(0)
    find(dialog, QPushButton, "revokeButton").click()
    assert window.parts.settings.models.allow_pickle == []
    assert json.loads(window.parts.store.path.read_text(encoding="utf-8"))["compute"]["top_n"] == 0
    dialog.close()


@pytest.mark.parametrize(
    ("action", "name", "words"),
    [("open_shortcuts", "shortcutsDialog", "Keyboard"), ("open_used_settings", "usedSettingsDialog", "Settings used")],
)
def test_list_dialogs_show_entries(qtbot: QtBot, window: MainWindow, action: str, name: str, words: str) -> None:
    run(qtbot, window)
    window.parts.actions.do(action)
    dialog = find(window, QDialog, name)
    assert words in dialog.windowTitle()
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert any(text in texts for text in ("Ctrl+Enter", "max_new_tokens"))
    dialog.close()


def test_every_shortcut_has_action(window: MainWindow) -> None:
    from decodescope.app.panels.commands import SHORTCUTS

    table = window.parts.actions.table
    assert {shortcut.action for shortcut in SHORTCUTS if shortcut.action} <= set(table)
    assert set(window.parts.menu_bar.commands) == set(table)
    assert all(callable(do) for do in table.values())


def test_menu_actions_change_window_state(window: MainWindow) -> None:
    bar = window.parts.menu_bar
    themes = {action.data(): action for action in bar.menus["Theme"].actions()}
    themes["dark"].trigger()
    assert window.parts.settings.appearance.theme == "dark"
    bar.commands["toggle_timeline"].trigger()
    assert not window.parts.timeline.isVisible()
    bar.refresh()
    assert themes["dark"].isChecked()
    assert not bar.commands["toggle_timeline"].isChecked()
    assert not window.parts.status.timeline_toggle.isChecked()


def test_prompt_grows_within_bounds(window: MainWindow) -> None:
    editor = find(window, QPlainTextEdit, "promptEdit")
    lowest = editor.height()
    editor.setPlainText("\n".join("word" for _ in range(8)))
    middle = editor.height()
    editor.setPlainText("\n".join("word" for _ in range(80)))
    assert lowest < middle < editor.height() < 320


def test_views_can_be_split(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.centre.set_split(True)
    assert len(window.parts.centre.columns) == 2
    run(qtbot, window)
    first, second = (column.views[0] for column in window.parts.centre.columns)
    assert first.objectName() == "tokenView"
    assert second.objectName() == "tokenView2"
    window.parts.centre.set_split(False)
    assert len(window.parts.centre.columns) == 1


def test_tools_without_room_move_to_second_line(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    column = window.parts.centre.columns[0]
    window.parts.centre.show_view("tokens")
    column.resize(1400, 600)
    one = column.header.height()
    monkeypatch.setattr(column.header.tool_container, "sizeHint", lambda: QSize(column.width(), 20))
    column.fit_header()
    assert column.header.height() == 2 * one
    monkeypatch.setattr(column.header.tool_container, "sizeHint", lambda: QSize(40, 20))
    column.fit_header()
    assert column.header.height() == one


def test_draft_picker_is_shown_only_for_assisted_strategies(window: MainWindow) -> None:
    window.parts.toolbar.strategy.select_data("greedy")
    assert not window.parts.toolbar.draft.isVisible()
    assert window.parts.requests.request().draft_names == ()
    window.parts.toolbar.strategy.select_data("assisted")
    assert window.parts.toolbar.draft.isVisible()
    combo = window.parts.toolbar.draft
    if combo.currentIndex() < 0:
        assert any("draft" in problem for problem in window.parts.requests.problems)
    else:
        assert window.parts.requests.request().draft_names == (combo.currentData(),)


def test_incompatible_drafts_have_reason(tmp_path: Path) -> None:
    from decodescope.app.control.model_list import ModelList

    models = ModelList()
    target = model_folder(tmp_path / "target", 8, "a")
    names = [
        target, model_folder(tmp_path / "small", 2), model_folder(tmp_path / "large", 9),
        model_folder(tmp_path / "other", 2, "b"), model_folder(tmp_path / "t5", 2, is_encoder_decoder=True),
        model_folder(tmp_path / "state", 2, model_type="falcon_mamba"), model_folder(tmp_path / "smallest", 1),
    ]  # fmt: skip
    for name in names:
        models.add_folder(name)
    drafts = models.drafts_for(target)
    reasons = {item.title: item.reason for item in drafts}
    assert reasons["small"] == reasons["other"] == ""
    assert "smaller" in reasons["large"]
    assert "state" in reasons["state"]
    assert list(reasons)[:3] == ["smallest", "small", "other"]
    assert ["different tokenizer" in item.subtitle for item in drafts[:3]] == [False, False, True]
    assert "encoder–decoder" in reasons["t5"]
    assert "target" not in reasons


def test_paragraph_alignment_follows_script_direction(qtbot: QtBot) -> None:
    editor = PromptEdit()
    qtbot.addWidget(editor)
    editor.resize(300, 200)
    editor.setPlainText("Once upon a time\nكان يا ما كان في قديم الزمان وسالف العصر والأوان\nהיה היה פעם, once")
    with qtbot.waitExposed(editor):
        editor.show()
    margin, width = editor.document().documentMargin(), editor.viewport().width()
    for number, is_right in enumerate((False, True, True)):
        layout = editor.document().findBlockByNumber(number).layout()
        for line in (layout.lineAt(n) for n in range(layout.lineCount())):
            left, right = line.naturalTextRect().left(), line.naturalTextRect().right()
            assert (abs(width - margin - right) < 2) == is_right
            assert (abs(left - margin) < 2) != is_right
    end = QTextCursor(editor.document())
    end.movePosition(QTextCursor.MoveOperation.End)
    end.insertText("\nשלום")
    editor.setTextCursor(end)
    qtbot.waitUntil(lambda: width - 60 < editor.cursorRect().left() < width - 5)
    editor.resize(200, 200)
    qtbot.waitUntil(lambda: editor.cursorRect().left() < editor.viewport().width())
    assert editor.cursorRect().left() > editor.viewport().width() - 60
