"""Foreign text in every part of the window is shown as it is written, also where it looks like HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import huggingface_hub.constants
import pytest
from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QModelIndex
from PySide6.QtGui import QAction, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QApplication, QComboBox, QLabel, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.downloads.panel.download_dialog import DownloadDialog
from decodescope.app.state.worker_messages import ModelInfo, Outcome
from decodescope.app.views.shared.glossary_tooltip import LazyTooltip
from decodescope.app.widgets.file_dialogs import show_save_error
from decodescope.app.widgets.plain_text import from_plain_text
from decodescope.app.widgets.widget_pictures import save_picture
from decodescope.app.window.main_window import MainWindow
from decodescope.core import catalog
from decodescope.core.catalog import file_download
from decodescope.core.errors import ModelError
from tests import fake_hub
from tests.app.history_files import run_data
from tests.ui.beams import beam_run, beam_steps
from tests.ui.dialogs import DIALOGS, dialog_of
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import open_window, run, whole

PICTURE = '<img src="file:///dev/zero">'
HOSTILE = f"{PICTURE}R&D <b>bold</b> &lt;i&gt;"
ROLES = (
    Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.StatusTipRole, Qt.ItemDataRole.WhatsThisRole,
)  # fmt: skip


def faults(top: QWidget) -> list[str]:
    """Return the texts of a window that Qt would render as HTML, or whose `&` it would use as a mnemonic."""
    found = []
    for part in (top, *top.findChildren(QWidget)):
        where = f"{type(part).__name__} {part.objectName()}"
        tips = {"tooltip": part.toolTip(), "status tip": part.statusTip(), "help": part.whatsThis()}
        found += [f"{where}, {kind}: {text}" for kind, text in tips.items() if _is_read_as_html(text)]
        if isinstance(part, QLabel):
            found += _of_label(where, part)
        if isinstance(part, QAbstractButton) and _has_mnemonic(part.text()):
            found.append(f"{where}, mnemonic: {part.text()}")
        if isinstance(part, QTabBar):
            found += [f"{where}, tab" for n in range(part.count()) if _has_mnemonic(part.tabText(n))]
        if isinstance(part, QAbstractItemView | QComboBox) and part.model() is not None:
            found += [f"{where}, {text}" for text in _of_model(part.model())]
    for action in top.findChildren(QAction):
        if _has_mnemonic(action.text()) or _is_read_as_html(action.toolTip()):
            found.append(f"action: {action.text()}")
    for tip in top.findChildren(LazyTooltip):
        if PICTURE in tip.text():
            found.append(f"late tip: {tip.text()}")
    return found


def _is_read_as_html(text: str) -> bool:
    return Qt.mightBeRichText(text) and any(part in text for part in (PICTURE, "<b>bold</b>", "&lt;i&gt;R"))


def _has_mnemonic(text: str) -> bool:
    return "&D" in text.replace("&&", "")


def _of_label(where: str, label: QLabel) -> list[str]:
    text = label.text()
    match label.textFormat():
        case Qt.TextFormat.PlainText:
            return []
        case Qt.TextFormat.RichText:
            return [f"{where}, not escaped: {text}"] if PICTURE in text or "<b>bold</b>" in text else []
    return [f"{where}, guesses: {text}"] if Qt.mightBeRichText(text) else []


def _of_model(model: QAbstractItemModel) -> list[str]:
    found = []
    for row in range(model.rowCount()):
        for column in range(1 if isinstance(model, QAbstractListModel) else model.columnCount(QModelIndex())):
            index = model.index(row, column)
            for role in ROLES:
                text = index.data(role)
                if isinstance(text, str) and Qt.mightBeRichText(text):
                    found.append(text)
    return found


def check(top: QWidget) -> None:
    assert faults(top) == []


@pytest.fixture
def engine() -> ScriptedEngine:
    pieces = [PICTURE, " <b>bold</b>", " R&D", " &lt;i&gt;", HOSTILE, "\n<!doctype html>", "."]
    info = ModelInfo(
        "storyteller", HOSTILE, HOSTILE, HOSTILE, 2, HOSTILE, 5_700_000, 512, 2048, has_chat=True, engine=HOSTILE,
        unsupported_strategies={"beam_search": HOSTILE}, unsupported_caches={"quantized": HOSTILE},
        unsupported_settings={"max_new_tokens": HOSTILE, "repetition_penalty": HOSTILE},
    )  # fmt: skip
    return ScriptedEngine(tokens=pieces, info=info)


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> Iterator[MainWindow]:
    (config_dir / "presets").mkdir()
    name = HOSTILE.replace("/", "∕")
    (config_dir / "presets" / f"{name}.json").write_text('{"do_sample": true}', "utf-8")
    made = whole(open_window(qtbot, config_dir, engine))
    yield made
    made.close()


def test_check_finds_text_shown_as_html(qtbot: QtBot) -> None:
    top = QWidget()
    qtbot.addWidget(top)
    QLabel(HOSTILE, top)
    combo = QComboBox(top)
    combo.addItem("x")
    combo.setItemData(0, HOSTILE, Qt.ItemDataRole.ToolTipRole)
    QWidget(top).setToolTip(HOSTILE)
    top.addAction(HOSTILE)
    assert (
        len({fault.split()[0].strip(",") for fault in faults(top)} & {"QLabel", "QComboBox", "QWidget", "action:"}) == 4
    )


def test_prompt_tokens_and_model_are_shown_literally_in_every_view(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.set_prompt(HOSTILE)
    run(qtbot, window)
    check(window)
    for place in range(4):
        window.session.select_token(place)
        for number in range(window.parts.centre.columns[0].tabs.count()):
            window.parts.centre.show_number(number)
            menu = window.parts.centre.columns[0].current_view.selected_node_menu()
            if menu is not None:
                check(menu)
                menu.deleteLater()
            QApplication.processEvents()
            check(window)
    assert window.session.show(beam_run(beam_steps(6), ranked=True))
    window.parts.centre.show_view("tree")
    check(window)


def test_setting_help_and_presets_are_shown_literally(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)  # the model is loaded by now
    check(window)
    rows = window.parts.setup.parameters.rows
    assert any(HOSTILE in row.unavailable for row in rows.values())
    for row in rows.values():
        window.parts.setup.show_help(row)
        check(window)
    chips = [part.text() for part in window.parts.setup.presets.findChildren(QAbstractButton)]
    assert any("R&&D" in text for text in chips)


def test_errors_notices_and_questions_are_shown_literally(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    engine.error, engine.fail_at = ModelError(HOSTILE, HOSTILE), 1
    outcome: Outcome = run(qtbot, window)
    assert outcome.kind == "failed"
    window.parts.messages.show_notice(HOSTILE, HOSTILE, [("dismiss", HOSTILE)])
    window.parts.centre.error_banner.show_message(HOSTILE, HOSTILE, HOSTILE, HOSTILE, [("dismiss", HOSTILE)])
    check(window)
    show_save_error(window, HOSTILE, OSError(5, HOSTILE))
    check(window)
    for box in window.findChildren(QWidget, "qt_msgbox_label"):
        assert isinstance(box, QLabel)
        assert HOSTILE in from_plain_text(box.text())
        box.window().close()


def test_history_and_palette_are_shown_literally(qtbot: QtBot, window: MainWindow) -> None:
    store = window.history.store
    assert store is not None
    store.save(run_data(1, HOSTILE, HOSTILE, title=HOSTILE, tokens=7, speed=9.0))
    store.save(run_data(2, HOSTILE, HOSTILE, tokens=7, speed=9.0))
    window.parts.history_panel.toggle()
    check(window)
    window.parts.actions.do("open_palette")
    check(window)


def test_dialogs_show_foreign_text_literally(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.set_prompt(HOSTILE)
    run(qtbot, window)
    for kind in DIALOGS:
        with dialog_of(qtbot, window, kind) as dialog:
            check(dialog)
    for action in ("open_glossary", "choose_tour", "open_speed", "open_scale", "open_preference_lab", "save_preset"):
        window.parts.actions.do(action)
    check(window)
    for top in QApplication.topLevelWidgets():
        check(top)
    for top in QApplication.topLevelWidgets():
        if top is not window:
            top.close()


def test_chat_shows_foreign_text_literally(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.mode.button("chat").click()
    window.parts.setup.prompt.editor.setPlainText(HOSTILE)
    run(qtbot, window)
    window.parts.centre.show_view("chat")
    check(window)


def test_hub_models_are_shown_literally(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with fake_hub.running() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(file_download, "RETRY_DELAYS", (0.0,))
        config = json.dumps({"model_type": PICTURE, "architectures": ["LlamaForCausalLM"]})
        hub.put("someone/evil", {"config.json": config.encode(), "model.safetensors": b"123456789"})
        window.parts.actions.do("get_model")
        downloads = window.parts.services.downloads.created
        assert downloads is not None
        (dialog,) = window.findChildren(DownloadDialog)
        dialog.field.setText("evil")
        dialog.button.click()
        qtbot.waitUntil(lambda: not downloads.hub.is_searching)
        (model,) = catalog.search("evil")
        assert PICTURE in model.why_not
        assert dialog.list.count() == 1
        assert PICTURE in from_plain_text(dialog.list.item(0).toolTip())
        check(dialog)
        check(window)
        dialog.close()


def test_svg_with_hostile_description_is_valid(qtbot: QtBot, tmp_path: Path) -> None:
    widget = QLabel("\x1b[2J\x01")
    widget.setTextFormat(Qt.TextFormat.PlainText)
    qtbot.addWidget(widget)
    widget.setAccessibleName(f"{HOSTILE}</title>")
    widget.setAccessibleDescription("<script>\x01\x1b\ufffe")
    save_picture(widget, tmp_path / "x.svg")
    described = {part.tag.rpartition("}")[2]: part.text for part in ElementTree.parse(tmp_path / "x.svg").getroot()}
    assert described["title"] == f"{HOSTILE}</title>"
    assert (described["desc"] or "").startswith("<script>")
