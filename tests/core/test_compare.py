"""The same request on several caches."""

from __future__ import annotations

import csv
import io
import threading
from dataclasses import replace

import pytest
from transformers import GenerationConfig

import core
from core.compare import Compared, compare, to_csv
from tests.core import tiny

NAMES = tuple(core.caches.registry)


def rows(names: tuple[str, ...] = NAMES, **more: object) -> list[Compared]:
    config = GenerationConfig(max_new_tokens=40, min_new_tokens=40)
    return list(compare(tiny.shared("llama"), core.Request(tiny.prompt(70), config), names, **more))  # type: ignore[arg-type]


def test_each_cache_has_a_row_of_figures_or_a_reason() -> None:
    found = {row.cache: row for row in rows()}
    assert list(found) == list(NAMES)
    for name, row in found.items():
        refused = core.caches.registry[name].why_not(tiny.shared("llama"))
        assert (row.reason is None) == (refused is None)
        if row.reason is None:
            assert row.tokens == 40
            assert row.peak_bytes == max(size for _, size in row.growth)
            assert sum(size for _, size in row.places) == row.growth[-1][1]
            assert row.tokens_per_second
            assert row.time_to_first_token
            assert row.differs == (row.ids != found["dynamic"].ids)
        if row.reason is None and row.exact:
            assert (row.same_tokens, row.differs) == (40, False)


def test_settings_by_cache_and_the_place_of_the_first_difference() -> None:
    dynamic, one_bit = rows(("dynamic", "quantized"), options={"quantized": {"nbits": 1}})
    assert one_bit.differs
    assert one_bit.same_tokens is not None
    same = one_bit.same_tokens
    assert one_bit.ids[:same] == dynamic.ids[:same]
    assert one_bit.ids[same] != dynamic.ids[same]


def test_the_first_that_runs_is_the_reference() -> None:
    refused, first, second = rows(("sliding_window", "static", "dynamic"))
    assert refused.reason
    assert first.same_tokens == second.same_tokens == 40


def test_a_cache_that_fails_has_its_reason_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such kernel")

    broken = replace(core.caches.registry["static"], build=fail)
    monkeypatch.setitem(core.caches.registry._load(), "static", broken)
    first, static, last = rows(("dynamic", "static", "offloaded"))
    assert static.reason == "It failed: no such kernel."
    assert static.tokens is None
    assert (first.reason, last.reason, last.same_tokens) == (None, None, 40)


def test_stopping_ends_the_comparison() -> None:
    cancel = threading.Event()
    cancel.set()
    assert len(rows(cancel=cancel)) == 1


def test_the_table_as_csv() -> None:
    table = list(csv.DictReader(io.StringIO(to_csv(rows(("dynamic", "sliding_window"))))))
    assert [line["cache"] for line in table] == ["dynamic", "sliding_window"]
    assert table[0]["tokens"] == "40"
    assert table[0]["reason"] == table[1]["tokens"] == ""
    assert "window" in table[1]["reason"]
