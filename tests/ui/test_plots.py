"""Plots: hovering, zoom, accessibility, export, and no import cost for windows without a plot."""

from __future__ import annotations

import csv
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QImage, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.plots import PlotAxis, PlotBars, PlotLine, PlotPanel, PlotSpec
from tests.app.test_plot_descriptions import window
from tests.disks import full_disk

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[PlotPanel]:
    panel = PlotPanel("Cache size over generated tokens")
    qtbot.addWidget(panel)
    panel.set_theme(theme_for("dark"))
    panel.resize(640, 300)
    panel.show_figure(window())
    with qtbot.waitExposed(panel):
        panel.show()
    QApplication.sendPostedEvents()
    return panel


def at(panel: PlotPanel, x: float) -> QPoint:
    """The pixel of that place, in the middle of the plot's height."""
    return QPoint(panel.canvas().pixel(x, 0).x(), panel.height() // 2)


def move(panel: PlotPanel, x: float, buttons: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    viewport, where = panel.canvas().viewport(), QPointF(at(panel, x))
    event = QMouseEvent(QEvent.Type.MouseMove, where, viewport.mapToGlobal(where), Qt.MouseButton.NoButton, buttons,
                        NONE)  # fmt: skip
    QApplication.sendEvent(viewport, event)


def turn(panel: PlotPanel, x: float, notches: int) -> bool:
    """Return whether the plot used it."""
    viewport, where = panel.canvas().viewport(), QPointF(at(panel, x))
    event = QWheelEvent(where, viewport.mapToGlobal(where), QPoint(), QPoint(0, 120 * notches),
                        Qt.MouseButton.NoButton, NONE, Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    QApplication.sendEvent(viewport, event)
    return event.isAccepted()


def test_window_without_plot_does_not_import_pyqtgraph(tmp_path: Path) -> None:
    """In a process of its own: here others have imported it."""
    code = (
        "import sys; from pathlib import Path; from PySide6.QtWidgets import QApplication; app = QApplication([]);"
        "from decodescope.app import build_window; from tests.ui.fake_engine import ScriptedEngine;"
        "window = build_window(Path(sys.argv[1]), ScriptedEngine()); window.show(); app.processEvents();"
        "seen = [window.parts.centre.show_view(name) for name in ('memory', 'compare', 'tokens')]; app.processEvents();"
        "before = 'pyqtgraph' in sys.modules; window.close(); assert all(seen); sys.exit(before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_hover_label_describes_position(panel: PlotPanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(panel.hovered, check_params_cb=lambda x: x == 32):
        move(panel, 32)
    assert panel._hover_label.isVisible()
    assert panel._hover_label.text().startswith("32 generated tokens\nkeys 32.0 KiB")
    assert panel.rect().contains(panel._hover_label.geometry())
    with qtbot.waitSignal(panel.hovered, check_params_cb=lambda x: x == -1):
        QApplication.sendEvent(panel.canvas().viewport(), QEvent(QEvent.Type.Leave))
    assert not panel._hover_label.isVisible()


def test_hover_label_stays_inside_plot(panel: PlotPanel) -> None:
    panel._hover_label.show_text(
        "a rather long line of words about this place", QPoint(panel.width() - 3, panel.height() - 3)
    )
    assert panel.rect().contains(panel._hover_label.geometry())


def test_wheel_zooms_around_mouse_and_back(panel: PlotPanel) -> None:
    assert not turn(panel, 50, -1), "the whole is seen: the page may scroll"
    before = at(panel, 50).x()
    assert turn(panel, 50, 3)
    low, high = panel.canvas().visible_range
    assert 0 < low < 50 < high < 200
    assert abs(at(panel, 50).x() - before) <= 2
    assert panel._reset.isVisible()
    for _ in range(4):
        turn(panel, 50, -1)
    assert panel.canvas().visible_range == (0.0, 200.0)
    assert not panel._reset.isVisible()


def test_zoom_is_limited(panel: PlotPanel) -> None:
    for _ in range(60):
        turn(panel, 50, 3)
    low, high = panel.canvas().visible_range
    assert high - low == pytest.approx(4.0)


@pytest.mark.parametrize("way", ["double click", "button", "key", "menu"])
def test_dragging_zooms_to_range_and_can_be_reset(panel: PlotPanel, way: str) -> None:
    viewport, picked = panel.canvas().viewport(), []
    panel.picked.connect(picked.append)
    QTest.mousePress(viewport, LEFT, pos=at(panel, 40))
    move(panel, 100, LEFT)
    QTest.mouseRelease(viewport, LEFT, pos=at(panel, 100))
    low, high = panel.canvas().visible_range
    assert (round(low), round(high)) == (40, 100)
    assert picked == [], "a band is no step"
    match way:
        case "double click":
            QTest.mouseDClick(viewport, LEFT, pos=at(panel, 60))
        case "button":
            panel._reset.click()
        case "key":
            QTest.keyClick(panel, Qt.Key.Key_0)
        case "menu":
            menu = panel.menu.create_menu(panel.is_zoomed)
            menu.actions()[0].trigger()
            menu.close()
    assert panel.canvas().visible_range == (0.0, 200.0)


def test_click_or_drag_moves_cursor(panel: PlotPanel) -> None:
    picked: list[int] = []
    panel.picked.connect(picked.append)
    panel.set_cursor(120, "after token 120")
    QTest.mouseClick(panel.canvas().viewport(), LEFT, pos=at(panel, 64))
    assert picked == [64]
    QTest.mousePress(panel.canvas().viewport(), LEFT, pos=at(panel, 120))
    move(panel, 90, LEFT)
    QTest.mouseRelease(panel.canvas().viewport(), LEFT, pos=at(panel, 90))
    assert picked == [64, 90]
    assert not panel.canvas().is_zoomed
    QTest.keyClick(panel, Qt.Key.Key_Left)
    QTest.keyClick(panel, Qt.Key.Key_End)
    assert picked[2:] == [119, 200]


def test_new_figure_keeps_zoom(panel: PlotPanel) -> None:
    panel.canvas().zoom_to(40, 100)
    longer = PlotSpec(window().x, window().y, lines=(PlotLine("more", "accent", ((0.0, 0.0), (400.0, 9.0))),))
    panel.show_figure(longer)
    assert panel.canvas().visible_range == (40.0, 100.0)
    panel.reset_zoom()
    assert panel.canvas().visible_range == (0.0, 400.0)


def test_theme_change_is_applied_immediately(panel: PlotPanel) -> None:
    dark, height = panel.grab().toImage(), panel.sizeHint().height()
    assert dark.pixelColor(1, 1) == theme_for("dark").color("window")
    panel.set_theme(theme_for("light", 1.5))
    light = panel.grab().toImage()
    assert light.pixelColor(1, 1) == theme_for("light").color("window")
    assert panel.sizeHint().height() == round(1.5 * height)
    assert panel.canvas()._bottom.style["tickFont"].pixelSize() == theme_for("light", 1.5).px(11)


def test_plot_has_accessible_name_and_description(panel: PlotPanel) -> None:
    assert panel.accessibleName() == "Cache size over generated tokens"
    assert "rises from 0 B at 0 to 128 KiB at 64 and stays there to 200" in panel.accessibleDescription()
    panel.set_cursor(9, "after token 9: 18 KiB")
    assert panel.accessibleDescription().startswith("after token 9: 18 KiB\nTotal rises")


def test_a_frame_follows_the_focus_of_the_keyboard(panel: PlotPanel) -> None:
    def focus(kind: QEvent.Type, reason: Qt.FocusReason) -> bool:
        QApplication.sendEvent(panel, QFocusEvent(kind, reason))
        return panel._frame.isVisible()

    assert not focus(QEvent.Type.FocusIn, Qt.FocusReason.MouseFocusReason)
    assert focus(QEvent.Type.FocusIn, Qt.FocusReason.TabFocusReason)
    panel.resize(500, 260)
    assert panel._frame.geometry() == panel.rect()
    assert not focus(QEvent.Type.FocusOut, Qt.FocusReason.TabFocusReason)


def test_context_menu_replaces_pyqtgraph_menus(panel: PlotPanel) -> None:
    menu = panel.menu.create_menu(panel.is_zoomed)
    assert [action.text() for action in menu.actions() if action.text()] == [
        "Show all", "Picture (SVG)…", "Picture (PNG)…", "Data (CSV)…",
    ]  # fmt: skip
    menu.close()
    menus = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMenu) and widget is not menu]
    assert menus == [], "pyqtgraph makes none"


def test_plot_is_saved_as_svg_png_and_csv(panel: PlotPanel, tmp_path: Path) -> None:
    for name in ("plot.svg", "plot.png", "plot.csv"):
        panel.menu.save(str(tmp_path / name))
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()
    words = {"".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"dynamic cache", "200", "400"} <= words
    assert QImage(str(tmp_path / "plot.png")).size() == panel.size() * 2
    with (tmp_path / "plot.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 26


def test_zoomed_plot_is_saved_clipped(panel: PlotPanel, tmp_path: Path) -> None:
    """SVG as Qt writes it cuts nothing off."""
    panel.canvas().zoom_to(80, 120)
    box, canvas = panel.canvas().area(), panel.canvas()
    for item in canvas.series.items:
        shown = item.mapRectToScene(item.boundingRect())
        assert box.adjusted(-2, -2, 2, 2).contains(shown)


def test_failed_save_shows_error(panel: PlotPanel, qtbot: QtBot, tmp_path: Path) -> None:
    for name in ("plot.svg", "plot.png", "plot.csv"):
        panel.menu.save(str(tmp_path / "nowhere" / name))
        box = panel.findChild(QMessageBox)
        assert name in box.text()
        with qtbot.waitSignal(box.destroyed):
            box.close()


@pytest.mark.skipif(sys.platform == "win32", reason="files there have no limit")
def test_full_disk_keeps_existing_file(panel: PlotPanel, qtbot: QtBot, tmp_path: Path) -> None:
    for name in ("plot.svg", "plot.png", "plot.csv"):
        path = tmp_path / name
        path.write_text("what stood there")
        with full_disk(10):
            panel.menu.save(str(path))
        assert path.read_text() == "what stood there"
        box = panel.findChild(QMessageBox)
        with qtbot.waitSignal(box.destroyed):
            box.close()
    assert len(list(tmp_path.iterdir())) == 3


def test_horizontal_bars_have_labels_and_values(panel: PlotPanel) -> None:
    names, figures = ("Dynamic", "Static"), ("100 tok/s", "50 tok/s")
    panel.show_figure(
        PlotSpec(
            PlotAxis(is_visible=False),
            PlotAxis(labels=names),
            bars=(PlotBars("", "accent", (100.0, 50.0), figures),),
            is_horizontal=True,
        )
    )
    QApplication.sendPostedEvents()
    ends = [panel.canvas().pixel(value, 1 - n) for n, value in enumerate((100.0, 50.0))]
    picture = panel.grab().toImage()
    accent, ground = theme_for("dark").color("accent"), theme_for("dark").color("window")
    for end in ends:
        inner = picture.pixelColor(end.x() - 4, end.y())
        assert _far(inner, ground) > _far(inner, accent)
    assert panel.canvas().position_at(QPointF(ends[1])) == 1.0
    assert ends[0].x() + 40 < panel.width(), "room for the figure"


def _far(one: QColor, other: QColor) -> int:
    return sum(abs(a - b) for a, b in zip(one.getRgb(), other.getRgb(), strict=True))


def test_hidden_plot_creates_canvas_when_shown(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    panel = PlotPanel("later", parent)
    panel.show_figure(window())
    assert panel._canvas is None
    with qtbot.waitExposed(parent):
        parent.show()
    assert panel.canvas().figure == window()
