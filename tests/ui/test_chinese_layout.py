"""Nothing is cut and nothing overlaps in Chinese: the views with a run of their own, and what the inspector says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.theme.language import set_language
from decodescope.app.views.base import View
from decodescope.app.views.compare.view import CompareView
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from decodescope.resources.language import ENGLISH
from tests.ui.beams import beam_run, beam_steps
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.scripted import story
from tests.ui.test_compare_view import CompareViewSession, fill, finished
from tests.ui.test_sample_tree_view import samples_run
from tests.ui.test_speculation_view import a_run
from tests.ui.windows import run

SIZES = [((900, 600), 1.5), ((1280, 800), 2.0)]


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, qapp: QApplication) -> Iterator[MainWindow]:
    window = build_window(config_dir, ScriptedEngine(), language="zh_CN")
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    yield window
    set_language(ENGLISH)


def check(window: MainWindow, what: str) -> None:
    settle(window)
    assert "\n".join(faults(window)) == "", what


def view_of(window: MainWindow, name: str) -> View:
    window.parts.centre.show_view(name)
    return window.parts.centre.columns[0].current_view


@pytest.mark.every(2)
@pytest.mark.parametrize(("size", "scale"), SIZES, ids=["small", "large type"])
def test_chinese_views_are_not_clipped(qtbot: QtBot, window: MainWindow, size: tuple[int, int], scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.resize(*size)
    for number in range(window.parts.centre.columns[0].tabs.count()):
        window.parts.centre.show_number(number)
        check(window, f"{window.parts.centre.columns[0].current_name}, empty")
    assert window.parts.centre.columns[0].current_title in ("分支", "比较")
    run(qtbot, window)
    window.session.select_token(2)
    for number in range(window.parts.centre.columns[0].tabs.count()):
        window.parts.centre.show_number(number)
        check(window, window.parts.centre.columns[0].current_name)
    check_trees(window)
    check_rounds(window)
    check_comparisons(window)


def check_trees(window: MainWindow) -> None:
    """A search with groups, then several samples, and what the inspector says of their nodes."""
    view = view_of(window, "tree")
    assert isinstance(view, TreeView)
    for found in (beam_run(beam_steps(6, beams=4, groups=2)), samples_run()):
        view.show_run(found)
        with QSignalBlocker(view.signals):  # the session does not have this run
            view.canvas.selection.pick(2)
        window.parts.inspector.show_report(view.report)
        check(window, "tree")
        assert view.report is not None


def check_rounds(window: MainWindow) -> None:
    view = view_of(window, "speculation")
    view.show_run(a_run())
    window.parts.inspector.show_report(view.report)
    check(window, "speculation")


def check_comparisons(window: MainWindow) -> None:
    """Each kind as it is set up, and one with its results."""
    view = view_of(window, "compare")
    assert isinstance(view, CompareView)
    bench = CompareViewSession(view)
    for kind in ("seeds", "models", "sweep", "runs", "caches"):
        view.kind.button(kind).click()
        check(window, f"compare {kind}")
    bench.choose("dynamic", "static")
    view.button.click()
    fill(bench, story(10), story(8))
    check(window, "a comparison")
    view.show_run(finished(RunRequest("Once", strategy="greedy", load=LoadRequest("storyteller")), story(10)))
    check(window, "the way back")
