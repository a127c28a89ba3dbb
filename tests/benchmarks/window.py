"""The window against the core alone: tokens/s, frame times during a run, and start-up time."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from tests.benchmarks.decode import PROMPT
from tests.benchmarks.timing import percentile, speed_ratio

TICK = 5
"""Milliseconds between two looks at the event loop."""
REST = 200
"""Milliseconds behind a run, for what the window does once its text is there: the recording's end, the history, views
out of sight."""

QUIET = {"QT_LOGGING_RULES": "default.warning=false"}
"""For processes whose start is timed: the offscreen platform warns of each window that has size limits."""
WARM = 3
"""Runs before anything is timed: the first ones make what a window makes once."""

_BARE = """
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow
application = QApplication([])
window = QMainWindow()
window.setCentralWidget(QLabel("hello"))
"""
_OURS = """
import tempfile
from PySide6.QtWidgets import QApplication
application = QApplication([])
from decodescope import app
window = app.build_window(config_dir=tempfile.mkdtemp(), assembled=False)
"""
_FILLED = """
import os
window.firstPainted.connect(lambda: os._exit(0))
window.assemble()
while True:
    application.processEvents()
"""
_SHOW = """
window.resize(1280, 800)
window.show()
while window.windowHandle() is None or not window.windowHandle().isExposed():
    application.processEvents()
window.repaint()
"""
_LEAVE = """
import os
os._exit(0)
"""


def start_ratio(rounds: int, assembled: bool) -> float:
    """Return the time from starting Python to the painted window, ÷ the same for an empty window of plain PySide6.

    The program shows its frame first (`assembled` False) and then fills it. The time ends when all visible parts are
    filled; views that are created later, while the program is idle, are not counted.
    """
    # As when installed: compiled modules are kept between starts.
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPYCACHEPREFIX": tempfile.mkdtemp(), **QUIET}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def start(code: str) -> Any:
        return subprocess.run([sys.executable, "-c", code + _LEAVE], check=True, env=environment)

    ours = _OURS + _SHOW + (_FILLED if assembled else "")
    return 1 / speed_ratio(lambda: start(ours), lambda: start(_BARE + _SHOW), rounds)


def run_ratio(tokens: int, rounds: int) -> tuple[float, list[float]]:
    """(tokens/s through the window ÷ the core's alone, lateness in ms of a steady tick while the window runs).

    Through the window: from the order to the moment when the run has ended and everybody has been told. The tick runs
    in rounds of its own: it would take its share of the run's time.
    """
    from PySide6.QtCore import QEventLoop, QTimer
    from PySide6.QtWidgets import QApplication
    from transformers import GenerationConfig

    from decodescope import app, core
    from decodescope.app.state.worker_messages import LoadRequest, RunRequest

    application = QApplication.instance() or QApplication([])
    window = app.build_window(config_dir=tempfile.mkdtemp())
    window.resize(1280, 800)
    window.show()
    application.processEvents()
    model = core.load("storyteller")
    ids = model.tokenizer(PROMPT)["input_ids"]
    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens}
    request = RunRequest(PROMPT, strategy="greedy", config=settings, load=LoadRequest("storyteller"))
    late: list[float] = []

    def through_the_window() -> None:
        loop = QEventLoop()
        window.session.finished.connect(loop.quit)
        window.session.start(request)
        loop.exec()
        window.session.finished.disconnect(loop.quit)

    def watched() -> None:
        timer, last = QTimer(), [time.perf_counter()]

        def tick() -> None:
            now = time.perf_counter()
            late.append(max(0.0, (now - last[0]) * 1000 - TICK))
            last[0] = now

        timer.timeout.connect(tick)
        timer.start(TICK)
        through_the_window()
        timer.stop()

    def core_alone() -> None:
        core.run(model, core.Request(ids, GenerationConfig(**settings), strategy="greedy"))

    def rest() -> None:
        loop = QEventLoop()
        QTimer.singleShot(REST, loop.quit)
        loop.exec()

    for _ in range(WARM):
        through_the_window()
        rest()
    ratio = speed_ratio(through_the_window, core_alone, rounds, rest)
    for _ in range(rounds):
        rest()
        watched()
    window.close()
    return ratio, late


def run_ratios(tokens: int, rounds: int, processes: int) -> tuple[float, list[float]]:
    """Return the median of `run_ratio` in several processes, and the lateness in all of them. The place of a process in
    memory makes one of them several percent faster than the next.
    """
    code = (
        "import json, os, torch; from tests.benchmarks.window import run_ratio\n"
        "torch.set_num_threads(1 if (os.cpu_count() or 2) <= 2 else 2)\n"
        f"print(json.dumps(run_ratio({tokens}, {rounds})), flush=True); os._exit(0)"
    )
    command, environment = [sys.executable, "-c", code], {**os.environ, "QT_QPA_PLATFORM": "offscreen", **QUIET}
    answers = [
        subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
        for _ in range(processes)
    ]
    found = [json.loads(answer.splitlines()[-1]) for answer in answers]
    return statistics.median(ratio for ratio, _ in found), [lag for _, late in found for lag in late]


def measure(quick: bool = False) -> dict[str, float]:
    """Ratios (higher is better) and milliseconds (lower is better)."""
    ratio, late = run_ratios(80, 3, 1) if quick else run_ratios(200, 9, 7)
    return {
        "window ÷ core": ratio,
        "event-loop lag p99 (ms)": percentile(late, 0.99),
        "window on screen ÷ bare PySide6": start_ratio(3 if quick else 21, assembled=False),
        "window complete ÷ bare PySide6": start_ratio(3 if quick else 21, assembled=True),  # pairs scatter by 0.2
    }
