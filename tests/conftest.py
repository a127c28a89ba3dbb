"""Fixtures of all tests: no network, no screen, no user settings; the core's tests need no Qt."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from decodescope.resources.catalogs import compile_catalogs
from tests import fonts, native_level, required_tools

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication
    from pytestqt.qtbot import QtBot

gc.disable()  # while tests are collected: of what is imported nothing is garbage, and looking takes a fifth of the time
hypothesis.settings.register_profile("unhurried", deadline=None)  # a machine may be busy with other things
hypothesis.settings.load_profile("unhurried")

HAS_QT = importlib.util.find_spec("PySide6") is not None and importlib.util.find_spec("pytestqt") is not None
_HOME = Path(tempfile.mkdtemp(prefix="decodescope-tests-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)


def _isolate() -> None:
    """Set before torch, transformers or Qt are imported, for all of them read their settings only then."""
    fonts.choose(_HOME)
    os.environ.update(
        HOME=str(_HOME),
        HF_HUB_OFFLINE="1",
        HF_HOME=str(_HOME / "huggingface"),
        XDG_CONFIG_HOME=str(_HOME / "config"),
        XDG_CACHE_HOME=str(_HOME / "cache"),
        XDG_DATA_HOME=str(_HOME / "data"),
        XDG_STATE_HOME=str(_HOME / "state"),
        TOKENIZERS_PARALLELISM="false",
        # Only tests of the native code use it, and start a compiler; tests/native_level.py.
        DECODESCOPE_TEST_NATIVE_LEVEL=native_level.requested(),
        DECODESCOPE_NATIVE_LEVEL="off",
        DECODESCOPE_UNPACK="0",  # the tests of GGUF files test their blocks
        GSETTINGS_BACKEND="memory",  # reading a desktop's settings creates a file
        LC_ALL="C.UTF-8",  # the program follows the machine's language, and the tests read English
        LANGUAGE="",
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    for name in (
        "QT_SCALE_FACTOR",
        "QT_SCREEN_SCALE_FACTORS",
        "QT_FONT_DPI",
        "QT_STYLE_OVERRIDE",
        "QT_QPA_PLATFORMTHEME",
    ):
        os.environ.pop(name, None)


_isolate()
THREADS = int(os.environ["OMP_NUM_THREADS"].partition(",")[0])
"""What torch computes with at the beginning of each test."""
PATIENCE_MS = 60_000
"""Default timeout of a wait in a test."""
MOST_MEMORY_BYTES = 8 << 30
"""Private memory of a test process, or of one that it starts. The suite needs less than 2 GiB."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Without pytest-qt its settings in pyproject.toml would be unknown ones, which --strict-config refuses."""
    required_tools.add_option(parser)
    if HAS_QT:
        return
    parser.addini("qt_api", "read by pytest-qt")
    parser.addini("qt_log_level_fail", "read by pytest-qt")
    parser.addini("qt_log_ignore", "read by pytest-qt", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """Let a switch of the environment turn skips into failures, and compile translations that have changed."""
    _limit_memory()
    with suppress(ImportError):
        compile_catalogs()
    if not config.pluginmanager.is_registered(required_tools):
        config.pluginmanager.register(required_tools)


def _limit_memory() -> None:
    """Let a test that takes ever more memory fail by its name, before the system kills the whole process."""
    if sys.platform == "linux" and not Path("/proc/driver/nvidia").exists():  # CUDA reserves far more than it uses
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if hard == resource.RLIM_INFINITY or hard > MOST_MEMORY_BYTES:
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, hard))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the window's tests out where there is no Qt."""
    needs_qt = collection_path.name in {"ui", "app", "atspi"} and collection_path.parent == Path(__file__).parent
    return True if needs_qt and not HAS_QT else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long forms, and skip what needs a device this machine has not."""
    _thin_out(items)
    _deselect_long_tests(config, items)
    required_tools.keep_files_needing_tools(config, items)
    _skip_without_device(items)


def _thin_out(items: list[pytest.Item]) -> None:
    """Mark all cases of a test marked `every(n)` slow, except the first and each nth one."""
    seen = Counter[str]()
    for item in items:
        every, name = item.get_closest_marker("every"), item.nodeid.partition("[")[0]
        if every is not None and item.get_closest_marker("slow") is None:
            if seen[name] % every.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[name] += 1


def _deselect_long_tests(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect slow, fuzz and soak tests unless they are selected by marker: `pytest -m slow`, `pytest -m fuzz`."""
    left_out = [name for name in ("slow", "fuzz", "soak") if name not in config.option.markexpr]
    long = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]


def _skip_without_device(items: list[pytest.Item]) -> None:
    """Skip tests that need a missing device; torch is imported only for those."""
    on_device = [item for item in items if item.get_closest_marker("gpu")]
    if not on_device:
        return
    import torch

    if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
        for item in on_device:
            item.add_marker(pytest.mark.skip(reason=f"{required_tools.NEEDS_CARD}: CUDA or MPS"))


def pytest_collection_finish() -> None:
    """Freeze the objects imported so far, so that the garbage collector skips them."""
    _freeze_garbage()
    gc.enable()


def _freeze_garbage() -> None:
    """Freeze garbage that survives: collections after each window test would take long otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _freeze_after_each_file() -> Iterator[None]:
    """Freeze modules first imported by a test file, and cached models."""
    yield
    _freeze_garbage()


@pytest.fixture(autouse=True)
def _reset_torch_threads() -> Iterator[None]:
    """Reset torch's threads: a test may use more, and later tests would slow down."""
    yield
    if (torch := sys.modules.get("torch")) is not None and torch.get_num_threads() != THREADS:
        torch.set_num_threads(THREADS)


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    """An empty folder for one test's settings."""
    folder = tmp_path / "config"
    folder.mkdir()
    return folder


@pytest.fixture
def restore_english(qapp: QApplication) -> Iterator[None]:
    """Restore English after the windows of a test are closed."""
    from decodescope.app.theme.language import set_language
    from decodescope.resources.language import ENGLISH

    yield
    set_language(ENGLISH)


@pytest.fixture
def restore_usual_depth() -> Iterator[None]:
    """Restore the usual level of detail after a test."""
    from decodescope.resources import depth

    yield
    depth.set_depth(depth.USUAL)


@pytest.fixture
def qtbot(qtbot: QtBot) -> QtBot:
    """pytest-qt's, with more patience than its 5 seconds: a machine may be busy with other things."""
    for name in ("waitSignal", "waitSignals", "waitUntil", "waitExposed", "waitActive", "waitCallback"):
        setattr(qtbot, name, partial(getattr(qtbot, name), timeout=PATIENCE_MS))
    return qtbot


@pytest.fixture(autouse=True)
def _no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a window test that leaves threads, timers or windows, naming where they were created."""
    if "qapp" not in request.fixturenames:
        yield
        return
    from tests.leaks import LeakWatch

    request.getfixturevalue("qapp")
    with LeakWatch() as watch:
        yield
    leaks = watch.leaks()
    if leaks:
        pytest.fail("the test left behind:\n" + "\n".join(leaks), pytrace=False)
