"""The canvas for trees as it is drawn: places, what is in sight, levels of detail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.tree_canvas import TreeCanvas, TreeModel, TreeNode
from decodescope.app.widgets.tree_canvas.geometry import TreeMetrics
from decodescope.app.widgets.tree_canvas.tree_layout import TreeLayout, fit_rows
from decodescope.app.widgets.tree_canvas.tree_painter import detail_level
from tests.benchmarks.tree_view import beam_tree, bushy_tree
from tests.ui.small_trees import SMALL, empty, small


@pytest.fixture
def canvas(qtbot: QtBot) -> TreeCanvas:
    return small(qtbot)


def grown(nodes: Iterator[TreeNode]) -> TreeLayout:
    """A layout that saw the nodes depth by depth."""
    model = TreeModel()
    layout = TreeLayout(model)
    for node in nodes:
        layout.grow(model.add([node]))
    return layout


# Places


def test_fit_rows_keeps_order_and_distance_with_minimal_moves() -> None:
    assert fit_rows([0, 2, 5], [1, 1, 1], -99, 99) == [0, 2, 5]
    assert fit_rows([0, 0, 0], [1, 1, 1], -99, 99) == [-1, 0, 1]
    assert fit_rows([0, 0, 0], [100, 0.01, 0.01], -99, 99) == [0, 1, 2]
    assert fit_rows([50, 50], [1, 1], -3, 3) == [2, 3]
    rng = random.Random(2)
    for _ in range(50):
        wanted = [rng.uniform(-9, 9) for _ in range(12)]
        rows = fit_rows(wanted, [rng.random() + 0.1 for _ in wanted], -99, 99)
        assert all(after - before >= 1 for before, after in pairwise(rows))


def test_growing_tree_keeps_existing_rows() -> None:
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


def test_nodes_have_unique_positions() -> None:
    layout = grown(beam_tree(500))
    places = {(layout.model.depth[node], layout.row(node)) for node in layout.rows}
    assert len(places) == 500


def test_chain_of_nodes_is_straight() -> None:
    layout = grown(TreeNode(n, n - 1 if n else None, "x") for n in range(40))
    assert {layout.row(n) for n in range(40)} == {0.0}


def test_complete_tree_centers_parents_over_children() -> None:
    model = TreeModel()
    layout = TreeLayout(model)
    layout.is_complete = True
    nodes = [TreeNode(0, None, "r")] + [TreeNode(n, (n - 1) // 3, "x") for n in range(1, 40)]
    model.add(nodes)
    layout.rebuild()
    for node in range(13):
        children = model.children[node]
        assert abs(layout.row(node) - (layout.row(children[0]) + layout.row(children[-1])) / 2) <= 0.5


def test_lanes_do_not_overlap() -> None:
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
def test_invalid_node_is_rejected_with_reason(node: TreeNode, words: str) -> None:
    model = TreeModel()
    model.add(SMALL)
    with pytest.raises(ValueError, match=words):
        model.add([node])


# What is in sight


@pytest.mark.parametrize("down", [False, True])
def test_nodes_in_rectangle_include_all_intersecting_boxes(qtbot: QtBot, down: bool) -> None:
    canvas = empty(qtbot)
    canvas.canvas_state.set_tree(bushy_tree(800))
    canvas.canvas_state.set_top_down(down)
    scene = canvas.canvas_state.scene
    rng = random.Random(4)
    for _ in range(20):
        bounds = scene.bounds()
        rect = QRectF(rng.uniform(bounds.left(), bounds.right()), rng.uniform(bounds.top(), bounds.bottom()), 700, 500)
        wanted = {node for node in scene.layout.rows if scene.box(node).intersects(rect)}
        assert wanted <= set(scene.nodes_in(rect))


def test_edges_in_rectangle_include_edges_with_outside_ends(qtbot: QtBot) -> None:
    canvas = empty(qtbot)
    canvas.canvas_state.add_nodes([TreeNode(0, None, "r"), *(TreeNode(n, 0, "x") for n in range(1, 9))])
    scene, metrics = canvas.canvas_state.scene, canvas.canvas_state.scene.metrics
    gap = QRectF(metrics.width + 4, scene.box(2).top() - 3, 6, 2)
    assert (0, 1) in set(scene.edges_in(gap))
    assert (0, 8) not in set(scene.edges_in(gap))


def test_long_edge_is_clipped_to_view() -> None:
    metrics = TreeMetrics()
    start, end, view = QPointF(0, 0), QPointF(44, 9000), QRectF(-10, 4000, 100, 300)
    cut = metrics.curve(start, end, view)
    assert cut[0].y() == pytest.approx(4000, abs=1)
    assert cut[3].y() == pytest.approx(4300, abs=1)
    assert 0 < cut[0].x() < cut[3].x() < 44
    assert metrics.curve(start, QPointF(44, 50), view)[3] == QPointF(44, 50)


def test_detail_level_depends_on_zoom() -> None:
    assert [detail_level(zoom) for zoom in (1, 0.6, 0.3, 0.1, 0.02)] == ["full", "full", "boxes", "lines", "dots"]


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1.0, 0.3, 0.1, 0.02])
def test_node_state_colors_are_drawn_at_every_zoom(canvas: TreeCanvas, name: str, zoom: float) -> None:
    theme = theme_for(name)
    canvas.set_theme(theme)
    canvas.canvas_state.add_nodes(TreeNode(100 + n, 2, "x") for n in range(9))
    canvas.navigation.set_zoom(zoom)
    canvas.navigation.centre_on(canvas.canvas_state.scene.bounds().center())
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
        canvas.canvas_state.set_pruned(how)
        assert len(canvas.canvas_state.scene.layout.rows) == count
    with pytest.raises(ValueError, match="invisible"):
        canvas.canvas_state.set_pruned("invisible")


def test_nodes_beyond_max_depth_are_not_drawn(canvas: TreeCanvas) -> None:
    canvas.canvas_state.set_max_depth(1)
    assert set(canvas.canvas_state.scene.nodes_in(QRectF(-9999, -9999, 20000, 20000))) == {0, 1, 2, 3}
    assert canvas.canvas_state.positions.node_rect(4).isEmpty()
    canvas.canvas_state.set_max_depth(None)
    assert not canvas.canvas_state.positions.node_rect(4).isEmpty()


def test_a_large_tree_is_painted_at_every_level(qtbot: QtBot) -> None:
    canvas = empty(qtbot, 600, 400)
    canvas.canvas_state.set_tree(beam_tree(3000))
    canvas.navigation.set_follow(False)
    for zoom in (1.0, 0.4, 0.1, 0.02):
        canvas.navigation.set_zoom(zoom)
        canvas.navigation.centre_on(canvas.canvas_state.scene.bounds().center())
        assert len(colours(canvas)) > 3
