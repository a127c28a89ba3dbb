"""Palette search by word prefixes: matches, highlighted letters, and order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decodescope.app.features.palette.controller.entry import PaletteEntry
from decodescope.app.features.palette.controller.search import match, rank_entries

TITLES = ("Temperature", "Go to the prompt", "Top-p", "Typical", "Beam search", "Diverse beam search", "Speculation",
          "Split the views", "Settings…", "Text at 150 %")  # fmt: skip


def entry(title: str, *also: str, reason: str = "") -> PaletteEntry:
    return PaletteEntry(title, title, "Action", lambda: None, also, reason=reason)


def titles(query: str, *entries: PaletteEntry, recent: tuple[str, ...] = ()) -> list[str]:
    listed = entries or tuple(entry(title) for title in TITLES)
    return [item.entry.title for item in rank_entries(listed, query, recent)]


@pytest.mark.parametrize(
    ("query", "first"),
    [("temp", "Temperature"), ("bs", "Beam search"), ("dbs", "Diverse beam search"), ("TOP", "Top-p"),
     ("tp", "Top-p"), ("beam div", "Diverse beam search"), ("150", "Text at 150 %"), ("spec", "Speculation")],
)  # fmt: skip
def test_best_match_is_first(query: str, first: str) -> None:
    assert titles(query)[0] == first


def test_letters_out_of_order_are_not_found() -> None:
    assert titles("pmet") == []
    assert match("aa", "a") is None


def test_match_marks_initials_of_words() -> None:
    best = match("dbs", "Diverse beam search")
    assert best is not None
    assert [("Diverse beam search")[place] for place in best.positions] == ["D", "b", "s"]


@given(st.text(max_size=12), st.text(max_size=30))
def test_matched_positions_spell_query(query: str, text: str) -> None:
    """No letter is lost or moved, whatever the script; what is found is in order."""
    best = match(query, text)
    if best is None:
        return
    assert all(0 <= place < len(text) for place in best.positions)
    assert list(best.positions) == sorted(set(best.positions))
    words = query.split()
    if len(words) == 1 and any(letter.isalnum() for letter in query):
        typed = [letter.lower()[:1] or letter for letter in words[0] if letter.isalnum()]
        assert [text[place].lower()[:1] or text[place] for place in best.positions] == typed


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("save", ["Save", "Save the run", "Keep", "Auto save", "Unsaved"]),
        ("SAVE", ["Save", "Save the run", "Keep", "Auto save", "Unsaved"]),
    ],
)
def test_order_is_exact_prefix_synonym_word_part(query: str, order: list[str]) -> None:
    listed = (entry("Unsaved"), entry("Keep", "save"), entry("Auto save"), entry("Save the run"), entry("Save"))
    assert titles(query, *listed) == order


@pytest.mark.parametrize("query", ["topp", "top p", "top-p", "Top P"])
def test_punctuation_in_query_is_ignored(query: str) -> None:
    assert titles(query)[0] == "Top-p"


def test_scattered_letters_are_no_match() -> None:
    assert match("csv", "Contrastive search with variety") is None
    assert match("hlp", "Help") is None


def test_chinese_title_matches_any_character() -> None:
    assert titles("温", entry("设定温度"), entry("温度")) == ["温度", "设定温度"]
    assert titles("温度", entry("Temperature", "温度")) == ["Temperature"]


def test_query_words_match_across_title_and_synonyms() -> None:
    assert titles("bigger text", entry("Larger text", "bigger", "font")) == ["Larger text"]


def test_misspelled_query_matches_only_without_exact_match() -> None:
    listed = (entry("Temperature"), entry("Tempo"))
    assert titles("temprature", *listed) == ["Temperature"]
    assert titles("tempearture", *listed) == ["Temperature"]
    assert titles("tempo", *listed) == ["Tempo"]
    assert titles("tmp", *listed) == []


def test_synonym_match_ranks_after_title_match() -> None:
    listed = (entry("温度", "Temperature"), entry("Temperature of the room"))
    assert titles("temp", *listed) == ["Temperature of the room", "温度"]
    assert titles("温", *listed) == ["温度"]
    assert rank_entries(listed, "temp", ())[1].positions == ()


def test_empty_query_lists_recent_entries_first() -> None:
    assert titles("", recent=("Typical", "Top-p"))[:3] == ["Typical", "Top-p", "Temperature"]
    assert titles("t", recent=("Typical",))[0] == "Typical"


def test_disabled_entries_rank_after_enabled() -> None:
    listed = (entry("Beam search", reason="Not now."), entry("Beam sampling"))
    assert titles("beam", *listed) == ["Beam sampling", "Beam search"]
    assert titles("beam search", *listed)[0] == "Beam search", "who types the whole title wants to know why not"
    listed = (entry("Beam", reason="Not now."), entry("Top-p"), entry("Temperature"))
    assert titles("", *listed, recent=("Beam", "Temperature")) == ["Temperature", "Top-p", "Beam"]
