"""Dragging over the window shows what a drop will do, or why it does nothing; the drop does so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent, QImage
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from decodescope import resources
from decodescope.app.views.chat.view import ChatView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.models.model_saving import save_gguf
from tests.core import gguf_models
from tests.ui.windows import find, run

RANKINGS = "Use these rankings in the preference lab"
COPY, LEFT, NONE = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


def files(*paths: Path | str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def address(url: str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl(url)])
    data.setText(url)
    return data


def text(words: str) -> QMimeData:
    data = QMimeData()
    data.setText(words)
    return data


def drag(window: MainWindow, data: QMimeData) -> tuple[str, str, bool]:
    """Bring it over the window: title and reason of what is shown, and whether a drop is taken."""
    place = QPoint(400, 300)
    for event in (QDragEnterEvent(place, COPY, data, LEFT, NONE), QDragMoveEvent(place, COPY, data, LEFT, NONE)):
        QApplication.sendEvent(window, event)
        assert event.isAccepted()
    overlay = window.findChild(QWidget, "dropOverlay")
    assert overlay.isVisible()
    assert overlay.geometry() == window.body.rect()
    assert not window.body.grab().toImage().isNull()
    return overlay.title, overlay.detail, overlay.is_accepted


def drop(window: MainWindow, data: QMimeData) -> None:
    drag(window, data)
    QApplication.sendEvent(window, QDropEvent(QPointF(400, 300), COPY, data, LEFT, NONE))
    assert not window.findChild(QWidget, "dropOverlay").isVisible()


def test_overlay_hides_when_drag_leaves(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "a.decodescope"
    path.write_bytes(b"PK")
    title, detail, is_taken = drag(window, files(path))
    assert (title, detail, is_taken) == ("Open this recording", "a.decodescope", True)
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert not window.findChild(QWidget, "dropOverlay").isVisible()
    assert drag(window, files(tmp_path))[2] is False


def test_a_recording_is_opened(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    run(qtbot, window)
    path = tmp_path / "a.decodescope"
    window.parts.recorded_runs.save(str(path))
    shown = window.session.run
    drop(window, files(path))
    assert window.session.run is not shown


def test_dropped_study_opens_in_its_window(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[prompts]\ntexts = ["Once"]\n', "utf-8")
    assert drag(window, files(path)) == ("Open this study", "mine.toml", True)
    drop(window, files(path))
    assert window.parts.services.studies.jobs().path == path
    path.write_text("[tool]\nname = 1\n", "utf-8")
    assert drag(window, files(path))[2] is False


def test_dropped_model_folder_is_selected(window: MainWindow, tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    shutil.copytree(resources.path("models", "storyteller-draft"), folder)
    title, detail, is_taken = drag(window, files(folder))
    assert (title, detail, is_taken) == ("Open this model", "my-model", True)
    drop(window, files(folder))
    assert window.parts.chosen.model.name == str(folder)


def test_dropped_weights_file_opens_its_model_folder(window: MainWindow, tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    shutil.copytree(resources.path("models", "storyteller-draft"), folder)
    weights = next(folder.glob("*.safetensors"))
    assert drag(window, files(weights))[0] == "Open the model in this folder"
    alone = tmp_path / "alone.safetensors"
    shutil.copy(weights, alone)
    title, reason, is_taken = drag(window, files(alone))
    assert not is_taken
    assert title == "The weights alone are not enough"
    assert "config.json" in reason


@pytest.mark.parametrize(
    ("name", "title", "words"),
    [
        ("model.gguf", "This file cannot be opened", "download it again"),
        ("table.csv", "CSV files cannot be opened", ".jsonl"),
        ("paper.pdf", "Files of this kind cannot be opened", "model folder"),
        ("program.exe", "Files of this kind cannot be opened", "recording"),
    ],
)
def test_unsupported_file_shows_reason_while_dragging_and_after_drop(
    window: MainWindow, tmp_path: Path, name: str, title: str, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"GGUF\x03")
    shown, reason, is_taken = drag(window, files(path))
    assert (shown, is_taken) == (title, False)
    assert words in reason
    drop(window, files(path))
    banner = window.parts.centre.notice_banner
    assert banner.isVisible()
    assert banner.last_title == title


def test_folder_without_model_and_multiple_files_are_rejected(window: MainWindow, tmp_path: Path) -> None:
    assert drag(window, files(tmp_path))[0] == "This folder contains no model"
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    assert drag(window, files(tmp_path))[0] == "This folder contains 2 models"
    assert drag(window, files(tmp_path / "a.decodescope", tmp_path / "b.json"))[0] == "Only one file at a time"


def test_gguf_file_or_its_folder_opens_model(window: MainWindow, tmp_path: Path) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    (tmp_path / "mmproj-tiny.gguf").touch()
    for given in (path, tmp_path):
        assert drag(window, files(given)) == ("Open this model", "tiny.gguf", True)
    drop(window, files(path))
    picker = window.parts.toolbar.model
    assert (picker.currentData(), picker.currentText()) == (str(path), "tiny")


def test_settings_are_applied(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps({"do_sample": True, "temperature": 0.37}), encoding="utf-8")
    assert drag(window, files(path))[0] == "Use these settings"
    drop(window, files(path))
    assert window.parts.setup.parameters.rows["temperature"].editor.value() == pytest.approx(0.37)


@pytest.mark.parametrize(
    ("line", "title", "task"),
    [
        ({"prompt": "a", "chosen": "b", "rejected": "c"}, RANKINGS, "reward"),
        ({"prompt": "a", "completions": ["b", "c"], "ranks": [1, 2]}, RANKINGS, "reward"),
        ({"messages": [{"role": "user", "content": "a"}]}, "Use these chats in the preference lab", "sft"),
    ],
)  # fmt: skip
def test_dropped_rankings_and_chats_open_preference_lab(
    window: MainWindow, tmp_path: Path, line: dict[str, object], title: str, task: str
) -> None:
    path = tmp_path / ("data.jsonl" if task == "sft" else "data.json")
    path.write_text(json.dumps(line) + "\n" + json.dumps(line), encoding="utf-8")
    assert drag(window, files(path))[0] == title
    drop(window, files(path))
    lab = window.parts.labs.open_preference()
    page = lab.view.page_of[task]
    assert lab.view.pages.currentWidget().isAncestorOf(page)
    assert page.data.value == str(path)
    lab.close()


@pytest.mark.parametrize(
    ("ending", "chat"),
    [
        ("json", {"messages": [{"role": "user", "content": "Who?"}]}),
        ("jsonl", {"conversations": [{"from": "human", "value": "Who?"}]}),
    ],
)  # fmt: skip
def test_dropped_chat_is_opened(window: MainWindow, tmp_path: Path, ending: str, chat: dict[str, object]) -> None:
    path = tmp_path / f"chat.{ending}"
    path.write_text(json.dumps(chat), encoding="utf-8")
    assert drag(window, files(path))[0] == "Open these chats"
    drop(window, files(path))
    assert [turn.content for turn in find(window, ChatView, "chatView").conversation.turns] == ["Who?"]


def test_unrelated_jsonl_file_is_rejected(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "a"}\n', encoding="utf-8")
    assert drag(window, files(path))[0] == "This file contains neither rankings nor chats"


def test_text_becomes_the_prompt(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text("Es war einmal ein Bär\n", encoding="utf-8")
    drop(window, files(path))
    assert window.parts.setup.prompt.editor.toPlainText() == "Es war einmal ein Bär\n"
    drop(window, text("An owl"))
    assert window.parts.setup.prompt.editor.toPlainText() == "An owl"
    path.write_bytes(b"\xff\xfe\x00")
    drop(window, files(path))
    assert window.parts.setup.prompt.editor.toPlainText() == "An owl"
    assert window.parts.centre.notice_banner.last_title == "The file cannot be read as text"


def test_a_long_text_is_refused(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"a" * (2**20 + 1))
    title, reason, is_taken = drag(window, files(path))
    assert (title, is_taken) == ("The text is too long for a prompt", False)
    assert "1024 kB" in reason


def test_dropped_picture_is_added_with_hint_for_text_model(window: MainWindow) -> None:
    picture = resources.path("media", "red-or-orange.png")
    title, detail, is_taken = drag(window, files(picture))
    assert (title, is_taken) == ("Add to the prompt", True)
    assert "selected model cannot read" in detail
    drop(window, files(picture))
    assert window.parts.settings.choices.media == [str(picture)]
    data = QMimeData()
    data.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    assert drag(window, data)[0] == "Add this image to the prompt"


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("https://huggingface.co/Qwen/Qwen3-0.6B", "Find this model on the Hub"),
        ("https://huggingface.co/Qwen/Qwen3-0.6B/tree/main", "Find this model on the Hub"),
        ("http://localhost:8080/v1", "Connect to this engine"),
        ("https://huggingface.co/datasets/someone/data", "This page of the Hub is not a model’s"),
    ],
)
def test_dragged_address_offers_hub_or_engine(window: MainWindow, url: str, title: str) -> None:
    assert drag(window, address(url))[0] == title


def test_dropped_engine_address_is_filled_in(window: MainWindow) -> None:
    drop(window, address("http://localhost:8080/v1"))
    field = window.findChild(QWidget, "engineAddress")
    assert field.text() == "http://localhost:8080/v1"
    field.window().close()


def test_internal_drag_of_row_shows_no_overlay(window: MainWindow) -> None:
    data = QMimeData()
    data.setData("application/x-qabstractitemmodeldatalist", b"1")
    event = QDragEnterEvent(QPoint(400, 300), COPY, data, LEFT, NONE)
    event.ignore()
    QApplication.sendEvent(window, event)
    assert event.type() == QEvent.Type.DragEnter
    assert not event.isAccepted()
    assert window.findChild(QWidget, "dropOverlay") is None
