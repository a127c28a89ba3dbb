"""Texts are truncated between user-perceived characters."""

import pytest

from decodescope.core import beginning, cut_short

FAMILY = "👩\u200d👩\u200d👧\u200d👦"


@pytest.mark.parametrize(
    "text",
    [FAMILY, "e\u0301\u0302", "👍🏽", "🇩🇪", "1\ufe0f\u20e3", "नि", "🏴\U000e0067\U000e0062\U000e007f", "מּ", "مَ"],
)
def test_truncation_keeps_characters_whole(text: str) -> None:
    whole = f"a{text}{text}b"
    ends = {len(beginning(whole, most)) for most in range(len(whole) + 3)}
    assert ends == {0, 1, 1 + len(text), 1 + 2 * len(text), len(whole)}


def test_truncation_keeps_flag_emojis_whole() -> None:
    assert beginning("🇩🇪🇫🇷🇨🇳", 3) == "🇩🇪"
    assert beginning("🇩🇪🇫🇷🇨🇳", 4) == "🇩🇪🇫🇷"
    assert beginning("a🇩", 1) == "a"


def test_shortened_text_ends_with_an_ellipsis_within_the_limit() -> None:
    assert cut_short("从前有一只小兔子", 8) == "从前有一只小兔子"
    assert cut_short("从前有一只小兔子", 5) == "从前有一…"
    assert cut_short("one two", 5) == "one…"
    assert cut_short(f"ab{FAMILY}", 6) == "ab…"
