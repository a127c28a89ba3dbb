"""The canvas for trees: places, levels of detail, moving about, folding, walking, what screen readers hear."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QAccessible, QColor, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme.theme import theme_for
from app.widgets.tree_canvas import TreeCanvas, TreeModel, TreeNode
from app.widgets.tree_canvas.geometry import READABLE, Metrics
from app.widgets.tree_canvas.layout import TreeLayout, spread
from app.widgets.tree_canvas.painter import fold_text, level
from tests.benchmarks.tree_view import beam_tree, bushy_tree

SMALL = (
    TreeNode(0, None, "…little", state="root"),
    TreeNode(1, 0, "␣fox", ".50", "−0.69", 0.5),
    TreeNode(2, 0, "␣bear", ".30", "−1.20", 0.3),
    TreeNode(3, 0, "␣boy", ".10", "−2.30", 0.1, "pruned"),
    TreeNode(4, 1, "␣named", ".90", "−0.80", 0.9),
    TreeNode(5, 1, "␣who", ".05", "−3.70", 0.05, "pruned"),
    TreeNode(6, 2, "␣named", ".80", "−1.40", 0.8),
    TreeNode(7, 4, "end", ".40", "−1.70", 0.4, "finished"),
    TreeNode(8, 6, "␣Lily", ".20", "−3.00", 0.2, progress=(1, 3)),
)


@pytest.fixture
def canvas(qtbot: QtBot) -> TreeCanvas:
    """The small tree at zoom 1, nothing selected, not followed."""
    canvas = empty(qtbot)
    canvas.stage.add_nodes(SMALL)
    canvas.stage.set_best([0, 1, 4, 7])
    canvas.travel.set_follow(False)
    return canvas


def empty(qtbot: QtBot, width: int = 900, height: int = 600) -> TreeCanvas:
    canvas = TreeCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(width, height)
    canvas.set_theme(theme_for("light"))
    canvas.show()
    return canvas


def grown(nodes: Iterator[TreeNode]) -> TreeLayout:
    """A layout that saw the nodes depth by depth."""
    model = TreeModel()
    layout = TreeLayout(model)
    for node in nodes:
        layout.grow(model.add([node]))
    return layout


# Places


def test_spread_keeps_order_and_distance_and_moves_no_more_than_it_must() -> None:
    assert spread([0, 2, 5], [1, 1, 1], -99, 99) == [0, 2, 5]
    assert spread([0, 0, 0], [1, 1, 1], -99, 99) == [-1, 0, 1]
    assert spread([0, 0, 0], [100, 0.01, 0.01], -99, 99) == [0, 1, 2]
    assert spread([50, 50], [1, 1], -3, 3) == [2, 3]
    rng = random.Random(2)
    for _ in range(50):
        wanted = [rng.uniform(-9, 9) for _ in range(12)]
        rows = spread(wanted, [rng.random() + 0.1 for _ in wanted], -99, 99)
        assert all(after - before >= 1 for before, after in pairwise(rows))


def test_a_growing_tree_moves_nothing_that_stands() -> None:
    whole = TreeModel()
    whole.add(beam_tree(400))
    model = TreeModel()
    layout = TreeLayout(model)
    for column in whole.columns:
        before = dict(layout.rows)
        layout.grow(model.add(whole.nodes[node] for node in column))
        assert before.items() <= layout.rows.items()
        assert len(layout.rows) == len(before) + len(column)


def test_edges_never_cross() -> None:
    layout = grown(bushy_tree(600))
    for depth in range(1, len(layout.strips)):
        order = [layout.row(layout.model.nodes[node].parent) for node in layout.nodes_in(depth)]  # type: ignore[arg-type]
        assert order == sorted(order)


def test_no_two_nodes_share_a_place() -> None:
    layout = grown(beam_tree(500))
    places = {(layout.model.depth[node], layout.row(node)) for node in layout.rows}
    assert len(places) == 500


def test_a_chain_of_only_children_is_straight() -> None:
    layout = grown(TreeNode(n, n - 1 if n else None, "x") for n in range(40))
    assert {layout.row(n) for n in range(40)} == {0.0}


def test_a_complete_tree_has_parents_in_the_middle_of_their_children() -> None:
    model = TreeModel()
    layout = TreeLayout(model)
    layout.settled = True
    nodes = [TreeNode(0, None, "r")] + [TreeNode(n, (n - 1) // 3, "x") for n in range(1, 40)]
    model.add(nodes)
    layout.rebuild()
    for node in range(13):
        children = model.children[node]
        assert abs(layout.row(node) - (layout.row(children[0]) + layout.row(children[-1])) / 2) <= 0.5


def test_lanes_lie_one_below_the_other() -> None:
    nodes = [TreeNode(0, None, "r", lane=None)] + [TreeNode(n, 0, "x", lane=n % 3) for n in range(1, 13)]
    layout = grown(iter(nodes))
    lanes = layout.lanes()
    assert [lane for lane, _, _ in lanes] == [0, 1, 2]
    assert all(before[2] + 1 < after[1] for before, after in pairwise(lanes))
    assert lanes[0][1] < layout.row(0) < lanes[2][2]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (TreeNode(0, None, "again"), "already"),
        (TreeNode(99, 77, "x"), "77"),
        (TreeNode(99, 0, "x", state="odd"), "odd"),
    ],
)
def test_wrong_nodes_are_refused_with_the_reason(node: TreeNode, words: str) -> None:
    model = TreeModel()
    model.add(SMALL)
    with pytest.raises(ValueError, match=words):
        model.add([node])


# What is in sight


@pytest.mark.parametrize("down", [False, True])
def test_what_is_in_a_rectangle_is_what_lies_there(qtbot: QtBot, down: bool) -> None:
    canvas = empty(qtbot)
    canvas.stage.set_tree(bushy_tree(800))
    canvas.stage.set_down(down)
    scene = canvas.stage.scene
    rng = random.Random(4)
    for _ in range(20):
        bounds = scene.bounds()
        rect = QRectF(rng.uniform(bounds.left(), bounds.right()), rng.uniform(bounds.top(), bounds.bottom()), 700, 500)
        wanted = {node for node in scene.layout.rows if scene.box(node).intersects(rect)}
        assert wanted <= set(scene.nodes_in(rect))


def test_edges_whose_ends_are_both_out_of_sight_are_found(qtbot: QtBot) -> None:
    canvas = empty(qtbot)
    canvas.stage.add_nodes([TreeNode(0, None, "r"), *(TreeNode(n, 0, "x") for n in range(1, 9))])
    scene, metrics = canvas.stage.scene, canvas.stage.scene.metrics
    gap = QRectF(metrics.width + 4, scene.box(2).top() - 3, 6, 2)
    assert (0, 1) in set(scene.edges_in(gap))
    assert (0, 8) not in set(scene.edges_in(gap))


def test_a_long_edge_is_cut_to_what_can_be_seen() -> None:
    metrics = Metrics()
    start, end, view = QPointF(0, 0), QPointF(44, 9000), QRectF(-10, 4000, 100, 300)
    cut = metrics.curve(start, end, view)
    assert cut[0].y() == pytest.approx(4000, abs=1)
    assert cut[3].y() == pytest.approx(4300, abs=1)
    assert 0 < cut[0].x() < cut[3].x() < 44
    assert metrics.curve(start, QPointF(44, 50), view)[3] == QPointF(44, 50)


def test_levels_of_detail() -> None:
    assert [level(zoom) for zoom in (1, 0.6, 0.3, 0.1, 0.02)] == ["full", "full", "boxes", "lines", "dots"]


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1.0, 0.3, 0.1, 0.02])
def test_states_have_their_colours_at_every_zoom(canvas: TreeCanvas, name: str, zoom: float) -> None:
    theme = theme_for(name)
    canvas.set_theme(theme)
    canvas.stage.add_nodes(TreeNode(100 + n, 2, "x") for n in range(9))
    canvas.travel.set_zoom(zoom)
    canvas.travel.centre_on(canvas.stage.scene.bounds().center())
    seen = colours(canvas)
    assert any(near(colour, theme.color("best")) for colour in seen)
    assert any(near(colour, theme.color("kept")) for colour in seen)


def colours(canvas: TreeCanvas) -> set[int]:
    image = canvas.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return set(memoryview(image.constBits()).cast("I"))


def near(pixel: int, wanted: QColor) -> bool:
    colour = QColor(pixel)
    return all(abs(a - b) < 40 for a, b in zip(colour.getRgb()[:3], wanted.getRgb()[:3], strict=True))


def test_pruned_branches_are_hidden_dimmed_or_shown(canvas: TreeCanvas) -> None:
    for how, count in (("hidden", 7), ("dimmed", 9), ("shown", 9)):
        canvas.stage.set_pruned(how)
        assert len(canvas.stage.scene.layout.rows) == count
    with pytest.raises(ValueError, match="invisible"):
        canvas.stage.set_pruned("invisible")


def test_only_the_depths_up_to_the_cursor_are_drawn(canvas: TreeCanvas) -> None:
    canvas.stage.reveal_depth(1)
    assert set(canvas.stage.scene.nodes_in(QRectF(-9999, -9999, 20000, 20000))) == {0, 1, 2, 3}
    assert canvas.stage.places.node_rect(4).isEmpty()
    canvas.stage.reveal_depth(None)
    assert not canvas.stage.places.node_rect(4).isEmpty()


# Moving about


def test_the_wheel_zooms_to_the_pointer(canvas: TreeCanvas) -> None:
    canvas.travel.fit()
    at = QPointF(300, 200)
    before = canvas.stage.camera.to_canvas(at)
    wheel(canvas, at, 120)
    assert canvas.travel.zoom > 1.0
    assert (canvas.stage.camera.to_canvas(at) - before).manhattanLength() < 1e-6


def test_shift_and_wheel_move_along_the_tree(canvas: TreeCanvas) -> None:
    x, zoom = canvas.stage.camera.x, canvas.travel.zoom
    wheel(canvas, QPointF(300, 200), -120, Qt.KeyboardModifier.ShiftModifier)
    assert canvas.stage.camera.x > x
    assert canvas.travel.zoom == zoom


NONE_HELD = Qt.KeyboardModifier.NoModifier


def wheel(canvas: TreeCanvas, at: QPointF, turn: int, held: Qt.KeyboardModifier = NONE_HELD) -> None:
    event = QWheelEvent(
        at, QPointF(canvas.mapToGlobal(at.toPoint())), QPoint(), QPoint(0, turn), Qt.MouseButton.NoButton, held,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas, event)


def test_dragging_moves_the_tree_and_ends_following(canvas: TreeCanvas) -> None:
    canvas.travel.set_follow(True)
    before = canvas.stage.places.node_rect(0).topLeft()
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    QTest.mouseMove(canvas, QPoint(60, 60))
    QTest.mouseMove(canvas, QPoint(105, 85))
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(105, 85))
    moved = canvas.stage.places.node_rect(0).topLeft() - before
    assert (moved - QPoint(100, 80)).manhattanLength() <= 2
    assert not canvas.travel.follow
    assert canvas.selection.selected is None


def test_fit_brings_everything_into_sight(canvas: TreeCanvas) -> None:
    canvas.travel.pan(5000, 5000)
    canvas.travel.fit()
    assert all(canvas.rect().contains(canvas.stage.places.node_rect(node)) for node in canvas.stage.scene.layout.rows)


def test_following_keeps_the_newest_in_sight_and_the_text_readable(qtbot: QtBot) -> None:
    canvas = empty(qtbot)
    nodes = list(beam_tree(900, beams=4))
    for start in range(0, len(nodes), 8):
        canvas.stage.add_nodes(nodes[start : start + 8])
    newest = [
        n
        for n in canvas.stage.scene.layout.nodes_in(canvas.stage.scene.last)
        if canvas.stage.scene.model.nodes[n].state == "kept"
    ]
    assert canvas.travel.zoom >= 0.6
    assert any(canvas.rect().contains(canvas.stage.places.node_rect(node)) for node in newest)


def test_when_not_following_nothing_jumps(canvas: TreeCanvas) -> None:
    before = canvas.stage.places.node_rect(8)
    canvas.stage.add_nodes(TreeNode(20 + n, 8, "x") for n in range(5))
    assert canvas.stage.places.node_rect(8) == before


def test_what_was_fitted_is_fitted_again_in_another_room(canvas: TreeCanvas) -> None:
    canvas.travel.fit()
    canvas.resize(400, 300)
    assert all(canvas.rect().contains(canvas.stage.places.node_rect(node)) for node in canvas.stage.scene.layout.rows)


def test_fit_turns_no_tree_into_a_smear(qtbot: QtBot) -> None:
    canvas = empty(qtbot)
    canvas.stage.set_tree(beam_tree(2000))
    canvas.travel.set_follow(False)
    canvas.travel.zoom_by(2)
    canvas.travel.fit()
    assert canvas.travel.zoom >= READABLE
    canvas.travel.fit()
    assert canvas.travel.zoom < READABLE


@pytest.mark.parametrize("down", [False, True])
def test_the_map_makes_way_for_what_is_selected(canvas: TreeCanvas, down: bool) -> None:
    canvas.stage.set_down(down)
    canvas.travel.set_zoom(1.6)
    for node in (0, 7, 3, 8):
        off = canvas.minimap.geometry().center() - canvas.stage.places.node_rect(node).center()
        canvas.travel.pan(-off.x(), -off.y())
        canvas.selection.select(node)
        assert not canvas.minimap.isHidden()
        assert not canvas.minimap.geometry().intersects(canvas.stage.places.node_rect(node))


def test_the_map_appears_when_not_all_is_in_sight_and_leads_there(canvas: TreeCanvas) -> None:
    canvas.travel.fit()
    assert canvas.minimap.isHidden()
    canvas.travel.set_zoom(2.4)
    assert not canvas.minimap.isHidden()
    x = canvas.stage.camera.x
    QTest.mouseClick(canvas.minimap, Qt.MouseButton.LeftButton, pos=QPoint(canvas.minimap.width() - 6, 20))
    assert canvas.stage.camera.x > x


# Folding


def test_folding_hides_a_subtree_and_says_how_much(canvas: TreeCanvas) -> None:
    place = canvas.stage.places.node_rect(1)
    canvas.selection.toggle_fold(1)
    assert not canvas.stage.scene.shown(4)
    assert fold_text(canvas.stage.scene, canvas.stage.look, 1) == "+3"
    assert (canvas.stage.places.node_rect(1).topLeft() - place.topLeft()).manhattanLength() <= 1
    canvas.stage.add_nodes([TreeNode(30, 7, "x")])
    assert fold_text(canvas.stage.scene, canvas.stage.look, 1) == "+4"
    canvas.selection.toggle_fold(1)
    assert canvas.stage.scene.shown(30)


def test_folding_hands_the_selection_to_what_stays(canvas: TreeCanvas, qtbot: QtBot) -> None:
    canvas.selection.pick(7)
    with qtbot.waitSignal(canvas.selection.nodeSelected) as signal:
        canvas.selection.toggle_fold(1)
    assert signal.args == [1]


def test_a_double_click_folds_and_the_mark_unfolds(canvas: TreeCanvas) -> None:
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.stage.places.node_rect(2).center())
    assert 2 in canvas.stage.scene.model.folded
    mark = canvas.stage.painter.nodes.fold_mark(canvas.stage.scene.box(2), "+2")
    QTest.mouseClick(
        canvas, Qt.MouseButton.LeftButton, pos=canvas.stage.camera.rect_from_canvas(mark).center().toPoint()
    )
    assert not canvas.stage.scene.model.folded


def test_showing_a_node_unfolds_what_hides_it(canvas: TreeCanvas) -> None:
    canvas.selection.toggle_fold(1)
    canvas.travel.ensure_visible(7)
    assert canvas.stage.scene.shown(7)
    canvas.selection.toggle_fold(2)
    canvas.stage.unfold()
    assert canvas.stage.scene.shown(8)


# Selecting and walking


def test_a_click_selects_and_a_click_on_the_ground_lets_go(canvas: TreeCanvas, qtbot: QtBot) -> None:
    with qtbot.waitSignal(canvas.selection.nodeSelected) as signal:
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.stage.places.node_rect(6).center())
    assert signal.args == [6]
    assert canvas.stage.look.trail == [0, 2, 6]
    with qtbot.waitSignal(canvas.selection.nothingSelected):
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))


def walk(canvas: TreeCanvas, *keys: Qt.Key) -> int | None:
    for key in keys:
        QTest.keyClick(canvas, key)
    return canvas.selection.selected


K = Qt.Key


@pytest.mark.parametrize("down", [False, True])
def test_arrows_walk_to_parent_child_and_sibling(canvas: TreeCanvas, down: bool) -> None:
    canvas.stage.set_down(down)
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


def test_walking_begins_at_the_end_of_the_leading_path(canvas: TreeCanvas) -> None:
    assert walk(canvas, K.Key_Left) == 7


def test_enter_folds_plus_and_minus_zoom_escape_lets_go(canvas: TreeCanvas) -> None:
    canvas.selection.pick(1)
    walk(canvas, K.Key_Return)
    assert 1 in canvas.stage.scene.model.folded
    zoom = canvas.travel.zoom
    walk(canvas, K.Key_Plus)
    assert canvas.travel.zoom > zoom
    walk(canvas, K.Key_Minus)
    assert canvas.travel.zoom == pytest.approx(zoom)
    assert walk(canvas, K.Key_Escape) is None


def test_shift_and_arrows_move_the_view(canvas: TreeCanvas) -> None:
    x = canvas.stage.camera.x
    QTest.keyClick(canvas, K.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert canvas.stage.camera.x > x
    assert canvas.selection.selected is None


def test_letters_begin_a_search(canvas: TreeCanvas, qtbot: QtBot) -> None:
    with qtbot.waitSignal(canvas.input.typed) as signal:
        QTest.keyClicks(canvas, "n")
    assert signal.args == ["n"]
    assert canvas.stage.scene.model.search("NAMED") == [4, 6]
    assert canvas.stage.scene.model.search("named", deepest=1) == []


def test_a_selected_node_is_moved_into_sight(canvas: TreeCanvas) -> None:
    canvas.travel.set_zoom(2.4)
    for node in (0, 8, 3, 7):
        canvas.selection.pick(node)
        assert canvas.rect().contains(canvas.stage.places.node_rect(node))


# Screen readers


def test_screen_readers_walk_the_tree(canvas: TreeCanvas) -> None:
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
    place = canvas.mapToGlobal(canvas.stage.places.node_rect(4).center())
    assert tree.childAt(place.x(), place.y()) is named


def test_screen_readers_learn_what_is_selected_and_folded(canvas: TreeCanvas) -> None:
    tree = QAccessible.queryAccessibleInterface(canvas)
    assert tree.focusChild() is None
    canvas.selection.pick(1)
    canvas.selection.toggle_fold(1)
    item = tree.focusChild()
    assert item.state().selected
    assert item.state().collapsed
    assert item.childCount() == 0
    assert "3 folded away" in item.text(QAccessible.Text.Name)
    canvas.stage.clear()
    assert tree.childCount() == 0


def test_a_screen_reader_at_work_survives_what_it_reads(qtbot: QtBot) -> None:
    QAccessible.setActive(True)
    try:
        canvas = empty(qtbot)
        canvas.stage.add_nodes(SMALL)
        canvas.setFocus()
        item = QAccessible.queryAccessibleInterface(canvas).child(0).child(1)
        number = QAccessible.uniqueId(item)
        assert QAccessible.accessibleInterface(number) is item
        walk(canvas, K.Key_Home, K.Key_Right, K.Key_Down)
        assert item.state().selected
        canvas.stage.clear()
        assert QAccessible.accessibleInterface(number) is None
    finally:
        QAccessible.setActive(False)


def test_a_large_tree_is_painted_at_every_level(qtbot: QtBot) -> None:
    canvas = empty(qtbot, 600, 400)
    canvas.stage.set_tree(beam_tree(3000))
    canvas.travel.set_follow(False)
    for zoom in (1.0, 0.4, 0.1, 0.02):
        canvas.travel.set_zoom(zoom)
        canvas.travel.centre_on(canvas.stage.scene.bounds().center())
        assert len(colours(canvas)) > 3
