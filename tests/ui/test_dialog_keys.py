"""Dialogs by keyboard: Tab reaches every control in reading order, with a visible focus, and returns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.tab_order import LINE_TOLERANCE
from tests.ui.dialogs import DIALOGS, dialog_of
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import name_of
from tests.ui.test_tab_order import without_visible_focus
from tests.ui.windows import open_window, run


def steps(dialog: QWidget) -> Iterator[QWidget]:
    """Yield the widgets that Tab reaches, once around. Fail if it leaves the dialog or turns back."""
    seen: list[QWidget] = []
    while (here := QApplication.focusWidget()) not in seen:
        assert here is not None
        assert dialog.isAncestorOf(here), f"Tab left the dialog for {here.objectName() or here}"
        seen.append(here)
        yield here
        QTest.keyClick(here, Qt.Key.Key_Tab)
    assert here is seen[0], f"Tab came back to {here.objectName() or here}, not to where it began"


def focusable_widgets(dialog: QWidget) -> set[QWidget]:
    """Return the widgets that Tab can reach; a page of controls is scrolled by them."""
    policy = Qt.FocusPolicy.TabFocus
    taking = {
        part
        for part in dialog.findChildren(QWidget)
        if part.focusPolicy() & policy == policy and part.isVisible() and part.isEnabled() and part.focusProxy() is None
    }
    return {part for part in taking if not isinstance(part, QScrollArea) or not any(map(part.isAncestorOf, taking))}


def place(part: QWidget) -> tuple[int, int]:
    """Its middle, as if nothing had to scroll; what stands below a page that scrolls stands below all of it."""
    middle = part.mapTo(part.window(), part.rect().center())
    pages = [page for page in part.window().findChildren(QScrollArea) if page.isVisible()]
    inner = next((page for page in pages if page.isAncestorOf(part)), None)
    scrolled = inner.verticalScrollBar().value() if inner is not None else 0
    below = inner is None and any(
        page.mapTo(page.window(), page.rect().bottomLeft()).y() < middle.y() for page in pages
    )
    return middle.y() + scrolled + 10_000 * below, middle.x()


def test_tab_order_of_dialogs_follows_reading_order(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    run(qtbot, window)
    for kind in DIALOGS:
        with dialog_of(qtbot, window, kind) as dialog:
            check(dialog)


def check(dialog: QDialog) -> None:
    there = list(steps(dialog))
    assert focusable_widgets(dialog) - set(there) == set()
    first = there.index(min(there, key=place))
    for one, other in pairwise(there[first:] + there[:first]):
        (y1, x1), (y2, x2) = place(one), place(other)
        next_column = isinstance(other, QScrollArea) and x2 > x1
        assert y2 > y1 + LINE_TOLERANCE or (abs(y2 - y1) <= LINE_TOLERANCE and x2 > x1) or next_column, (
            f"{name_of(other)} comes behind {name_of(one)}"
        )
    assert without_visible_focus(dialog, steps(dialog)) == []
