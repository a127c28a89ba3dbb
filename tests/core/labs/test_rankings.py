"""Rankings, the pairs that they imply, their files, and the rule of the bundled ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import comb
from pathlib import Path

import pytest

from decodescope.core.errors import PreferenceError
from decodescope.core.labs import preference
from decodescope.core.labs.preference import Pair, Ranking, judge, pairs, rank_by_rule, ranked

PROMPT = "Once upon a time, there was a little fox named Fern. Soon she met an owl named Max.\n"
GOOD = "Max helped Fern. After that, Fern and Max played together every day."


@pytest.mark.parametrize("count", [2, 4, 9])
def test_ranking_without_ties_yields_every_pair(count: int) -> None:
    found = pairs([str(number) for number in range(count)])
    assert len(found) == comb(count, 2)
    assert all(int(pair.chosen) < int(pair.rejected) for pair in found)


def test_tied_completions_yield_no_pair() -> None:
    assert pairs(["a", ["b", "c"], "d"]) == [
        Pair("", "a", "b"), Pair("", "a", "c"), Pair("", "a", "d"), Pair("", "b", "d"), Pair("", "c", "d")
    ]  # fmt: skip
    assert pairs([["a", "b"]]) == []


def test_all_forms_of_a_ranking_yield_the_same_pairs() -> None:
    whole = Ranking("p", ("worst", "best", "good"), (3, 1, 2))
    assert pairs(whole) == pairs({"prompt": "p", "completions": ["worst", "best", "good"], "ranks": [3, 1, 2]})
    assert pairs(whole) == pairs(ranked(["best", "good", "worst"], "p"))
    assert whole.groups == (("best",), ("good",), ("worst",))


@pytest.mark.parametrize("wrong", [["a"], ["a", "a"], [], {"completions": ["a", "b"], "ranks": [1]}, {"prompt": "a"}])
def test_invalid_ranking_raises_preference_error(wrong: object) -> None:
    with pytest.raises(PreferenceError):
        pairs(wrong)  # type: ignore[arg-type]  # what a reader of a file may meet


def test_rankings_and_pairs_come_back_from_their_files(tmp_path: Path) -> None:
    stored = [ranked(["a", ["b", "c"]], "once "), ranked(["d", "e"], "twice ")]
    preference.write_rankings(tmp_path / "rankings.jsonl", stored)
    assert preference.read_rankings(tmp_path / "rankings.jsonl") == stored
    assert preference.write_pairs(tmp_path / "pairs.jsonl", stored) == 3
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert rows[0] == {"prompt": "once ", "chosen": "a", "rejected": "b"}, "the three names that TRL reads"
    assert [pairs(one)[0] for one in preference.read_rankings(tmp_path / "pairs.jsonl")] == [
        pair for one in stored for pair in pairs(one)
    ]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"prompt": "p"}', '{"chosen": "a", "rejected": "a"}', '{"chosen": 1, "rejected": "b"}',
             '{"prompt": "p", "completions": ["a", "b"], "ranks": [1, "x"]}'],
)  # fmt: skip
def test_invalid_line_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"prompt": "p", "chosen": "a", "rejected": "b"}\n\n' + line + "\n")
    with pytest.raises(PreferenceError, match=r"Line 3 of mine\.jsonl"):
        preference.read_rankings(file)


def test_named_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "pipe.jsonl", Path("/dev/zero"), tmp_path):
        with pytest.raises(PreferenceError, match="a folder, a pipe or a device"):
            preference.read_rankings(path)


def test_empty_or_missing_file_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    for name in ("empty.jsonl", "gone.jsonl"):
        with pytest.raises(PreferenceError, match=name):
            preference.read_rankings(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "points"),
    [
        (GOOD, 4),
        ("Max helped Fern. Then Fern went home and slept well.", 2),
        ("Max helped Fern. After that, Fern and Rosie played together every day.", 3),
        ("Max helped Fern. After that, Max and Max played together every day.", 3),
        ("They sat down and sang. They sat down and sang. They played together.", 3),
        ("Max helped Fern. After that, Fern and Max played together every", 2),
    ],
)
def test_judge_gives_the_expected_points(text: str, points: int) -> None:
    assert judge(PROMPT, text).points == points


def test_equal_points_are_a_tie() -> None:
    home = "Then Fern went home and slept well."
    assert rank_by_rule(PROMPT, (home, GOOD, "Fern felt glad.")).ranks == (2, 1, 2)


def test_the_bundled_rankings_follow_the_rule() -> None:
    bundled = preference.bundled_rankings()
    assert len(bundled) >= 100
    assert all(rank_by_rule(one.prompt, one.completions) == one for one in bundled)
    assert all(4 <= len(one.completions) <= 9 and pairs(one) for one in bundled)


def test_importing_the_lab_loads_no_torch() -> None:
    code = (
        "import sys; from decodescope import core; "
        "core.labs.preference.pairs(['a', 'b']); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("given", [None, "abc", [1, 2], ["a", ["b", ["c"]]], 3])
def test_odd_ranking_argument_raises_preference_error(given: object) -> None:
    with pytest.raises(PreferenceError):
        pairs(given)  # type: ignore[arg-type]
