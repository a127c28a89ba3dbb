"""Display and copies of special tokens and of ordinary ones that look like them: the tokenizer decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from decodescope import core
from decodescope.app.session.worker_jobs import with_phrase_ids
from decodescope.app.state.branching import forbidden_ids, forbidden_reason
from decodescope.app.state.prompt_reuse import estimate_reuse
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.text.column import TokenColumn
from decodescope.app.views.text.row_painting import PaintOptions
from decodescope.app.views.text.token_text import TokenText, control_token_text
from decodescope.app.views.tokens.excerpt import coloured_html
from decodescope.app.views.tree.tree_content import prompt_end
from decodescope.core import words
from decodescope.core.events import Event, RunStarted, TokenChosen
from tests.core import tiny
from tests.core.tokenizer_families import FAMILIES, SPECIAL
from tests.ui import scripted

PROMPT = "Make <b>cat</b>"


@pytest.fixture(scope="module")
def model() -> core.LoadedModel:
    tokenizer = FAMILIES["byte level"]()
    tokenizer.add_tokens(["</b>"])
    made = tiny.make("llama", vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=1)
    made.tokenizer = tokenizer
    return made


def events_of(model: core.LoadedModel, prompt: str, forced: str, **more: Any) -> Sequence[Event]:
    """A run that writes one token."""
    token = model.tokenizer.convert_tokens_to_ids(forced)
    config = {"max_new_tokens": 1, "sequence_bias": {(token,): 60.0}, **more}
    return core.run(model, core.Request(prompt, config)).events


def test_ordinary_token_in_angle_brackets_is_shown_as_text(model: core.LoadedModel) -> None:
    events = events_of(model, PROMPT, "<b>")
    started = next(event for event in events if isinstance(event, RunStarted))
    chosen = next(event for event in events if isinstance(event, TokenChosen))
    assert (chosen.text, chosen.special, chosen.is_special) == ("<b>", False, False)
    shown = TokenText(started.prompt)
    assert shown.text == PROMPT
    assert shown.original_text(0, len(shown.text)) == PROMPT
    assert f"<title>{PROMPT.replace('<', '&lt;').replace('>', '&gt;')}" in core.page_text(events)
    run = Run(RunRequest(PROMPT))
    run.apply(events)
    assert prompt_end(run).endswith("<b>cat</b>")
    assert estimate_reuse(run, f"{PROMPT} and more") is not None
    assert "&lt;b&gt;cat&lt;/b&gt;" in coloured_html(started.prompt, [], "", PaintOptions(theme_for("light"), "none"))
    named = next(item for item in chosen.alternatives if item.id == chosen.id)
    assert words.label(named.text, named.special) == "<b>"
    assert words.quote(named.text, named.special) == "“<b>”"
    grammar = {"regex": "[a-z<>]+"}
    held = Run(RunRequest(PROMPT, options={"grammar": grammar}))
    held.apply(events)
    assert chosen.id not in forbidden_ids(held, chosen, grammar)
    assert forbidden_reason("<b>", False) == "“<b>”: not allowed by the grammar"


def test_special_token_of_decoder_is_shown_but_not_copied(model: core.LoadedModel) -> None:
    events = events_of(model, f"cat{SPECIAL}", SPECIAL)
    started = next(event for event in events if isinstance(event, RunStarted))
    chosen = next(event for event in events if isinstance(event, TokenChosen))
    assert (chosen.text, chosen.special, chosen.piece) == ("", True, SPECIAL)
    shown = TokenText(started.prompt)
    shown.append([chosen])
    assert shown.text == f"cat{control_token_text(SPECIAL)}\n{control_token_text(SPECIAL)}"
    assert shown.original_text(0, len(shown.text)) == "cat"


def test_beams_and_drafts_mark_special_tokens(model: core.LoadedModel) -> None:
    beams = core.run(model, core.Request("cat", {"max_new_tokens": 2, "num_beams": 2, "eos_token_id": None,
        "sequence_bias": {(model.tokenizer.convert_tokens_to_ids(SPECIAL),): 60.0}})).events  # fmt: skip
    found = [one for event in beams if isinstance(event, core.events.BeamStep) for one in event.candidates]
    assert {one.special for one in found if one.piece == SPECIAL} == {True}
    assert {one.special for one in found if one.piece != SPECIAL} <= {False}


def test_recording_without_special_flag_uses_spelling() -> None:
    assert words.control_name("<|end|>") == "end"
    assert words.control_name("<|end|>", False) == ""
    assert words.control_name("▁odd", True) == "▁odd"
    old = scripted.token(0, "", piece="<|end|>")
    assert old.is_special is None


@pytest.mark.parametrize("name", list(FAMILIES))
def test_banned_word_is_banned_in_every_position(name: str) -> None:
    """The bans cover the word at the start and after a bracket, quotation mark, line break or space."""
    tokenizer = FAMILIES[name]()
    made = tiny.make("llama", vocab_size=700)
    made.tokenizer = tokenizer
    bans = with_phrase_ids(made, RunRequest("x", config={"bad_words_ids": ["cat"]})).config["bad_words_ids"]
    for before in ("", "(", '"', "\n", "the "):
        ids = tokenizer.encode(f"{before}cat", add_special_tokens=False)
        assert any(ids[-len(ban) :] == ban for ban in bans), (before, tokenizer.convert_ids_to_tokens(ids))


@pytest.mark.parametrize("text", ["\n", "", "   ", "\u200b", " word"])
def test_row_of_token_view_is_bounded_in_length(qapp: object, text: str) -> None:
    """The last row is shaped again for every new token, so its number of pieces is limited."""
    column = TokenColumn(theme_for("light"), 0)
    tokens = [scripted.token(number, text, piece=text or "⟨E2⟩") for number in range(3000)]
    for end in range(0, len(tokens) + 1, 50):
        column.sync(tokens[:end], "", end)
    row = column.flow.rows[-1]
    assert row.end - row.start <= 2048
    most = 2048 if text == "\u200b" else 300  # characters without width, that is
    assert len(column.shaped_row(len(column.flow.rows) - 1).marks) <= most
