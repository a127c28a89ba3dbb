"""Paint time of the token view with ten thousand tokens."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QApplication

from decodescope.app.theme.theme import theme_for
from decodescope.app.views.tokens.view import TokenView
from decodescope.core.events import TokenChosen
from tests.ui.scripted import make_run, story

TOKENS = 10_000
REPAINTS = 200
"""A quarter of them when it is to be quick."""


def measure(quick: bool = False) -> dict[str, float]:
    """95th percentile of repaints in milliseconds, at random places of the text and while it grows.

    Painting is one thread's work, so its processor time is what it takes on a machine with nothing else to do;
    the time on the clock also counts what other programs took in between.
    """
    app = QApplication.instance() or QApplication(["token-view"])
    view = TokenView()
    view.set_theme(theme_for("light"))
    view.resize(740, 760)
    view.show()
    view.show_run(make_run(story(TOKENS)))
    app.processEvents()
    count = REPAINTS // (8 if quick else 2)
    times = [*_at_random_places(view, count), *_while_growing(view, count)]
    view.close()
    view.deleteLater()
    app.processEvents()
    return {
        "token view 10,000 tokens p95 (ms)": _p95([cpu for cpu, _ in times]),
        "token view 10,000 tokens p95, on the clock (ms)": _p95([wall for _, wall in times]),
    }


def _p95(times: list[float]) -> float:
    return sorted(times)[int(0.95 * len(times))]


def _at_random_places(view: TokenView, count: int) -> list[tuple[float, float]]:
    """Repaints after the text was scrolled."""
    rng, bar = random.Random(0), view.area.verticalScrollBar()
    times = []
    for _ in range(count):
        bar.setValue(rng.randint(0, bar.maximum()))
        times.append(_timed(view.area.viewport().repaint))
    return times


def _while_growing(view: TokenView, count: int) -> list[tuple[float, float]]:
    """Taking in one more token and painting everything in sight."""
    run = make_run(story(TOKENS))
    view.show_run(run)
    view.area.verticalScrollBar().setValue(view.area.verticalScrollBar().maximum())

    def grow(token: TokenChosen) -> None:
        run.apply([token])
        view.events_arrived(run, [token])
        view.area.viewport().repaint()

    return [_timed(partial(grow, token)) for token in story(count)]


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """Milliseconds of this thread's processor time, and on the clock."""
    cpu, wall = time.thread_time(), time.perf_counter()
    work()
    return (time.thread_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000
