"""The baseline of the benchmarks: what counts as a change."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import core
from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks.baseline import Kept, changed, load, save, summary


def test_several_runs_give_the_median_and_how_far_they_strayed() -> None:
    runs = [{"a": 1.0, "b": 2.0}, {"a": 1.3, "b": 2.0}, {"a": 1.1}]
    assert summary(runs) == {"a": Kept(1.1, 1.3 - 1.1)}


def test_only_what_exceeds_its_noise_has_changed() -> None:
    kept = {"steady": Kept(1.0, 0.0), "noisy": Kept(1.0, 0.2)}
    assert changed("steady", 1.02, kept) == ""
    assert changed("steady", 0.9, kept) == "-0.10 from 1.00 ± 0.03"
    assert changed("noisy", 1.15, kept) == ""
    assert changed("noisy", 1.25, kept) == "+0.25 from 1.00 ± 0.20"
    assert changed("other", 1.0, kept) == "new"


def test_a_file_gives_back_what_was_kept(tmp_path: Path) -> None:
    kept = {"window ÷ core": Kept(0.91, 0.02)}
    save(tmp_path / "baseline.json", kept)
    assert load(tmp_path / "baseline.json") == kept


def test_figures_made_anew_leave_those_of_other_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, before = tmp_path / "baseline.json", {"lens": Kept(1.1, 0.1), "old": Kept(0.5, 0.1)}
    save(path, before)
    monkeypatch.setattr(benchmarks, "measured", lambda module, quick: iter([("old", 0.9), ("new", 2.0)]))
    monkeypatch.setattr(core, "build_kernels", lambda: core.BuildResult("ready", ""))
    for names, left in ((["trace"], ["lens", "old", "new"]), ([], ["old", "new"])):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *names, "--save", str(path), "--json"])
        benchmarks.main()
        kept = load(path)
        assert list(kept) == left
        assert kept["old"] == Kept(0.9, 0.0)
