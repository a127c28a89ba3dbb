"""The real core in the window: every cache, and running out of memory during a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.session.engine import CoreEngine
from decodescope.app.views.memory.view import MemoryView
from decodescope.app.window.main_window import MainWindow
from decodescope.core import caches
from decodescope.core.models.text_decoder import cache_name
from tests.ui.windows import WAIT_MS, find, run

LONG_MS = 6 * WAIT_MS
PROMPT = "Once upon a time, there was a little fox who lived in a den under the hill."


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> Iterator[MainWindow]:
    window = opened(qtbot, config_dir, CoreEngine())
    yield window
    window.close()


def opened(qtbot: QtBot, config_dir: Path, engine: CoreEngine) -> MainWindow:
    window = build_window(config_dir, engine)
    qtbot.addWidget(window)
    window.parts.settings_controller.choose(strategy="greedy")
    with qtbot.waitSignal(window.session.modelReady, timeout=LONG_MS):
        window.show()
    window.parts.settings_controller.set_values({"max_new_tokens": 24, "min_new_tokens": 24})
    window.parts.setup.prompt.set_prompt(PROMPT)
    window.parts.centre.show_view("memory")
    return window


def write(qtbot: QtBot, window: MainWindow) -> str:
    run(qtbot, window)
    return window.session.run.text


class NoMemory:
    """Make the model run out of memory once a cache in memory holds this number of tokens."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def __call__(self, _module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        import torch

        cache = kwargs.get(cache_name(_module))
        if type(cache).__name__ == "DynamicCache" and int(cache.get_seq_length()) >= self.tokens:
            raise torch.OutOfMemoryError("as the test wants it")


@pytest.mark.slow
def test_every_exact_cache_gives_same_text(qtbot: QtBot, window: MainWindow) -> None:
    texts = {}
    view = find(window, MemoryView, "memoryView")
    for name, backend in caches.registry.items():
        window.parts.settings_controller.choose(cache=name)
        if name in window.session.model.unsupported_caches:
            item = window.parts.toolbar.cache.model().item(window.parts.toolbar.cache.findData(name))
            assert not item.isEnabled()
            continue
        text = write(qtbot, window)
        assert window.session.run.outcome.kind == "completed", (name, window.session.run.outcome.error)
        assert view.model.plan.backend == name
        assert view.model.points[-1].bytes > 0
        if backend.exact:
            texts[name] = text
    assert len(texts) >= 4
    assert len(set(texts.values())) == 1


@pytest.mark.slow
def test_out_of_memory_falls_back_or_fails_with_error(qtbot: QtBot, config_dir: Path) -> None:
    engine = CoreEngine()
    window = opened(qtbot, config_dir, engine)
    whole = write(qtbot, window)
    hook = engine._model.model.register_forward_pre_hook(NoMemory(28), with_kwargs=True)
    window.parts.settings.compute.reuse = False
    assert write(qtbot, window) == whole
    assert "ran out of memory" in window.parts.centre.notice_banner.accessibleDescription()
    view = find(window, MemoryView, "memoryView")
    assert ("disk", "keys") in view.model.parts
    assert view.model.plan.backend == "offloaded"
    assert "Offloaded" in view.charts.notice.text()
    window.parts.settings.compute.memory_fallback = False
    beginning = write(qtbot, window)
    assert beginning
    assert whole.startswith(beginning)
    assert window.session.run.outcome.kind == "failed"
    assert window.parts.centre.error_banner.title.text() == "Out of memory"
    hook.remove()
    assert write(qtbot, window) == whole
    assert not window.parts.centre.error_banner.isVisible()
