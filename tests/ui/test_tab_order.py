"""Tab order follows the panels, and the focus is visible at every stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.theme.theme import MIN_MARK_CONTRAST, contrast
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import activate, open_window, run, whole


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = activate(qtbot, whole(open_window(qtbot, config_dir)))
    run(qtbot, window)
    return window


def steps(window: MainWindow, key: Qt.Key = Qt.Key.Key_Tab) -> Iterator[QWidget]:
    """Yield the widgets that Tab reaches from the model picker, once around."""
    seen = [window.parts.toolbar.model]
    seen[0].setFocus(Qt.FocusReason.TabFocusReason)
    while True:
        yield seen[-1]
        QTest.keyClick(QApplication.focusWidget(), key)
        here = QApplication.focusWidget()
        if here is seen[0]:
            return
        assert here not in seen, f"Tab came back to {here.objectName() or here}"
        seen.append(here)


def walk(window: MainWindow, key: Qt.Key = Qt.Key.Key_Tab) -> list[QWidget]:
    """The same at once."""
    return list(steps(window, key))


def test_tab_order_follows_panels(window: MainWindow) -> None:
    parts, seen = window.parts, walk(window)
    toolbar = parts.toolbar
    first = [toolbar.model, toolbar.strategy, toolbar.cache, toolbar.run_button, toolbar.seed.spin]
    assert [seen.index(widget) for widget in first] == [0, 1, 2, 3, 4]
    panels = (toolbar, parts.setup, parts.centre, parts.inspector, parts.timeline, parts.status)
    order = [next(n for n, panel in enumerate(panels) if panel.isAncestorOf(widget)) for widget in seen]
    assert order == sorted(order)
    assert set(order) == set(range(6))
    editor = seen.index(parts.setup.prompt.editor)
    rows = [seen.index(row.editor) for row in parts.setup.parameters.rows.values() if row.editor in seen]
    assert all(editor < place for place in rows)
    assert rows == sorted(rows)


def test_shift_tab_reverses_tab_order(window: MainWindow) -> None:
    there, back = walk(window), walk(window, Qt.Key.Key_Backtab)
    assert back[1:] == there[:0:-1]


def test_parameters_of_other_strategy_keep_tab_order(window: MainWindow) -> None:
    window.parts.toolbar.strategy.select_data("sampling")
    QApplication.processEvents()
    test_tab_order_follows_panels(window)


def grab(window: QWidget, widget: QWidget) -> QImage:
    """Return the picture of a widget with a margin."""
    QApplication.processEvents()
    corner = widget.mapTo(window, QPoint(0, 0))
    place = QRect(corner, widget.size()).adjusted(-3, -3, 3, 3)
    return window.grab(place).toImage().convertToFormat(QImage.Format.Format_RGB32)


def seen(focused: QImage, plain: QImage) -> int:
    """Pixels that the focus has changed by a contrast of 3:1 (WCAG 2.4.13)."""
    ink, ground = _pixels(focused), _pixels(plain)
    if ink.shape != ground.shape:
        return 0
    changed = ink != ground
    pairs = Counter(zip(ink[changed].tolist(), ground[changed].tolist(), strict=True))
    return sum(
        count for (one, other), count in pairs.items() if contrast(QColor(one), QColor(other)) >= MIN_MARK_CONTRAST
    )


def _pixels(image: QImage) -> NDArray[np.uint32]:
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width())


LEAST_SEEN = 40
"""Pixels: a line of 1 pixel around a small button has more."""


def without_visible_focus(window: QWidget, stops: Iterable[QWidget]) -> list[str]:
    """Return the tab stops without a visible focus indicator."""
    found = []
    for widget in stops:
        focused = grab(window, widget)
        widget.clearFocus()
        plain = grab(window, widget)
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        if (count := seen(focused, plain)) < LEAST_SEEN:
            found.append(f"{widget.objectName() or widget.accessibleName() or widget!r}: {count} pixels")
    return found


VIEWS = [("tokens", "light"), ("tree", "dark"), ("memory", "light"), ("compare", "dark")]


@pytest.mark.every(4)
@pytest.mark.parametrize(("view", "theme"), VIEWS)
def test_keyboard_focus_is_visible(window: MainWindow, view: str, theme: str) -> None:
    window.parts.settings.appearance.theme = theme
    window.parts.appearance.apply()
    window.parts.centre.show_view(view)
    assert "\n".join(without_visible_focus(window, steps(window))) == ""


def test_keyboard_focus_is_visible_under_mouse_pointer(window: MainWindow) -> None:
    toolbar, editor = window.parts.toolbar, window.parts.setup.prompt.editor
    for field, under in (
        (toolbar.model,) * 2,
        (toolbar.strategy,) * 2,
        (toolbar.seed.spin,) * 2,
        (editor, editor.viewport()),
    ):
        QTest.mouseMove(under, under.rect().center())
        QApplication.processEvents()
        assert under.underMouse()
        field.setFocus(Qt.FocusReason.TabFocusReason)
        assert without_visible_focus(window, [field]) == []
    QTest.mouseMove(window, window.rect().bottomRight())
