"""Native sampler functions and statistics equal those of torch and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from decodescope import core
from decodescope.core.decoding import step_stats
from decodescope.core.decoding.step_details import FIXED_COLUMNS
from decodescope.core.decoding.step_stats import compute_native_stats
from decodescope.core.native import native_library
from decodescope.core.native.native_library import MAX_WITH_GIL
from decodescope.core.processors import Context, score_stats
from decodescope.core.processors.dry_multiplier import MIN_FOLLOWED, DryPenalty, find_repeats
from tests.core import tiny

pytestmark = pytest.mark.usefixtures("needs_compiler")
INFINITY = float("inf")
SIZES = (1, 7, 16, 61, 2048)


def scores_of(size: int, rows: int = 3) -> torch.Tensor:
    """The second row with a third of its tokens forbidden, but for the first."""
    scores = 4 * torch.randn(rows, size, generator=torch.Generator().manual_seed(size))
    scores[1:2, 1::3] = -INFINITY
    return scores


def context_of_tiny(**options: Any) -> Context:
    return Context(tiny.shared("llama"), {"do_sample": True, **options}, 2, 12, None, None, 1, torch.zeros)


def both(ask: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return the results with and without the native library."""
    assert native_library.library() is not None
    quick = ask()
    with monkeypatch.context() as patch:
        patch.setattr(score_stats, "get_native_library", lambda: None)
        return quick, ask()


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("size", SIZES)
def test_native_score_statistics_equal_torch(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = scores_of(size)
    for ask in (score_stats.entropies, score_stats.max_and_logsumexp):
        quick, slow = both(lambda ask=ask: ask(scores), monkeypatch)
        torch.testing.assert_close(torch.tensor(quick), torch.tensor(slow))
    quick, slow = both(lambda: score_stats.max_and_deviation(scores), monkeypatch)
    torch.testing.assert_close(torch.tensor([row[:2] for row in quick]), torch.tensor([row[:2] for row in slow]))
    assert [row[2] for row in quick] == [float(row[row.isfinite()].amin()) for row in scores]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threshold", [5e-324, 0.01, 0.1, 0.9])
@pytest.mark.parametrize("most", [1, 16, 4096])
def test_native_likely_tokens_equal_torch(
    size: int, threshold: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row in range(3):
        quick, slow = both(
            lambda row=row: score_stats.likely_tokens(scores_of(size), threshold, most, row), monkeypatch
        )
        assert (quick.tokens, quick.total) == (slow.tokens, slow.total)
        assert quick.probabilities == pytest.approx(slow.probabilities)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("size", SIZES)
def test_native_cuts_histograms_and_additions_equal_torch(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = scores_of(size)
    for floors in ([0.5, -INFINITY, 100.0], [float("nan")] * 3):
        quick, slow = both(lambda floors=floors: score_stats.cut_below(scores, floors), monkeypatch)
        assert torch.equal(quick, slow)
    more = {0: {0: -1.5}, 2: {0: -INFINITY, size - 1: 2.0}}
    quick, slow = both(lambda: score_stats.add_at_tokens(scores, more), monkeypatch)
    assert torch.equal(quick, slow)
    assert score_stats.add_at_tokens(scores, {0: {}}) is scores
    whole = scores[0].round()  # no score lies where one part ends by a hair
    ends = float(whole.amin()), float(whole.amax())
    quick, slow = both(lambda: score_stats.score_histogram(whole, *ends, 32), monkeypatch)
    assert sum(quick) == size
    assert quick == slow


@pytest.mark.usefixtures("built")
def test_histogram_excludes_forbidden_tokens() -> None:
    assert score_stats.score_histogram(torch.tensor([4.0, -INFINITY, 0.0, 2.0]), 0.0, 4.0, 4) == (1, 0, 1, 1)
    assert score_stats.score_histogram(torch.tensor([3.0, 3.0]), 3.0, 3.0, 4) in ((2, 0, 0, 0), (0, 0, 0, 2))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("seed", range(30))
def test_native_repeats_equal_those_of_numpy(seed: int) -> None:
    """In texts of few tokens, of which one ends passages; windows of each length, of the second of two texts."""
    dice = np.random.default_rng(seed)
    text = dice.integers(0, 4, size=2 + seed * 5)
    ids = torch.from_numpy(np.stack([text[::-1], text]).copy())
    breaks = np.zeros(5, np.int8)
    breaks[3], breaks[4] = seed % 2, 1
    window = int(dice.integers(1, len(text) + 1))
    found = score_stats.find_passages(ids, 1, window, (int(breaks.ctypes.data), 4), (2, MIN_FOLLOWED))
    end = text[-window:]
    wanted = [pair for pair in find_repeats(end, breaks[end].astype(bool), MIN_FOLLOWED) if pair[1] >= 2]
    assert found is not None
    assert sorted(found) == sorted(wanted)


@pytest.mark.usefixtures("built")
def test_unclassified_token_stops_the_native_search() -> None:
    breaks = np.array([0, -1, 1], np.int8)
    known = int(breaks.ctypes.data), 2
    assert score_stats.find_passages(torch.tensor([[0, 1, 0]]), 0, 3, known, (1, 9)) is None
    assert score_stats.find_passages(torch.tensor([[0, 1, 0]]), 0, 1, known, (1, 9)) == []


@pytest.mark.usefixtures("built")
def test_a_token_that_the_model_does_not_write_ends_a_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer may have more tokens than the model has rows: 0 1 2 7 0 1 2 repeats three, 0 99 2 7 0 99 2 one."""
    process = DryPenalty(0.8, context_of_tiny(dry_allowed_length=1))
    for text, longest in (([10, 11, 12, 7, 10, 11, 12], 3), ([10, 999, 12, 7, 10, 999, 12], 1)):
        quick, slow = both(lambda text=text: process(torch.tensor([text]), torch.zeros(1, 61)), monkeypatch)
        assert torch.equal(quick, slow)
        assert quick[0, 7].item() == pytest.approx(-0.8 * 1.75 ** (longest - 1))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("top_n", [0, 5])
@pytest.mark.parametrize("size", [23, 77, 2048, MAX_WITH_GIL + 3])  # the last one without the interpreter's lock
def test_native_step_statistics_equal_torch(top_n: int, size: int) -> None:
    """In float64: torch's sums of many float32 numbers are less exact than these."""
    raw = 4 * torch.randn(3, size, generator=torch.Generator().manual_seed(0))
    fewer = (raw / 0.7).masked_fill(raw < raw.median(), -torch.inf)
    turned = fewer - 3 * raw.abs()  # brings up others than the model's own first ones
    for scores in ([raw], [raw, raw / 0.7], [raw, raw / 0.7, fewer], [raw, fewer, fewer, turned]):
        chosen = scores[-1].argmax(-1)
        result, reference = (
            compute_native_stats(scores, chosen, top_n),
            step_stats._compute_with_torch([stage.double() for stage in scores], chosen, top_n),
        )
        assert result is not None
        torch.testing.assert_close(
            torch.tensor([list(row) for row in result]), torch.tensor([list(r) for r in reference])
        )
    assert top_n == 0 or max(result[0][-top_n:]) >= 0, "none is brought in, and a part was not tried"


@pytest.mark.usefixtures("built")
def test_unchanged_stage_reuses_the_previous_statistics() -> None:
    raw = torch.randn(1, 50, generator=torch.Generator().manual_seed(1))
    cut = raw.masked_fill(raw < 0, -torch.inf)
    (same,) = compute_native_stats([raw, cut, cut], cut.argmax(-1), 4) or ()
    (anew,) = compute_native_stats([raw, cut, cut.clone()], cut.argmax(-1), 4) or ()
    assert list(same) == pytest.approx(list(anew))
    assert same[FIXED_COLUMNS + 12 + 11 + 1] == 1.0  # of what came in, all is left


SAMPLERS: dict[str, dict[str, Any]] = {
    "dry": {"dry_multiplier": 0.8, "dry_allowed_length": 1},
    "xtc": {"xtc_probability": 0.5, "xtc_threshold": 0.02},
    "top-nσ": {"top_n_sigma": 1.0},
    "mirostat": {"mirostat_tau": 3.0},
    "dynatemp": {"dynatemp_high": 1.6, "dynatemp_low": 0.4},
}


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", SAMPLERS)
def test_native_and_torch_runs_report_the_same_for_each_sampler(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's pass is the same both times, and who measures its scores is not."""
    request = core.Request([5, 6, 7, 5, 6], {"max_new_tokens": 20}, "sampling", SAMPLERS[name], seed=3)

    def run_events() -> list[Any]:
        model = tiny.make("gpt2")
        events = core.stream(model, request)
        return [event for event in events if isinstance(event, core.events.TokenChosen)]

    quick, slow = both(run_events, monkeypatch)
    assert [event.id for event in quick] == [event.id for event in slow]
    for one, other in zip(quick, slow, strict=True):
        for stage, known in zip(one.funnel, other.funnel, strict=True):
            assert stage.survivors == known.survivors
            assert _numbers(stage.detail) == pytest.approx(_numbers(known.detail), rel=1e-4, abs=1e-5)


def _numbers(detail: Any) -> list[float]:
    """All numbers of a detail, in order."""
    if isinstance(detail, (int, float)):
        return [float(detail)]
    if isinstance(detail, tuple):
        return [number for item in detail for number in _numbers(item)]
    slots = getattr(detail, "__slots__", ())
    return [number for slot in slots for number in _numbers(getattr(detail, slot))]
