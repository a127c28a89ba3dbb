"""Open the program's windows as a user does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from PySide6.QtWidgets import QApplication, QDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from decodescope import app
from decodescope.app.window.main_window import MainWindow

DIALOGS = (
    "settings",
    "export",
    "keys",
    "used",
    "code",
    "download",
    "engine",
    "documentation",
    "likelihood",
)
"""The windows that the tests of all dialogs open in the default suite; the other ones of WINDOWS are slow."""


class WindowCase(NamedTuple):
    """A window of the program: the name of its class, and how a user opens it."""

    shows: str
    open: Callable[[MainWindow], object]


def _command(name: str) -> Callable[[MainWindow], object]:
    return lambda window: window.parts.actions.do(name)


def _page(name: str, page: str) -> Callable[[MainWindow], object]:
    """A page of a window with a switch of pages."""

    def opened(window: MainWindow) -> None:
        window.parts.actions.do(name)
        next(
            dialog for dialog in window.findChildren(QDialog) if dialog.isVisible() and hasattr(dialog, "show_page")
        ).show_page(page)

    return opened


def _chat_rename(window: MainWindow) -> object:
    from decodescope.app.state.conversation import ChatSummary
    from decodescope.app.views.chat.chat_list import ChatList

    window.parts.centre.create_all_views()
    return window.findChild(ChatList)._rename(ChatSummary("1", "A story about a fox", 0, 0, ""))


def _demo_progress(window: MainWindow) -> object:
    from PySide6.QtCore import QSize

    from decodescope.app.features.presentation.panel.demo_dialog import DemoOptions

    folder = window.parts.store.folder
    return window.parts.demos.recorder.record(DemoOptions("gif", 4.0, QSize(320, 200), ""), str(folder / "film.gif"))


def _confirmation(window: MainWindow) -> object:
    from decodescope.app.widgets.confirmation import ask

    return ask(window, "question", "Delete the runs?", "All runs of the history will be deleted.",
               "They cannot be restored.", "Delete", lambda: None)  # fmt: skip


def _save_error(window: MainWindow) -> object:
    from decodescope.app.widgets.file_dialogs import show_save_error

    return show_save_error(window, "/home/mia/stories/fox.json", OSError(28, "No space left on device"))


def _presenter(window: MainWindow) -> object:
    window.parts.presentation.toggle()
    return window.parts.presentation.open_page()


def _recorder(window: MainWindow) -> object:
    from decodescope.app.features.media.panel.recorder import RecorderDialog

    dialog = RecorderDialog(300, window)
    dialog.finished.connect(dialog.deleteLater)
    return dialog.open()


def _lens(window: MainWindow) -> object:
    window.session.select_token(3)
    return window.findChild(QPushButton, "lensPageButton").click()


def _server_on(window: MainWindow) -> object:
    dialog = window.parts.serving.open()
    dialog.show_on("storyteller", 8017, "http://127.0.0.1:8017/v1", "sk-1zLGQq1-0XecYgX3BECBndKiZb38is1T")
    dialog.show_calls(["19:20:11  chat/completions, 41 tokens", "19:20:14  completions, 12 tokens, stopped"])
    return dialog


def _fields(window: MainWindow) -> object:
    from decodescope.app.panels.grammar_editor import GrammarEditor

    window.parts.setup.create_all_rows()
    return window.findChild(GrammarEditor).open_form()


WINDOWS: dict[str, WindowCase] = {
    "settings": WindowCase("SettingsDialog", _command("open_settings")),
    "export": WindowCase("ExportDialog", _command("save_picture")),
    "keys": WindowCase("TableDialog", _command("open_shortcuts")),
    "used": WindowCase("TableDialog", _command("open_used_settings")),
    "about": WindowCase("TableDialog", _command("about")),
    "code": WindowCase("CodeDialog", _command("copy_code")),
    "download": WindowCase("DownloadDialog", _command("get_model")),
    "engine": WindowCase("EngineDialog", _command("connect_engine")),
    "documentation": WindowCase("DocumentationDialog", _command("open_documentation")),
    "help": WindowCase("HelpDialog", _command("open_help")),
    "glossary": WindowCase("GlossaryDialog", _command("open_glossary")),
    "tours": WindowCase("TourChooser", _command("choose_tour")),
    "lessons": WindowCase("LessonPage", _command("open_lessons")),
    "demo": WindowCase("DemoDialog", _command("record_demo")),
    "plugins": WindowCase("PluginDialog", _command("open_plugins")),
    "server": WindowCase("ServerDialog", _command("serve_model")),
    "server on": WindowCase("ServerDialog", _server_on),
    "weights": WindowCase("WeightsDialog", lambda window: window.parts.chosen.model.weightsRequested.emit()),
    "lens": WindowCase("LensDialog", _lens),
    "fields": WindowCase("SchemaForm", _fields),
    "recorder": WindowCase("RecorderDialog", _recorder),
    "presenter": WindowCase("PresenterWindow", _presenter),
    "atlas": WindowCase("SameNoiseWindow", _command("open_atlas")),
    "effects": WindowCase("SameNoiseWindow", _command("open_setting_effects")),
    "twin": WindowCase("SameNoiseWindow", _command("open_twin")),
    "likelihood": WindowCase("LikelihoodDialog", _command("open_likelihood")),
    "posterior": WindowCase("LikelihoodDialog", _command("open_setting_posterior")),
    "claims": WindowCase("ClaimDialog", _command("open_claims")),
    "studies": WindowCase("StudyDialog", _command("open_studies")),
    "study results": WindowCase("StudyDialog", _page("open_studies", "cells")),
    "differences": WindowCase("DifferenceDialog", _command("explain_difference")),
    "near misses": WindowCase("DifferenceDialog", _page("explain_difference", "nearMisses")),
    "drafts": WindowCase("DifferenceDialog", _page("explain_difference", "drafts")),
    "preference": WindowCase("PreferenceLabDialog", _command("open_preference_lab")),
    "speed": WindowCase("SpeedLabDialog", _command("open_speed")),
    **{f"scale {page}": WindowCase("ScaleView", _page("open_scale", page))
       for page in ("memory", "pipeline", "ring", "residual", "run")},
    "preset name": WindowCase("QInputDialog", _command("save_preset")),
    "chat name": WindowCase("QInputDialog", _chat_rename),
    "demo progress": WindowCase("QProgressDialog", _demo_progress),
    "question": WindowCase("QMessageBox", _confirmation),
    "save error": WindowCase("QMessageBox", _save_error),
}  # fmt: skip
"""Every window of the program except the main window and the file dialogs; the pages of one window apart."""
QT_DIALOGS = ("QInputDialog", "QMessageBox", "QProgressDialog", "QColorDialog", "QFontDialog", "QErrorMessage",
              "QWizard")  # fmt: skip
"""Dialogs of Qt that the program might use; its file dialogs are made in one function."""


class WindowClass(NamedTuple):
    """A class of windows in the program's code, with the names of all classes that it inherits from."""

    name: str
    ancestors: frozenset[str]


def own_windows() -> list[WindowClass]:
    """Return the classes of windows that the program's code defines, without the base classes."""
    bases: dict[str, list[str]] = {}
    shown_as_window = set()
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [ast.unparse(base) for base in node.bases]
                if "Qt.WindowType.Window)" in ast.unparse(node):
                    shown_as_window.add(node.name)

    def ancestors(name: str) -> set[str]:
        return {one for base in bases.get(name, ()) for one in (base, *ancestors(base))}

    found = [WindowClass(name, frozenset(ancestors(name))) for name in bases]
    return [
        one
        for one in found
        if ("QDialog" in one.ancestors or one.name in shown_as_window) and one.name not in BASE_CLASSES
    ]


def window_classes() -> set[str]:
    """Return the names of the classes of windows that the program's code defines, and of those that it uses of Qt."""
    used = {
        node.func.id
        for tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in QT_DIALOGS
    }
    return {one.name for one in own_windows()} | used


BASE_CLASSES = ("BaseDialog", "CardDialog", "ScrolledDialog")


@cache
def _trees() -> list[ast.Module]:
    """Return the parsed modules of `app` that may have a window."""
    texts = (path.read_text("utf-8") for path in Path(app.__path__[0]).rglob("*.py"))
    words = ("Dialog", "Qt.WindowType.Window", *QT_DIALOGS)
    return [ast.parse(text) for text in texts if any(word in text for word in words)]


def _shown(window: MainWindow, kind: str) -> list[QWidget]:
    return [
        part
        for part in window.findChildren(QWidget)
        if part.isWindow() and part.isVisible() and type(part).__name__ == WINDOWS[kind].shows
    ]


@contextmanager
def dialog_of(qtbot: QtBot, window: MainWindow, kind: str) -> Iterator[QWidget]:
    """Show one of WINDOWS with keyboard focus over a window that has a run; close it afterwards."""
    WINDOWS[kind].open(window)
    qtbot.waitUntil(lambda: len(_shown(window, kind)) == 1)
    (dialog,) = _shown(window, kind)
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    qtbot.waitUntil(lambda: dialog.isAncestorOf(QApplication.focusWidget()))
    yield dialog
    if WINDOWS[kind].shows == "PresenterWindow":
        window.parts.presentation.leave()
        return
    dialog.close()
    qtbot.waitUntil(lambda: not isValid(dialog))
