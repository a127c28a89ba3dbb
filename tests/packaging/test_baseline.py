"""The baseline of the benchmarks: what counts as a change."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from decodescope import core
from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks.baseline import BaselineValue, changed, load, save, summary


def test_summary_contains_median_and_spread_of_several_runs() -> None:
    runs = [{"a": 1.0, "b": 2.0}, {"a": 1.3, "b": 2.0}, {"a": 1.1}]
    assert summary(runs) == {"a": BaselineValue(1.1, 1.3 - 1.1)}


def test_only_values_beyond_their_noise_are_changed() -> None:
    stored = {"steady": BaselineValue(1.0, 0.0), "noisy": BaselineValue(1.0, 0.2)}
    assert changed("steady", 1.02, stored) == ""
    assert changed("steady", 0.9, stored) == "-0.10 from 1.00 ± 0.03"
    assert changed("noisy", 1.15, stored) == ""
    assert changed("noisy", 1.25, stored) == "+0.25 from 1.00 ± 0.20"
    assert changed("other", 1.0, stored) == "new"


def test_saved_baseline_can_be_loaded(tmp_path: Path) -> None:
    stored = {"window ÷ core": BaselineValue(0.91, 0.02)}
    save(tmp_path / "baseline.json", stored)
    assert load(tmp_path / "baseline.json") == stored


def test_new_measurements_keep_those_of_other_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, before = tmp_path / "baseline.json", {"lens": BaselineValue(1.1, 0.1), "old": BaselineValue(0.5, 0.1)}
    save(path, before)
    monkeypatch.setattr(benchmarks, "measured", lambda module, quick: iter([("old", 0.9), ("new", 2.0)]))
    monkeypatch.setattr(core, "build_kernels", lambda: core.BuildResult("ready", ""))
    for names, left in ((["trace"], ["lens", "old", "new"]), ([], ["old", "new"])):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *names, "--save", str(path), "--json"])
        benchmarks.main()
        stored = load(path)
        assert list(stored) == left
        assert stored["old"] == BaselineValue(0.9, 0.0)
