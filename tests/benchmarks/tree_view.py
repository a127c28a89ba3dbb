"""Repaint time of the tree canvas after a pan or a zoom: 95th percentiles in milliseconds.

Painting is the work of one thread, so the time that thread computes is taken: what the clock shows where nothing else
runs, and the same on a busy machine.

`python -m tests.benchmarks.tree_view` prints them; `measure` returns them for a table of all benchmarks. Two shapes:
a beam search of 16 beams (long and thin), and a bushy tree (short and wide).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication

from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.tree_canvas import TreeCanvas, TreeNode

ZOOMS = (1.0, 0.1, 0.02)
SIZE = (1100, 700)
FRAMES = 40
WORDS = ("␣fox", "␣named", "␣Lily", "␣little", ".", "␣extraordinary", "ing", "␣the")


def beam_tree(count: int, beams: int = 16) -> Iterator[TreeNode]:
    """`count` nodes as a beam search leaves them: half of each step's candidates are pruned."""
    rng = random.Random(3)
    yield TreeNode(0, None, "…little", state="root")
    alive, node = [0], 0
    while node < count - 1:
        picks = sorted(rng.choices(range(len(alive)), k=2 * beams))
        stored = []
        for place in picks[: count - 1 - node]:
            node += 1
            state = "kept" if rng.random() < 0.5 or not stored else "pruned"
            yield _node(node, alive[place], state, rng)
            if state == "kept":
                stored.append(node)
        alive = stored


def bushy_tree(count: int) -> Iterator[TreeNode]:
    """`count` nodes, each with a parent among the last few hundred: wide columns."""
    rng = random.Random(5)
    yield TreeNode(0, None, "…little", state="root")
    for node in range(1, count):
        yield _node(node, rng.randint(max(0, node // 3 - 150), node // 3), rng.choice(("kept", "pruned")), rng)


def _node(number: int, parent: int, state: str, rng: random.Random) -> TreeNode:
    share = rng.random()
    return TreeNode(number, parent, rng.choice(WORDS), f".{share * 100:02.0f}", f"−{share * 9:.2f}", share, state)


def _canvas(nodes: Iterator[TreeNode]) -> TreeCanvas:
    canvas = TreeCanvas()
    canvas.resize(*SIZE)
    canvas.set_theme(theme_for("light"))
    canvas.canvas_state.set_tree(nodes)
    canvas.navigation.set_follow(False)
    canvas.show()
    QApplication.processEvents()
    return canvas


def _p95(canvas: TreeCanvas, move: Callable[[int], None]) -> float:
    """Milliseconds of a whole repaint after each move, in the 95th of 100 cases."""
    canvas.repaint()
    times = []
    for frame in range(FRAMES):
        move(frame)
        start = time.thread_time()
        canvas.repaint()
        times.append(time.thread_time() - start)
    return sorted(times)[int(0.95 * (len(times) - 1))] * 1e3


def _at(canvas: TreeCanvas, zoom: float) -> tuple[float, float]:
    """p95 of panning and of zooming around that zoom, over the middle of the tree."""
    canvas.navigation.set_zoom(zoom)
    canvas.navigation.centre_on(canvas.canvas_state.scene.bounds().center())
    pan = _p95(canvas, lambda frame: canvas.navigation.pan(9 if frame % 20 < 10 else -9, 5 if frame % 10 < 5 else -5))
    canvas.navigation.set_zoom(zoom)
    at = QPointF(SIZE[0] / 3, SIZE[1] / 2)
    return pan, _p95(canvas, lambda frame: canvas.navigation.zoom_by(1.04 if frame % 8 < 4 else 1 / 1.04, at))


def measure(quick: bool = False) -> dict[str, float]:
    """The slower of panning and zooming, in the slower of both shapes: p95 of a repaint in milliseconds."""
    app = QApplication.instance() or QApplication([])
    assert app is not None
    figures: dict[str, float] = {}
    for count in (10_000,) if quick else (10_000, 100_000):
        for make in (beam_tree, bushy_tree):
            canvas = _canvas(make(count))
            for zoom in ZOOMS:
                name = f"tree of {count:,} nodes at zoom {zoom:g} p95 (ms)"
                figures[name] = max(figures.get(name, 0.0), *_at(canvas, zoom))
            canvas.deleteLater()
            QApplication.processEvents()
    return figures


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:42s} {value:8.1f}")
