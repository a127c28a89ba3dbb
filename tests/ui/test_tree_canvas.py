"""The canvas for trees in use: moving about, folding, selecting, walking, texts for screen readers."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QAccessible, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.tree_canvas import TreeCanvas, TreeNode
from decodescope.app.widgets.tree_canvas.geometry import READABLE_ZOOM
from decodescope.app.widgets.tree_canvas.tree_painter import fold_text
from tests.benchmarks.tree_view import beam_tree
from tests.ui.small_trees import SMALL, empty, small


@pytest.fixture
def canvas(qtbot: QtBot) -> TreeCanvas:
    return small(qtbot)


# Moving about


def test_the_wheel_zooms_to_the_pointer(canvas: TreeCanvas) -> None:
    canvas.navigation.fit()
    at = QPointF(300, 200)
    before = canvas.canvas_state.camera.to_canvas(at)
    wheel(canvas, at, 120)
    assert canvas.navigation.zoom > 1.0
    assert (canvas.canvas_state.camera.to_canvas(at) - before).manhattanLength() < 1e-6


def test_shift_wheel_scrolls_horizontally(canvas: TreeCanvas) -> None:
    x, zoom = canvas.canvas_state.camera.x, canvas.navigation.zoom
    wheel(canvas, QPointF(300, 200), -120, Qt.KeyboardModifier.ShiftModifier)
    assert canvas.canvas_state.camera.x > x
    assert canvas.navigation.zoom == zoom


NONE_HELD = Qt.KeyboardModifier.NoModifier


def wheel(canvas: TreeCanvas, at: QPointF, turn: int, held: Qt.KeyboardModifier = NONE_HELD) -> None:
    event = QWheelEvent(
        at, QPointF(canvas.mapToGlobal(at.toPoint())), QPoint(), QPoint(0, turn), Qt.MouseButton.NoButton, held,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas, event)


def test_dragging_pans_tree_and_stops_following(canvas: TreeCanvas) -> None:
    canvas.navigation.set_follow(True)
    before = canvas.canvas_state.positions.node_rect(0).topLeft()
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    QTest.mouseMove(canvas, QPoint(60, 60))
    QTest.mouseMove(canvas, QPoint(105, 85))
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(105, 85))
    moved = canvas.canvas_state.positions.node_rect(0).topLeft() - before
    assert (moved - QPoint(100, 80)).manhattanLength() <= 2
    assert not canvas.navigation.follow
    assert canvas.selection.selected is None


def test_fit_shows_all_nodes(canvas: TreeCanvas) -> None:
    canvas.navigation.pan(5000, 5000)
    canvas.navigation.fit()
    assert all(
        canvas.rect().contains(canvas.canvas_state.positions.node_rect(node))
        for node in canvas.canvas_state.scene.layout.rows
    )


def test_following_keeps_newest_nodes_visible_and_readable(qtbot: QtBot) -> None:
    canvas = empty(qtbot)
    nodes = list(beam_tree(900, beams=4))
    for start in range(0, len(nodes), 8):
        canvas.canvas_state.add_nodes(nodes[start : start + 8])
    newest = [
        n
        for n in canvas.canvas_state.scene.layout.nodes_in(canvas.canvas_state.scene.last_depth)
        if canvas.canvas_state.scene.model.nodes[n].state == "kept"
    ]
    assert canvas.navigation.zoom >= 0.6
    assert any(canvas.rect().contains(canvas.canvas_state.positions.node_rect(node)) for node in newest)


def test_view_does_not_move_when_not_following(canvas: TreeCanvas) -> None:
    before = canvas.canvas_state.positions.node_rect(8)
    canvas.canvas_state.add_nodes(TreeNode(20 + n, 8, "x") for n in range(5))
    assert canvas.canvas_state.positions.node_rect(8) == before


def test_fit_is_repeated_after_resize(canvas: TreeCanvas) -> None:
    canvas.navigation.fit()
    canvas.resize(400, 300)
    assert all(
        canvas.rect().contains(canvas.canvas_state.positions.node_rect(node))
        for node in canvas.canvas_state.scene.layout.rows
    )


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("count", [40, 2000])
def test_fit_shows_whole_tree_and_then_a_legible_part(qtbot: QtBot, count: int, down: bool) -> None:
    canvas = empty(qtbot)
    state = canvas.canvas_state
    state.set_tree(beam_tree(count))
    state.set_top_down(down)
    canvas.navigation.zoom_by(2)
    canvas.navigation.fit()
    visible = state.camera.rect_to_canvas(QRectF(canvas.contentsRect()))
    assert visible.contains(state.scene.bounds())
    assert canvas.minimap.isHidden()
    canvas.navigation.fit()
    assert canvas.navigation.zoom >= READABLE_ZOOM


@pytest.mark.parametrize("down", [False, True])
def test_minimap_covers_no_part_of_the_tree(canvas: TreeCanvas, down: bool) -> None:
    """It has a side of the canvas for itself, and gives it back when everything is in sight."""
    state = canvas.canvas_state
    state.set_top_down(down)
    canvas.navigation.set_zoom(2.4)
    for node in (0, 7, 3, 8):
        canvas.selection.select(node)
        canvas.navigation.ensure_visible(node)
        assert not canvas.minimap.isHidden()
        assert not canvas.minimap.geometry().intersects(canvas.contentsRect())
        assert canvas.contentsRect().contains(state.positions.node_rect(node))
    canvas.navigation.fit()
    assert canvas.contentsRect() == canvas.rect()


def test_minimap_appears_when_zoomed_and_click_moves_view(canvas: TreeCanvas) -> None:
    canvas.navigation.fit()
    assert canvas.minimap.isHidden()
    canvas.navigation.set_zoom(2.4)
    assert not canvas.minimap.isHidden()
    x = canvas.canvas_state.camera.x
    QTest.mouseClick(canvas.minimap, Qt.MouseButton.LeftButton, pos=QPoint(canvas.minimap.width() - 6, 20))
    assert canvas.canvas_state.camera.x > x


# Folding


def test_folding_hides_subtree_and_shows_count(canvas: TreeCanvas) -> None:
    place = canvas.canvas_state.positions.node_rect(1)
    canvas.selection.toggle_fold(1)
    assert not canvas.canvas_state.scene.is_shown(4)
    assert fold_text(canvas.canvas_state.scene, canvas.canvas_state.style, 1) == "+3"
    assert (canvas.canvas_state.positions.node_rect(1).topLeft() - place.topLeft()).manhattanLength() <= 1
    canvas.canvas_state.add_nodes([TreeNode(30, 7, "x")])
    assert fold_text(canvas.canvas_state.scene, canvas.canvas_state.style, 1) == "+4"
    canvas.selection.toggle_fold(1)
    assert canvas.canvas_state.scene.is_shown(30)


def test_folding_moves_selection_to_folded_node(canvas: TreeCanvas, qtbot: QtBot) -> None:
    canvas.selection.pick(7)
    with qtbot.waitSignal(canvas.selection.nodeSelected) as signal:
        canvas.selection.toggle_fold(1)
    assert signal.args == [1]


def test_a_double_click_folds_and_the_mark_unfolds(canvas: TreeCanvas) -> None:
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.canvas_state.positions.node_rect(2).center())
    assert 2 in canvas.canvas_state.scene.model.folded
    mark = canvas.canvas_state.painter.nodes.fold_mark_rect(canvas.canvas_state.scene.box(2), "+2")
    QTest.mouseClick(
        canvas, Qt.MouseButton.LeftButton, pos=canvas.canvas_state.camera.rect_from_canvas(mark).center().toPoint()
    )
    assert not canvas.canvas_state.scene.model.folded


def test_ensure_visible_unfolds_ancestors(canvas: TreeCanvas) -> None:
    canvas.selection.toggle_fold(1)
    canvas.navigation.ensure_visible(7)
    assert canvas.canvas_state.scene.is_shown(7)
    canvas.selection.toggle_fold(2)
    canvas.canvas_state.unfold()
    assert canvas.canvas_state.scene.is_shown(8)


# Selecting and walking


def test_click_selects_node_and_click_on_background_deselects(canvas: TreeCanvas, qtbot: QtBot) -> None:
    with qtbot.waitSignal(canvas.selection.nodeSelected) as signal:
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.canvas_state.positions.node_rect(6).center())
    assert signal.args == [6]
    assert canvas.canvas_state.style.selected_path == [0, 2, 6]
    with qtbot.waitSignal(canvas.selection.selectionCleared):
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))


def walk(canvas: TreeCanvas, *keys: Qt.Key) -> int | None:
    for key in keys:
        QTest.keyClick(canvas, key)
    return canvas.selection.selected


K = Qt.Key


@pytest.mark.parametrize("down", [False, True])
def test_arrow_keys_select_parent_child_and_sibling(canvas: TreeCanvas, down: bool) -> None:
    canvas.canvas_state.set_top_down(down)
    back, on, before, after = (
        (K.Key_Up, K.Key_Down, K.Key_Left, K.Key_Right) if down else (K.Key_Left, K.Key_Right, K.Key_Up, K.Key_Down)
    )
    assert walk(canvas, K.Key_Home) == 0
    assert walk(canvas, on) == 1
    assert walk(canvas, after) == 2
    assert walk(canvas, after) == 3
    assert walk(canvas, after) == 3
    assert walk(canvas, on) == 3
    assert walk(canvas, before, on) == 6
    assert walk(canvas, before) == 5
    assert walk(canvas, back, back) == 0
    assert walk(canvas, K.Key_End) == 7


def test_first_arrow_key_selects_end_of_leading_path(canvas: TreeCanvas) -> None:
    assert walk(canvas, K.Key_Left) == 7


def test_enter_folds_plus_and_minus_zoom_and_escape_deselects(canvas: TreeCanvas) -> None:
    canvas.selection.pick(1)
    walk(canvas, K.Key_Return)
    assert 1 in canvas.canvas_state.scene.model.folded
    zoom = canvas.navigation.zoom
    walk(canvas, K.Key_Plus)
    assert canvas.navigation.zoom > zoom
    walk(canvas, K.Key_Minus)
    assert canvas.navigation.zoom == pytest.approx(zoom)
    assert walk(canvas, K.Key_Escape) is None


def test_shift_arrow_keys_pan_view(canvas: TreeCanvas) -> None:
    x = canvas.canvas_state.camera.x
    QTest.keyClick(canvas, K.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert canvas.canvas_state.camera.x > x
    assert canvas.selection.selected is None


def test_typing_letters_starts_search(canvas: TreeCanvas, qtbot: QtBot) -> None:
    with qtbot.waitSignal(canvas.input_handler.typed) as signal:
        QTest.keyClicks(canvas, "n")
    assert signal.args == ["n"]
    assert canvas.canvas_state.scene.model.search("NAMED") == [4, 6]
    assert canvas.canvas_state.scene.model.search("named", deepest=1) == []


def test_selected_node_is_scrolled_into_view(canvas: TreeCanvas) -> None:
    canvas.navigation.set_zoom(2.4)
    for node in (0, 8, 3, 7):
        canvas.selection.pick(node)
        assert canvas.rect().contains(canvas.canvas_state.positions.node_rect(node))


# Screen readers


def test_accessible_tree_has_items_and_parents(canvas: TreeCanvas) -> None:
    tree = QAccessible.queryAccessibleInterface(canvas)
    assert tree.role() == QAccessible.Role.Tree
    assert tree.childCount() == 1
    root = tree.child(0)
    fox = root.child(0)
    named = fox.child(0)
    name = QAccessible.Text.Name
    assert fox.text(name) == "fox, probability .50, −0.69, kept, on the best path, level 1, 1 of 3"
    assert root.child(2).text(name) == "boy, probability .10, −2.30, pruned, level 1, 3 of 3"
    assert root.child(1).child(0).child(0).text(name).endswith("kept, constraint 1 of 3, level 3, 1 of 1")
    assert named.parent() is fox
    assert root.indexOfChild(fox) == 0
    assert root.parent() is tree
    assert named.role() == QAccessible.Role.TreeItem
    place = canvas.mapToGlobal(canvas.canvas_state.positions.node_rect(4).center())
    assert tree.childAt(place.x(), place.y()) is named


def test_accessible_items_have_selected_and_collapsed_state(canvas: TreeCanvas) -> None:
    tree = QAccessible.queryAccessibleInterface(canvas)
    assert tree.focusChild() is None
    canvas.selection.pick(1)
    canvas.selection.toggle_fold(1)
    item = tree.focusChild()
    assert item.state().selected
    assert item.state().collapsed
    assert item.childCount() == 0
    assert "3 folded" in item.text(QAccessible.Text.Name)
    canvas.canvas_state.clear()
    assert tree.childCount() == 0


def test_accessible_items_are_removed_when_tree_is_cleared(qtbot: QtBot) -> None:
    QAccessible.setActive(True)
    try:
        canvas = empty(qtbot)
        canvas.canvas_state.add_nodes(SMALL)
        canvas.setFocus()
        item = QAccessible.queryAccessibleInterface(canvas).child(0).child(1)
        number = QAccessible.uniqueId(item)
        assert QAccessible.accessibleInterface(number) is item
        walk(canvas, K.Key_Home, K.Key_Right, K.Key_Down)
        assert item.state().selected
        canvas.canvas_state.clear()
        assert QAccessible.accessibleInterface(number) is None
    finally:
        QAccessible.setActive(False)
