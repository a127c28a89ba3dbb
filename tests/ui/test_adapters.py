"""Adapters in the window: added, weighted, switched off, removed, recorded, dropped, named where they do not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QUrl
from pytestqt.qtbot import QtBot
from transformers.utils import logging as hf_logging

from decodescope.app import build_window
from decodescope.app.panels.adapter_panel import AdapterPanel
from decodescope.app.start.cli.parser import parse
from decodescope.app.start.launch import LaunchProblem, apply_options
from decodescope.app.state.conversation import CONTINUE
from decodescope.app.state.request_json import RequestFormatError, request_from_json, request_to_json
from decodescope.app.state.setting_changes import list_changes
from decodescope.app.storage import chat_formats
from decodescope.app.storage.drop_offers import ADAPTER, offer_for_files
from decodescope.app.views.chat.turn_tools import TurnBar, made_with_rows
from decodescope.app.window.main_window import MainWindow
from decodescope.core import AdapterChoice
from tests.core.adapters import save_lora
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import finish, run


def adapter(folder: Path, **config: object) -> str:
    """Write files that look like an adapter."""
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8, **config}))
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    return str(folder)


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[MainWindow]:
    window = build_window(tmp_path / "settings", ScriptedEngine())
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitUntil(lambda: window.session.model is not None)
    yield window
    window.close()


@pytest.fixture
def panel(window: MainWindow) -> AdapterPanel:
    return window.parts.setup.adapters


def test_panel_appears_with_the_first_adapter_and_describes_it(
    qtbot: QtBot, window: MainWindow, panel: AdapterPanel, tmp_path: Path
) -> None:
    assert not panel.isVisible()
    window.parts.adapters.add(adapter(tmp_path / "pirate"))
    assert panel.isVisible()
    (row,) = panel.rows
    qtbot.waitUntil(lambda: row.remark.text().startswith("LoRA · rank 8"))
    assert row.name.text() == "pirate"
    row.remove_button.click()
    assert not panel.isVisible()
    assert window.parts.requests.current_request().adapters == ()


def test_adapter_rows_keep_values_when_others_change(
    qtbot: QtBot, window: MainWindow, panel: AdapterPanel, tmp_path: Path
) -> None:
    window.parts.adapters.add(adapter(tmp_path / "one"))
    (row,) = panel.rows
    qtbot.waitUntil(lambda: row.remark.text().startswith("LoRA"))
    other = adapter(tmp_path / "two")
    window.parts.adapters.add(other)
    window.parts.adapters.add(row.path, 0.5)
    assert [shown.name.text() for shown in panel.rows] == ["two", "one"]
    assert panel.rows[1] is row
    assert row.remark.text().startswith("LoRA")
    assert (row.strength.value(), row.slider.value()) == (0.5, 50)
    assert panel.rows[0].y() < row.y() or not panel.isVisible()
    panel.rows[0].remove_button.click()
    assert panel.rows == [row]
    assert window.parts.requests.current_request().adapters == (AdapterChoice(row.path, 0.5),)


def test_slider_and_field_set_the_strength_of_the_request(
    window: MainWindow, panel: AdapterPanel, tmp_path: Path
) -> None:
    path = adapter(tmp_path / "pirate")
    window.parts.adapters.add(path)
    (row,) = panel.rows
    row.slider.setValue(50)
    assert row.strength.value() == pytest.approx(0.5)
    row.strength.setValue(-1.25)
    assert row.slider.value() == 0
    assert row.strength.value() == pytest.approx(-1.25)
    before = window.parts.requests.current_request()
    assert before.adapters == (AdapterChoice(path, -1.25),)
    row.switch.click()
    now = window.parts.requests.current_request()
    assert now.adapters == ()
    assert not row.slider.isEnabled()
    assert ("Adapters", "pirate × -1.25 → none") in list_changes(before, now)


def test_incompatible_adapter_shows_reason(
    qtbot: QtBot, window: MainWindow, panel: AdapterPanel, tmp_path: Path
) -> None:
    window.parts.adapters.add(adapter(tmp_path / "wrong"))
    (row,) = panel.rows
    qtbot.waitUntil(lambda: "does not fit" in row.remark.text())
    assert row.remark.property("role") == "warning"
    window.parts.adapters.add(str(tmp_path))
    assert len(panel.rows) == 1
    assert window.parts.messages.error is not None


def test_adapters_are_saved_per_model(qtbot: QtBot, window: MainWindow, panel: AdapterPanel, tmp_path: Path) -> None:
    path = adapter(tmp_path / "pirate")
    window.parts.adapters.add(path, 0.75)
    first = window.parts.chosen.model.name
    other = next(entry.name for entry in window.parts.chosen.model.entries if entry.name != first)
    window.parts.chosen.model.choose(other)
    assert not panel.rows
    window.parts.chosen.model.choose(first)
    assert [tuple(one) for one in panel.entries] == [(path, 0.75, True)]
    window.close()
    again = build_window(tmp_path / "settings", ScriptedEngine())
    qtbot.addWidget(again)
    again.show()
    assert [tuple(one) for one in again.parts.setup.adapters.entries] == [(path, 0.75, True)]


def test_request_contains_adapters_and_restores_them(
    qtbot: QtBot, window: MainWindow, panel: AdapterPanel, tmp_path: Path
) -> None:
    one, other = adapter(tmp_path / "one"), adapter(tmp_path / "two")
    window.parts.adapters.add(one, 0.5)
    with qtbot.waitSignal(window.session.finished):
        window.parts.runs.run()
    request = window.session.run.request
    assert request.adapters == (AdapterChoice(one, 0.5),)
    assert request_from_json(json.loads(json.dumps(request_to_json(request)))).adapters == request.adapters
    panel.rows[0].remove_button.click()
    window.parts.adapters.add(other)
    window.parts.settings_controller.apply_request(request)
    assert {entry.path: (entry.strength, entry.is_on) for entry in panel.entries} == {
        one: (0.5, True), other: (1.0, False),
    }  # fmt: skip


@pytest.mark.parametrize("value", [5, ["a"] * 2, [["a", "b"]], [["a", 99]]])
def test_invalid_adapters_in_a_file_are_refused(value: object) -> None:
    with pytest.raises(RequestFormatError, match="adapters"):
        request_from_json({"prompt": "x", "adapters": value})


def test_dropped_adapter_is_added(window: MainWindow, panel: AdapterPanel, tmp_path: Path) -> None:
    path = adapter(tmp_path / "pirate")
    for given in (path, f"{path}/adapter_model.safetensors", f"{path}/adapter_config.json"):
        offer = offer_for_files([given])
        assert (offer.action, offer.values) == (ADAPTER, (path,))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path)])
    offered = window.parts.drops.offer(data) if hasattr(window.parts, "drops") else offer_for_files([path])
    assert offered is not None
    window.parts.dropping.handle_drop(offered)
    assert [row.path for row in panel.rows] == [path]
    refused = offer_for_files([adapter(tmp_path / "other", peft_type="IA3")])
    assert refused.action == ""
    assert "IA3" in refused.detail


def test_command_line_adds_adapters(window: MainWindow, panel: AdapterPanel, tmp_path: Path) -> None:
    one, other = adapter(tmp_path / "one"), adapter(tmp_path / "two")
    apply_options(window, parse(["--adapter", one, "--adapter", f"{other}=0.25"]))
    assert window.parts.requests.current_request().adapters == (AdapterChoice(one, 1.0), AdapterChoice(other, 0.25))
    with pytest.raises(SystemExit):
        parse(["--adapter", f"{other}=much"])
    with pytest.raises(LaunchProblem, match=r"adapter_config\.json"):
        apply_options(window, parse(["--adapter", str(tmp_path)]))


def say(qtbot: QtBot, window: MainWindow, text: str) -> None:
    window.parts.setup.prompt.set_prompt(text, is_chat=True)
    run(qtbot, window)


def test_adapters_are_switched_beside_the_chat_input_and_stay_with_their_answers(
    qtbot: QtBot, window: MainWindow, panel: AdapterPanel, tmp_path: Path
) -> None:
    chat, composer = window.parts.chat, window.parts.chat.composer
    window.parts.setup.prompt.set_prompt("", is_chat=True)
    assert composer.adapters.isHidden()
    one, other = adapter(tmp_path / "pirate"), adapter(tmp_path / "poet")
    window.parts.adapters.add(one, 0.5)
    window.parts.adapters.add(other)
    assert composer.adapters.text() == "2 adapters ⌄"
    say(qtbot, window, "Hello")
    composer.adapters.menu().aboutToShow.emit()
    assert [action.text() for action in composer.adapters.menu().actions()] == ["pirate", "poet"]
    composer.adapters.menu().actions()[1].trigger()
    assert (composer.adapters.text(), panel.entries[1].is_on) == ("pirate ⌄", False)
    say(qtbot, window, "And now?")
    composer._fill_adapters()
    composer.adapters.menu().actions()[0].trigger()
    assert composer.adapters.text() == "No adapter ⌄"
    say(qtbot, window, "Without?")
    answers = chat.conversation.turns[1::2]
    assert [turn.author for turn in answers] == [
        "storyteller + pirate × 0.5 + poet", "storyteller + pirate × 0.5", "storyteller"
    ]  # fmt: skip
    assert all(turn.is_author_new for turn in answers)
    assert ("Adapters", "pirate × 0.5") in made_with_rows(answers[1].made_with)
    assert "(storyteller + pirate × 0.5)" in chat_formats.chat_to_markdown(chat.conversation)
    exported = json.loads(json.dumps(chat_formats.chat_to_json(chat.conversation)))
    imported, problems = chat_formats.parse_chats(json.dumps(exported).encode())
    assert not problems
    assert [turn.author for turn in imported[0].turns[1::2]] == [turn.author for turn in answers]


def test_answer_is_regenerated_with_the_adapters_in_use_or_with_its_own(
    qtbot: QtBot, window: MainWindow, panel: AdapterPanel, tmp_path: Path
) -> None:
    chat, path = window.parts.chat, adapter(tmp_path / "pirate")
    window.parts.adapters.add(path, 0.5)
    say(qtbot, window, "Hello")
    window.parts.adapters.switch(path, False)
    (answer,) = chat.conversation.turns[1:]
    finish(qtbot, window, chat.regenerate)
    assert window.session.run.request.adapters == ()
    bar = window.findChild(TurnBar)
    chat.show_sibling(chat.conversation.turns[1], -1)
    bar.show_turn(answer, False)
    bar._fill_menu()
    with qtbot.waitSignal(window.session.finished, timeout=60_000):
        next(one for one in bar.more.menu().actions() if one.text() == "Regenerate with its settings").trigger()
    assert window.session.run.request.adapters == (AdapterChoice(path, 0.5),)
    assert panel.entries[0].is_on
    with qtbot.waitSignal(window.session.finished, timeout=60_000):
        chat.edit_turn(chat.conversation.turns[-1], "A new beginning", CONTINUE)
    assert window.session.run.request.adapters == (AdapterChoice(path, 0.5),)


def test_chat_after_an_adapter_was_switched_reads_the_conversation_again(qtbot: QtBot, tmp_path: Path) -> None:
    from decodescope import core

    hf_logging.disable_progress_bar()
    model = core.load("storyteller")
    assert isinstance(model, core.LoadedModel)
    save_lora(model, tmp_path / "lora", target_modules=["q_proj", "v_proj", "down_proj"])
    window = build_window(tmp_path / "settings")
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=60_000)
    window.parts.settings_controller.choose("storyteller", "greedy")
    window.parts.settings_controller.update_values({"max_new_tokens": 8})
    say(qtbot, window, "Tell me a story about a fox.")
    window.parts.adapters.add(str(tmp_path / "lora"))
    say(qtbot, window, "What happened next?")
    with_adapter = window.session.run
    messages = [dict(turn) for turn in with_adapter.request.prompt]
    alone = core.Request(messages, {"max_new_tokens": 8}, strategy="greedy", adapters=[tmp_path / "lora"])
    assert with_adapter.text == core.run(model, alone).texts[0]
    window.parts.adapters.switch(str(tmp_path / "lora"), False)
    say(qtbot, window, "And then?")
    messages = [dict(turn) for turn in window.session.run.request.prompt]
    plain = core.Request(messages, {"max_new_tokens": 8}, strategy="greedy")
    assert window.session.run.text == core.run(core.load("storyteller"), plain).texts[0]
    window.close()


def test_the_inspector_shows_what_the_adapter_changed(qtbot: QtBot, tmp_path: Path) -> None:
    from decodescope import core

    hf_logging.disable_progress_bar()  # its thread would outlast the test
    model = core.load("storyteller")
    assert isinstance(model, core.LoadedModel)
    save_lora(model, tmp_path / "lora", target_modules=["q_proj", "v_proj", "down_proj"])
    window = build_window(tmp_path / "settings")
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=60_000)
    window.parts.settings_controller.choose("storyteller", "greedy")
    window.parts.settings_controller.update_values({"max_new_tokens": 6})
    window.parts.setup.prompt.set_prompt("Once upon a time", False)
    run(qtbot, window)
    window.session.select_token(2)
    buttons = window.parts.inspector.page._internals.part.buttons
    assert not buttons["adapters"].isVisibleTo(window)
    plain = window.session.run.text
    window.parts.adapters.add(str(tmp_path / "lora"))
    run(qtbot, window)
    assert window.session.run.text != plain
    window.session.select_token(2)
    part = window.parts.inspector.page._internals.part
    assert part.buttons["adapters"].isVisibleTo(window)
    part.buttons["adapters"].click()
    qtbot.waitUntil(lambda: part.bars.isVisibleTo(window), timeout=60_000)
    assert "irst choice" in part.remark.text()
    chosen = [row for row in part.bars.rows if row.strong]
    assert len(chosen) == 1
    ids = [*(token.id for token in window.session.run.before), *(token.id for token in window.session.run.tokens[:3])]
    expected = core.adapter_effect(model, ids, len(ids) - 1, adapters=[tmp_path / "lora"])
    assert chosen[0].lengths == pytest.approx((expected.chosen.before, expected.chosen.after), rel=1e-3)
    model.adapters.remove(tmp_path / "lora")
    save_lora(model, tmp_path / "lora", 5, target_modules=["q_proj", "v_proj", "down_proj"])  # trained again
    window.parts.adapters.add(str(tmp_path / "lora"))
    run(qtbot, window)
    again = core.Request("Once upon a time", {"max_new_tokens": 6}, adapters=[tmp_path / "lora"])
    assert window.session.run.text == core.run(model, again).texts[0]
    window.parts.setup.adapters.rows[0].strength.setValue(0)
    run(qtbot, window)
    assert window.session.run.text == plain
    window.close()
