"""Formatting of numbers and tokens."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import get_args

import pytest

from decodescope.core import words
from decodescope.core.events import Ending, Stage, TokenChosen
from decodescope.resources import depth


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (1.0, "≈ 100 %"), (0.314, "31 %"), (0.042, "4.2 %"), (0.004, "0.40 %"), (0.0004, "0.040 %"),
     (0.999, "99.90 %"), (0.99696, "99.70 %"), (0.99994, "99.99 %"),
     (0.9992, "99.92 %"), (0.99996, "> 99.99 %"), (0.0999, "10 %"), (0.00999, "1.0 %"),
     (0.000001, "< 0.001 %")],
)  # fmt: skip
def test_percentages(share: float, said: str) -> None:
    assert words.percent(share) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0001, "< 0.1 %"), (0.0042, "0.4 %"), (0.0949, "9.5 %"), (0.312, "31 %"), (0.9992, "99.9 %"),
     (0.9969, "99.7 %"), (0.99999, "> 99.9 %"), (0.0, "0 %"), (1.0, "≈ 100 %")],
)  # fmt: skip
def test_brief_percentages(share: float, said: str) -> None:
    assert words.brief_percent(share) == said
    assert len(said) <= len(words.LONGEST_PERCENT)


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (0.001, "< 1 %"), (0.004999, "< 1 %"), (0.314, "31 %"), (0.994, "99 %"), (0.9969, "> 99 %"),
     (1.0, "100 %"), (math.nan, "–")],
)  # fmt: skip
def test_whole_percentages_reach_0_and_100_only_exactly(share: float, said: str) -> None:
    assert words.whole_percent(share) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, ".00"), (0.001, "<.01"), (0.46, ".46"), (0.996, ">.99"), (1.0, "≈1"), (math.nan, "–")],
)
def test_percentages_of_tree_nodes_are_formatted(share: float, said: str) -> None:
    assert words.compact_share(share) == said


def test_probability_rounded_to_one_is_no_exact_100_percent() -> None:
    """In float32, the first of these logits leaves the others 1e-11 and less."""
    assert [words.percent(1.0), words.brief_percent(1.0)] == ["≈ 100 %"] * 2
    assert [words.percent(1.0, is_exact=True), words.brief_percent(1.0, is_exact=True)] == ["100 %"] * 2
    with depth.depth_context("plain"):
        assert [words.share(1.0), words.share(1.0, is_exact=True)] == ["more than 99 in 100", "10 in 10"]
    with depth.depth_context("exact"):
        assert [words.share(1.0), words.share(1.0, is_exact=True)] == ["≈ 1", "1"]


@pytest.mark.parametrize(("survivors", "said"), [(1, "100 %"), (3, "≈ 100 %")])
def test_only_survivor_has_exactly_100_percent(survivors: int, said: str) -> None:
    event = TokenChosen(
        0, 0, 5, " a", " a", 0.9, 1.0, -0.1, 0.0, 1, 0.3, 0.0, funnel=(Stage("top_k", "", survivors, 1, 1),)
    )
    assert words.final_percent(event) == said


def test_percentages_at_the_ends_use_the_given_words() -> None:
    assert [words.percent(share, "under", "over") for share in (1e-6, 0.99996)] == ["under 0.001 %", "over 99.99 %"]


@pytest.mark.parametrize("say", [words.percent, words.brief_percent])
def test_formatted_percentages_are_monotonic(say: object) -> None:
    def number(share: float) -> float:
        reported = say(share)  # type: ignore[operator]
        return float(reported.strip("<>≈% ")) + (
            1e-9 if reported.startswith(">") else -1e-9 if reported.startswith("<") else 0
        )

    shares = sorted({n / 7919 for n in range(7920)} | {10**-n for n in range(9)} | {1 - 10**-n for n in range(9)})
    assert all(number(one) <= number(other) for one, other in pairwise(shares))
    assert all(abs(number(share) - 100 * share) < 0.51 for share in shares)
    assert [share for share in shares if say(share) == "≈ 100 %"] == [1.0]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("number", "word"), [(1, "first"), (10, "tenth"), (11, "11th"), (22, "22nd"), (113, "113th"), (1001, "1,001st")]
)
def test_ordinals(number: int, word: str) -> None:
    assert words.ordinal(number) == word


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 B"), (1023, "1023 B"), (237_568, "232 KiB"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")]
)
def test_sizes(size: int, said: str) -> None:
    assert words.size(size) == said


@pytest.mark.parametrize(
    ("number", "said"), [(12, "12"), (532_000, "532 K"), (5_700_000, "5.7 M"), (1_240_000_000, "1.2 B")]
)
def test_magnitudes(number: int, said: str) -> None:
    assert words.magnitude(number) == said


def test_times_rates_counts_and_decimals() -> None:
    assert (words.duration(0.024), words.duration(1.26)) == ("24 ms", "1.3 s")
    assert (words.rate(1930), words.rate(2.34)) == ("1,930 tok/s", "2.3 tok/s")
    assert (words.count(1, "token"), words.count(1024, "token")) == ("1 token", "1,024 tokens")
    assert (words.decimal(-1.5), words.decimal(0.25, 1), words.decimal(-math.inf)) == ("−1.50", "0.2", "−∞")


@pytest.mark.parametrize(
    ("piece", "said"),
    [(" fox", "“fox”"), ("\n", "a line break"), (" ", "a space"), ("  \n", "whitespace"), ("", "an empty token"),
     ("<|eos|>", "⟨eos⟩"), ("</s>", "⟨/s⟩"), ("\x07", "“U+0007”"),
     (" \u200d", "“U+200D”"), ("\u202e", "“U+202E”"), ("\u202eevil", "“↔evil”"), ("\u0301", "“◌\u0301”"),
     ("👩\u200d👩", "“👩\u200d👩”")],
)  # fmt: skip
def test_tokens_are_quoted_by_one_name(piece: str, said: str) -> None:
    assert words.quote(piece) == said


def test_pieces_that_are_not_drawn_have_a_label() -> None:
    labels = [words.label(piece) for piece in (" \u200f", "\ufe0f", "\u200b", "\ufeff\u00ad", "\r\n", "\t", "e\u0301")]
    assert labels == ["␣U+200F", "U+FE0F", "U+200B", "U+FEFF␣U+00AD", "␍↵", "⇥", "e\u0301"]


def test_every_ending_has_a_text() -> None:
    assert set(words.ENDINGS) == set(get_args(Ending))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (59.4, "59 s"), (59.6, "1 min"), (3569, "59 min"), (3571, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_rounded_duration_has_the_unit_that_fits(seconds: float, text: str) -> None:
    assert words.rounded_duration(seconds) == text
