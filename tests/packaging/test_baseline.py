"""The baseline of the benchmarks: what counts as a change."""

from __future__ import annotations

from pathlib import Path

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
