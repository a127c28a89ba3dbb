"""Download of a model in the window, from a local fake hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.control.model_list import HUB
from decodescope.app.features.downloads.panel.download_dialog import ROW_ROLE, DownloadDialog
from decodescope.app.features.downloads.session import Downloads, DownloadStatuses
from decodescope.app.state.worker_messages import DownloadStatus
from decodescope.app.theme.theme import panel_stylesheet, theme_for
from decodescope.app.window.main_window import MainWindow
from decodescope.core import catalog
from decodescope.core.catalog import UnfinishedDownload, file_download
from decodescope.core.errors import TransferError
from decodescope.core.models.model_saving import save_gguf
from decodescope.resources import language
from tests import fake_hub
from tests.core import gguf_models, tiny
from tests.core.gguf_split import split
from tests.fake_hub import Hub
from tests.ui import layout
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, open_window

NAME, WEIGHTS = "someone/small-stories", "model.safetensors"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("uploaded")
    tiny.make("llama").model.save_pretrained(place)
    return place


@pytest.fixture
def hub(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with fake_hub.running() as running:
        running.put(NAME, folder)
        running.put("someone/other-stories", {**running.models[NAME].files}, downloads=3, gated=True)
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(file_download, "RETRY_DELAYS", (0.0,))
        yield running


GGUF_NAME = "someone/Tiny-Tales-GGUF"


@pytest.fixture
def gguf_hub(hub: Hub, tmp_path: Path) -> Hub:
    """The hub with a repository of GGUF files as well."""
    model, files = gguf_models.make("llama"), {"LICENSE": b"free"}
    for kind in ("Q8_0", "F16"):
        files[f"Tiny-Tales-{kind}.gguf"] = save_gguf(model, tmp_path / f"{kind}.gguf", kind).read_bytes()
    save_gguf(model, tmp_path / "F32.gguf", "F32")
    first = split(tmp_path / "F32.gguf", tmp_path)
    for file in (first, first.with_name("tiny-00002-of-00002.gguf")):
        files[f"F32/{file.name}"] = file.read_bytes()
    hub.put(GGUF_NAME, files, downloads=900)
    return hub


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> Iterator[MainWindow]:
    made = open_window(qtbot, config_dir, ScriptedEngine())
    yield made
    made.close()
    language.set_language(language.ENGLISH)


def opened(window: MainWindow) -> tuple[DownloadDialog, Downloads]:
    window.parts.actions.do("get_model")
    made = window.parts.services.downloads.created
    assert made is not None
    return find(window, DownloadDialog, "downloadDialog"), made


def searched(qtbot: QtBot, dialog: DownloadDialog, downloads: Downloads, text: str = "stories") -> None:
    """Search as a person does, until everything found is judged."""
    field = find(dialog, QLineEdit, "downloadSearch")
    field.setText(text)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not downloads.hub.is_searching, timeout=WAIT_MS)


def listed_notes(dialog: DownloadDialog) -> dict[str, str]:
    rows = [dialog.list.item(place).data(ROW_ROLE) for place in range(dialog.list.count())]
    return {row.name: row.status for row in rows}


def press(dialog: DownloadDialog, name: str) -> None:
    button = find(dialog, QPushButton, f"{name}Model")
    assert button.isVisible()
    button.click()


def wait_for_status(qtbot: QtBot, downloads: Downloads, status: str) -> None:
    qtbot.waitUntil(lambda: downloads.status(NAME).status == status, timeout=6 * WAIT_MS)  # torch may be read first


def test_model_is_found_paused_resumed_and_selected(qtbot: QtBot, hub: Hub, window: MainWindow) -> None:
    dialog, downloads = opened(window)
    assert not hub.asked, "the hub was asked before anything was searched for"
    searched(qtbot, dialog, downloads)
    assert listed_notes(dialog)[NAME].startswith("Fits: ")
    assert "gated" in listed_notes(dialog)["someone/other-stories"]
    assert WEIGHTS in dialog.page.files.text()
    assert not hub.sent("store")
    hub.held.clear()
    hub.models[NAME].cuts[WEIGHTS] = [30_000]
    press(dialog, "fetch")
    qtbot.waitUntil(lambda: downloads.status(NAME).progress is not None, timeout=WAIT_MS)
    press(dialog, "pause")
    hub.held.set()
    wait_for_status(qtbot, downloads, "paused")
    assert dialog.page.progress_label.text().startswith("Paused: ")
    dialog.close()
    press(opened(window)[0], "resume")
    with qtbot.waitSignal(downloads.arrived, timeout=WAIT_MS):
        pass
    dialog, _ = opened(window)
    press(dialog, "verify")
    qtbot.waitUntil(lambda: downloads.status(NAME).damaged == (), timeout=WAIT_MS)
    assert "every file matches the hub" in dialog.page.progress_label.text()
    press(dialog, "use")
    assert window.parts.chosen.model.name == NAME


def test_download_error_is_shown_in_dialog(qtbot: QtBot, hub: Hub, window: MainWindow) -> None:
    dialog, downloads = opened(window)
    searched(qtbot, dialog, downloads)
    hub.models[NAME].cuts[WEIGHTS] = [20_000, *[0] * 20]
    press(dialog, "fetch")
    wait_for_status(qtbot, downloads, "failed")
    banner = dialog.page.banner
    assert banner.isVisible()
    assert (banner.title.text(), bool(banner.cause.text()), bool(banner.remedy.text())) == (
        "The download was interrupted", True, True,
    )  # fmt: skip
    hub.models[NAME].cuts.clear()
    press(dialog, "resume")
    dialog.close()
    wait_for_status(qtbot, downloads, "whole")
    assert window.parts.centre.notice_banner.title.text() == f"{NAME} downloaded"
    dialog, _ = opened(window)
    press(dialog, "delete")
    press(dialog, "surely")
    with qtbot.waitSignal(downloads.deleted, timeout=WAIT_MS):
        pass
    assert window.parts.toolbar.model.findData(NAME) < 0
    assert catalog.hub_cached() == []


def test_search_without_network_shows_note_only(
    qtbot: QtBot, hub: Hub, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    dialog, downloads = opened(window)
    searched(qtbot, dialog, downloads)
    assert "cannot be reached" in dialog.note.text()
    assert dialog.note.property("role") == "danger"
    assert window.parts.messages.error is None


def test_download_continues_after_language_change(qtbot: QtBot, hub: Hub, window: MainWindow) -> None:
    dialog, downloads = opened(window)
    searched(qtbot, dialog, downloads)
    dialog.list.pick(NAME)
    hub.held.clear()
    press(dialog, "fetch")
    qtbot.waitUntil(lambda: downloads.status(NAME).progress is not None, timeout=WAIT_MS)
    window.parts.actions.do("speak_chinese")
    qtbot.waitUntil(lambda: language.current_language() == "zh_CN", timeout=WAIT_MS)
    anew = find(window, DownloadDialog, "downloadDialog")
    assert anew is not dialog
    assert anew.isVisible()
    assert anew.list.name == NAME
    assert find(anew, QPushButton, "pauseModel").isVisible()
    hub.held.set()
    wait_for_status(qtbot, downloads, "whole")
    assert window.parts.toolbar.model.findData(NAME) >= 0


def test_picker_opens_download_dialog_and_folder_dialog(window: MainWindow) -> None:
    picker = window.parts.toolbar.model
    before = picker.currentIndex()
    picker.commandChosen.emit(HUB)
    assert picker.currentIndex() == before
    dialog = find(window, DownloadDialog, "downloadDialog")
    find(dialog, QPushButton, "chooseFolder").click()
    assert len(window.findChildren(QFileDialog)) == 1
    window.findChildren(QFileDialog)[0].close()


def pick_file(dialog: DownloadDialog, row: int) -> None:
    """Choose a GGUF file as a person does."""
    combo = find(dialog, QComboBox, "ggufVariants")
    combo.setCurrentIndex(row)
    combo.activated.emit(row)


def test_gguf_variant_is_selected_and_downloaded(qtbot: QtBot, gguf_hub: Hub, window: MainWindow) -> None:
    dialog, downloads = opened(window)
    searched(qtbot, dialog, downloads, "tales-gguf")
    page, combo = dialog.page, find(dialog, QComboBox, "ggufVariants")
    assert combo.isVisible()
    lines = [combo.itemText(row) for row in range(combo.count())]
    assert [line.partition(" · ")[0] for line in lines] == ["Q8_0", "F16", "F32"]
    assert lines[0].startswith("Q8_0 · 8-bit · ")
    assert lines[0].endswith(" · fits")
    assert lines[2].endswith(" · 2 files · fits")
    assert combo.currentIndex() == 2
    assert "F32/tiny-00001-of-00002.gguf" in page.files.text()
    pick_file(dialog, 0)
    assert "Tiny-Tales-Q8_0.gguf" in page.files.text()
    assert "F32" not in page.files.text()
    assert "3 other files are not downloaded" in page.files.text()
    gguf_hub.held.clear()
    press(dialog, "fetch")
    key = f"{GGUF_NAME}:Tiny-Tales-Q8_0"
    qtbot.waitUntil(lambda: downloads.status(key).progress is not None, timeout=WAIT_MS)
    assert key in listed_notes(dialog)
    assert dialog.list.name == GGUF_NAME
    pick_file(dialog, 1)
    assert find(dialog, QPushButton, "fetchModel").isVisible(), "another file can be downloaded meanwhile"
    pick_file(dialog, 0)
    gguf_hub.held.set()
    qtbot.waitUntil(lambda: downloads.status(key).status == "whole", timeout=WAIT_MS)
    press(dialog, "verify")
    qtbot.waitUntil(lambda: downloads.status(key).damaged == (), timeout=WAIT_MS)
    press(dialog, "use")
    path = window.parts.chosen.model.name
    assert path.endswith("Tiny-Tales-Q8_0.gguf")
    picker = window.parts.toolbar.model
    item = picker.items[picker.currentIndex()]
    assert item.subtitle.endswith("· Hugging Face")
    assert item.columns[1] == "Q8_0"
    dialog, _ = opened(window)
    dialog.list.pick(key)
    press(dialog, "delete")
    press(dialog, "surely")
    with qtbot.waitSignal(downloads.deleted, timeout=WAIT_MS):
        pass
    assert picker.findData(path) < 0


def test_a_paused_gguf_file_is_resumed_by_the_next_window(qtbot: QtBot, gguf_hub: Hub, window: MainWindow) -> None:
    key = f"{GGUF_NAME}:Tiny-Tales-F16"
    gguf_hub.models[GGUF_NAME].cuts["Tiny-Tales-F16.gguf"] = [20_000, *[0] * 9]
    with pytest.raises(TransferError):
        catalog.download(key)
    gguf_hub.models[GGUF_NAME].cuts.clear()
    dialog, downloads = opened(window)
    qtbot.waitUntil(lambda: downloads.status(key).status == "paused", timeout=WAIT_MS)
    dialog.list.pick(key)
    assert not find(dialog, QComboBox, "ggufVariants").isVisible()
    press(dialog, "resume")
    qtbot.waitUntil(lambda: downloads.status(key).status == "whole", timeout=WAIT_MS)
    assert gguf_hub.sent("F16")[-1].startswith("bytes=")


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_dialog_with_gguf_files_is_not_clipped(qtbot: QtBot, gguf_hub: Hub, window: MainWindow, scale: float) -> None:
    dialog, downloads = opened(window)
    searched(qtbot, dialog, downloads, "gguf")
    theme = theme_for("dark", scale)
    dialog.setStyleSheet(theme.stylesheet() + panel_stylesheet(theme))
    dialog.set_theme(theme)
    layout.settle(dialog)
    assert not layout.faults(dialog)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_dialog_is_not_clipped(qtbot: QtBot, hub: Hub, window: MainWindow, scale: float) -> None:
    dialog, downloads = opened(window)
    searched(qtbot, dialog, downloads)
    theme = theme_for("dark", scale)
    dialog.setStyleSheet(theme.stylesheet() + panel_stylesheet(theme))
    dialog.set_theme(theme)
    for name in (NAME, "someone/other-stories"):
        dialog.list.pick(name)
        layout.settle(dialog)
        assert not layout.faults(dialog)
    QApplication.processEvents()


def test_outdated_disk_scan_does_not_change_finished_download(qtbot: QtBot) -> None:
    standings = DownloadStatuses(QObject(QApplication.instance()))
    begun = standings.revision
    standings.set_status(NAME, DownloadStatus("whole", 7, 7))
    standings.apply_scan(begun, [], (UnfinishedDownload(NAME, 3, 7), UnfinishedDownload("other/one", 1, 7)))
    assert standings.get(NAME) == DownloadStatus("whole", 7, 7)
    assert standings.get("other/one").status == "paused"
    standings.apply_scan(standings.revision, [], (UnfinishedDownload(NAME, 3, 7),))
    assert standings.get(NAME).status == "paused", "what is read later counts"
    standings.parent().deleteLater()
