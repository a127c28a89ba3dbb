"""Long sessions: runs release their resources, however many runs there are."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from decodescope import core
from decodescope.core import caches
from decodescope.core.caches.prefixes import prefix_store as prefixes
from decodescope.core.events import Prefilled
from tests.core import tiny

PROMPTS = 16


def helpers() -> list[str]:
    """Names of the threads that bring layers in."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("cache-prefetch")]


def ids(number: int) -> list[int]:
    """Prompts of which none begins as another."""
    return [10 + number, 5, 6, 7, 8]


def one(
    model: core.LoadedModel, number: int, store: core.PrefixStore, cache: str, folder: Path, **more: object
) -> None:
    """A run of three tokens whose cache is kept."""
    options = disk(folder) if cache.startswith("offloaded") else {}
    config = {"max_new_tokens": 3, "do_sample": False, **more}
    request = core.Request(ids(number), config, cache=cache, cache_options=options)
    for _event in core.stream(model, request, prefixes=store):
        pass


def disk(folder: Path) -> dict[str, object]:
    return {"place": "disk", "folder": str(folder)}


@pytest.fixture(scope="module")
def model() -> core.LoadedModel:
    return tiny.make("llama")


@pytest.mark.parametrize("cache", ["offloaded", "offloaded_static"])
def test_stored_disk_caches_hold_no_threads(model: core.LoadedModel, tmp_path: Path, cache: str) -> None:
    store, before = core.PrefixStore(), len(helpers())
    for number in range(12):
        one(model, number, store, cache, tmp_path)
    assert len(store.prefixes) == 12
    assert len(helpers()) == before
    oldest, backend = store.prefixes[0], caches.registry[cache]
    wanted = [*oldest.ids, 9]
    found = store.find(model, backend, disk(tmp_path), wanted, lambda: backend.build(model, 16, disk(tmp_path)))
    assert found is not None
    assert found.length == len(oldest.ids), "it can still be used"


def test_stored_disk_cache_is_reused_by_the_next_run(model: core.LoadedModel, tmp_path: Path) -> None:
    store = core.PrefixStore()
    config = {"max_new_tokens": 6, "do_sample": False}
    request = core.Request(ids(1), config, cache="offloaded", cache_options=disk(tmp_path))
    first, again = (core.run(model, request, prefixes=store) for _ in range(2))
    assert first.sequences == again.sequences
    assert [event.reused for event in again.events if isinstance(event, Prefilled)] == [len(ids(1)) - 1]


def test_number_of_stored_prefixes_is_limited(
    model: core.LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefixes, "MAX_PREFIXES", 5)
    store = core.PrefixStore()
    for number in range(9):
        one(model, number, store, "dynamic", tmp_path)
    assert [prefix.ids[0] for prefix in store.prefixes] == [14, 15, 16, 17, 18]


# Hundreds of runs


class Resources:
    """Threads, descriptors, temporary files and memory of this process."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._process = folder, psutil.Process()

    def now(self) -> dict[str, int]:
        gc.collect()
        count = self._process.num_handles() if sys.platform == "win32" else self._process.num_fds()
        return {
            "threads": self._process.num_threads(),
            "descriptors": count,
            "files": sum(len(files) for _folder, _folders, files in os.walk(self._folder)),
            "children": len(self._process.children(recursive=True)),
            "MiB": self._process.memory_info().rss >> 20,
        }


def _every_combination() -> Iterator[tuple[str, dict[str, object]]]:
    strategies: tuple[dict[str, object], ...] = (
        {}, {"do_sample": True}, {"num_beams": 2}, {"num_beams": 2, "num_return_sequences": 2},
        {"prompt_lookup_num_tokens": 2},
    )  # fmt: skip
    for cache in caches.registry:
        for flags in strategies:
            yield cache, flags


@pytest.mark.slow
def test_hundreds_of_runs_leak_no_resources(model: core.LoadedModel, tmp_path: Path) -> None:
    """All caches, several strategies, two models in turn, one store for all; the second half adds nothing."""
    store, models = core.PrefixStore(budget=8 * 1024**2), [model, tiny.make("gpt2")]
    watch = Resources(tmp_path)

    def runs(first: int) -> int:
        done = 0
        for number in range(first, first + PROMPTS // 4):
            for cache, flags in _every_combination():
                try:
                    one(models[done % 2], number % 30, store, cache, tmp_path, **flags)
                except core.errors.DecodescopeError:
                    continue  # not every strategy has every cache
                done += 1
        return done

    assert runs(0) > 50
    before = watch.now()
    assert runs(10) > 50
    after = watch.now()
    assert {name: after[name] - before[name] for name in ("threads", "descriptors", "files", "children")} == {
        "threads": 0, "descriptors": 0, "files": 0, "children": 0,
    }  # fmt: skip
    assert after["MiB"] - before["MiB"] < 64
