"""Finding by a few letters: what fits, which letters are marked, and what comes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.control.palette.entry import Entry
from app.control.palette.finding import match
from app.control.palette.ranking import found

TITLES = ("Temperature", "Go to the prompt", "Top-p", "Typical", "Beam search", "Diverse beam search", "Speculation",
          "Split the views", "Settings…", "Text at 150 %")  # fmt: skip


def entry(title: str, *also: str, reason: str = "") -> Entry:
    return Entry(title, title, "Action", lambda: None, also, reason=reason)


def titles(query: str, *entries: Entry, recent: tuple[str, ...] = ()) -> list[str]:
    listed = entries or tuple(entry(title) for title in TITLES)
    return [item.entry.title for item in found(listed, query, recent)]


@pytest.mark.parametrize(
    ("query", "first"),
    [("temp", "Temperature"), ("bs", "Beam search"), ("dbs", "Diverse beam search"), ("TOP", "Top-p"),
     ("tp", "Top-p"), ("beam div", "Diverse beam search"), ("150", "Text at 150 %"), ("spec", "Speculation")],
)  # fmt: skip
def test_the_likeliest_comes_first(query: str, first: str) -> None:
    assert titles(query)[0] == first


def test_letters_out_of_order_are_not_found() -> None:
    assert titles("pmet") == []
    assert match("aa", "a") is None


def test_what_is_marked_are_the_letters_that_were_typed() -> None:
    best = match("dbs", "Diverse beam search")
    assert best is not None
    assert [("Diverse beam search")[place] for place in best.places] == ["D", "b", "s"]


@given(st.text(max_size=12), st.text(max_size=30))
def test_marked_letters_spell_what_was_typed(query: str, text: str) -> None:
    """The alignment never loses or moves a letter, whatever the script; what it finds is in order."""
    best = match(query, text)
    if best is None:
        return
    assert all(0 <= place < len(text) for place in best.places)
    if len(query.split()) == 1:
        word = query.split()[0]
        fold = [letter.lower()[:1] or letter for letter in word]
        assert [text[place].lower()[:1] or text[place] for place in best.places] == fold


def test_another_name_is_found_too_but_after_a_title() -> None:
    listed = (entry("温度", "Temperature"), entry("Temperature of the room"))
    assert titles("temp", *listed) == ["Temperature of the room", "温度"]
    assert titles("温", *listed) == ["温度"]
    assert found(listed, "temp", ())[1].places == ()


def test_what_was_used_last_comes_first_while_nothing_is_typed() -> None:
    assert titles("", recent=("Typical", "Top-p"))[:3] == ["Typical", "Top-p", "Temperature"]
    assert titles("t", recent=("Typical",))[0] == "Typical"


def test_what_cannot_be_done_comes_after_what_can() -> None:
    assert titles("beam", entry("Beam", reason="Not now."), entry("Beam sampling")) == ["Beam sampling", "Beam"]
    listed = (entry("Beam", reason="Not now."), entry("Top-p"), entry("Heat"))
    assert titles("", *listed, recent=("Beam", "Heat")) == ["Heat", "Top-p", "Beam"]
