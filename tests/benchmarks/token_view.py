"""How long the token view takes to paint itself with ten thousand tokens in it."""

from __future__ import annotations

import random
import time

from PySide6.QtWidgets import QApplication

from app.theme import theme_for
from app.views.tokens import TokenView
from tests.ui.scripted import make_run, story

TOKENS = 10_000
REPAINTS = 200


def measure() -> dict[str, float]:
    """95th percentile of repaints in milliseconds, at random places of the text and while it grows."""
    app = QApplication.instance() or QApplication(["token-view"])
    view = TokenView()
    view.set_theme(theme_for("light"))
    view.resize(740, 760)
    view.show()
    view.show_run(make_run(story(TOKENS)))
    app.processEvents()
    times = [*_at_random_places(view), *_while_growing(view)]
    view.close()
    view.deleteLater()
    app.processEvents()
    return {"token_view_repaint_p95_ms": sorted(times)[int(0.95 * len(times))]}


def _at_random_places(view: TokenView) -> list[float]:
    """Milliseconds of repaints after the text was scrolled."""
    rng, bar = random.Random(0), view.verticalScrollBar()
    times = []
    for _ in range(REPAINTS // 2):
        bar.setValue(rng.randint(0, bar.maximum()))
        times.append(_repaint(view))
    return times


def _while_growing(view: TokenView) -> list[float]:
    """Milliseconds of taking in one more token and painting it."""
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum())
    run = make_run(story(TOKENS))
    view.show_run(run)
    times = []
    for token in story(REPAINTS // 2):
        run.apply([token])
        begin = time.perf_counter()
        view.events_arrived(run, [token])
        times.append((time.perf_counter() - begin) * 1000 + _repaint(view))
    return times


def _repaint(view: TokenView) -> float:
    begin = time.perf_counter()
    view.viewport().repaint()
    return (time.perf_counter() - begin) * 1000
