"""Recording: overhead for a run and for the window, file size, and time to open a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.decode import PROMPT
from tests.benchmarks.timing import seconds, speed_ratio

SAMPLED: dict[str, Any] = {"do_sample": True, "temperature": 0.8, "top_k": 50, "top_p": 0.92}
TOKENS = 2000


def request(tokens: int, seed: int = 0) -> Any:
    """Return a sampled run of a fixed length, with ten alternatives per token and three stages."""
    from decodescope import core

    config = {**SAMPLED, "max_new_tokens": tokens, "min_new_tokens": tokens}
    return core.Request(PROMPT, config, strategy="sampling", top_n=10, seed=seed)


def core_ratio(folder: Path, tokens: int, rounds: int) -> float:
    """tokens/s of a recorded run ÷ those of the same run unrecorded."""
    from decodescope import core

    model, requested = core.load("storyteller"), request(tokens)

    def recorded() -> None:
        for _ in core.record(folder / "run", core.stream(model, requested), requested):
            pass

    def alone() -> None:
        for _ in core.stream(model, requested):
            pass

    return speed_ratio(recorded, alone, rounds)


def window_ratio(folder: Path, tokens: int, rounds: int) -> float:
    """The same through the window; a recorded run ends with its recording."""
    from PySide6.QtCore import QEventLoop
    from PySide6.QtWidgets import QApplication

    from decodescope import app
    from decodescope.app.state.worker_messages import LoadRequest, RunRequest

    application = QApplication.instance() or QApplication([])
    window = app.build_window(config_dir=folder / "settings")
    window.resize(1280, 800)
    window.show()
    application.processEvents()
    settings = {**SAMPLED, "max_new_tokens": tokens, "min_new_tokens": tokens}
    requested = RunRequest(PROMPT, strategy="sampling", config=settings, load=LoadRequest("storyteller"))

    def run(path: Path | None) -> None:
        loop = QEventLoop()
        window.session.set_recording(lambda _run: path)
        over = window.session.finished if path is None else window.session.recorded
        over.connect(loop.quit)
        window.session.start(requested)
        loop.exec()
        over.disconnect(loop.quit)

    ratio = speed_ratio(lambda: run(folder / "shown"), lambda: run(None), rounds)
    window.close()
    return ratio


def long_trace(folder: Path, tokens: int) -> Path:
    """Write a file of many tokens from ten runs, since the context is too short for one."""
    from decodescope import core
    from decodescope.core.events import Event, TokenChosen

    model = core.load("storyteller")

    def events() -> Iterator[Event]:
        for seed in range(10):
            for event in core.stream(model, request(tokens // 10, seed)):
                yield replace(event, step=event.step + seed * tokens // 10) if isinstance(event, TokenChosen) else event

    path = folder / "long"
    for _ in core.record(path, events(), request(tokens)):
        pass
    return path


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """Ratios (higher is better), megabytes and seconds (lower is better)."""
    from decodescope.core import trace

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = long_trace(folder, TOKENS)
        yield f"trace of {TOKENS:,} tokens (MB)", path.stat().st_size / 1e6
        yield f"opening a trace of {TOKENS:,} tokens (s)", median(seconds(lambda: trace.read(path)) for _ in range(7))
        tokens, rounds = (80, 3) if quick else (300, 9)
        yield "recording ÷ not recording", core_ratio(folder, tokens, rounds)
        yield "recording ÷ not recording, through the window", window_ratio(folder, tokens, rounds)
