"""The token view's text and rows, without a window: the characters of each token and the line breaks."""

import itertools
import random
from collections.abc import Sequence

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.theme.theme import theme_for
from decodescope.app.views.text.column import CACHED_ROWS, TokenColumn
from decodescope.app.views.text.line_flow import LineFlow, ShapedLine, reads_right_to_left, utf16_offsets
from decodescope.app.views.text.token_text import TokenText, control_token_text
from decodescope.core import words
from decodescope.core.events import PromptToken
from tests.ui.scripted import PROMPT, STORY, end_token, prompt_tokens, story, token

UNICODE = (
    "Uni", "code", " 😀", "👩\u200d", "👧", " 日本", "語の", "テキスト", "。", " e", "\u0301", "té", " مرحبا",
    " بالعالم", "!",
    " and", " שלום", " back", "\n", "مر", "حبا", " بكم", " abc", "\n\n", "\t", "tab", "\r\n", "x", "\x07", "   ",
    " Donaudampfschifffahrtsgesellschaft", "s", "kapit", "än", "mütze" * 12, "\u2028", "end",
)  # fmt: skip


def tokens_of(pieces: Sequence[str]) -> list:
    return [token(n, piece, 0.5) for n, piece in enumerate(pieces)]


def grown(pieces: Sequence[str], width: float) -> LineFlow:
    flow, text = LineFlow(theme_for("light").font(18), width), ""
    for piece in pieces:
        text += piece
        flow.update(text)
    return flow


def test_every_character_maps_to_its_token() -> None:
    text = TokenText(prompt_tokens())
    text.append(tokens_of(STORY))
    assert text.text == "".join(PROMPT) + "".join(STORY)
    assert text.token_at(0) is None
    for index, piece in enumerate(STORY):
        start, end = text.token_span(index)
        assert text.text[start:end] == piece
        assert {text.token_at(place) for place in range(start, end)} == {index}


def test_original_text_is_exact() -> None:
    text = TokenText([PromptToken(1, "a\r\n"), PromptToken(2, "b")])
    text.append([token(0, "x\x07y"), token(1, ""), token(2, "€\u2028"), end_token(3), token(4, "\n")])
    assert text.original_text(0, len(text.text)) == "a\r\nbx\x07y€\u2028\n"
    start, end = text.token_span(0)
    assert text.original_text(start + 1, end) == "\x07y"
    assert "\x07" not in text.text
    assert "\r" not in text.text


def test_a_character_of_several_prompt_tokens_is_one_group(qtbot: QtBot) -> None:
    prompt = [PromptToken(1, "a"), PromptToken(2, "", "⟨E2⟩"), PromptToken(3, "", "⟨80⟩"), PromptToken(4, "’", "⟨99⟩")]
    column = TokenColumn(theme_for("light"), 0, [*prompt, PromptToken(5, "s")])
    assert column.text.text == "a’s"
    assert column.text.original_text(0, 3) == "a’s"
    assert column.text.multi_token_characters(0, 3) == [(1, 3)]
    assert column.text.multi_token_characters(2, 3) == []
    (left, right, count), line = column.shaped_row(0).groups[0], column.shaped_row(0).line
    assert (left, right, count) == (line.x(1), line.x(2), 3)


def test_tail_belongs_to_no_token() -> None:
    text = TokenText(prompt_tokens(("a",)))
    text.append([token(0, "b")])
    text.finish("\ufffd")
    assert text.original_text(0, len(text.text)) == "ab\ufffd"
    assert text.token_at(len(text.text) - 1) is None
    assert text.end_of_tokens(1) == len(text.text)
    assert text.end_of_tokens(0) == 1


@pytest.mark.parametrize(
    ("piece", "name"),
    [("<|end|>", "end"), ("</s>", "/s"), ("[SEP]", "SEP"), ("<eos>", "eos"), ("fox", ""), ("<", ""), ("a < b > c", "")],
)
def test_control_tokens_are_recognized_by_brackets(piece: str, name: str) -> None:
    assert words.control_name(piece) == name
    assert control_token_text(piece).strip() == name or not name


def test_control_token_starts_new_line() -> None:
    text = TokenText(prompt_tokens(("source", ".", "</s>")))
    text.append([token(0, "Summary")])
    assert text.text == f"source.{control_token_text('</s>')}\nSummary"
    assert text.original_text(0, len(text.text)) == "source.Summary"


@pytest.mark.parametrize("width", [60, 150, 333, 700])
def test_incremental_line_breaks_match_whole_text(qtbot: QtBot, width: float) -> None:
    rng = random.Random(width)
    pieces = [rng.choice((*STORY, *UNICODE)) for _ in range(300)]
    one_by_one, at_once = grown(pieces, width), grown(["".join(pieces)], width)
    assert [row.start for row in one_by_one.rows] == [row.start for row in at_once.rows]
    assert one_by_one.rows == at_once.rows


def test_words_are_broken_only_when_longer_than_line(qtbot: QtBot) -> None:
    text = "".join(STORY) * 20
    flow = grown([text], 220)
    assert len(flow.rows) > 20
    assert all(text[row.end - 1] in " \n" for row in flow.rows[:-1])
    long = grown(["a " + "m" * 200], 220)
    assert long.rows[0].end == 2
    assert len(long.rows) > 5


def test_line_break_starts_row_and_empty_rows_are_kept(qtbot: QtBot) -> None:
    flow = grown(["one\n", "\n", "two", "\n"], 400)
    assert [(row.start, row.end) for row in flow.rows] == [(0, 4), (4, 5), (5, 9), (9, 9)]


def test_rows_have_direction_of_their_paragraph(qtbot: QtBot) -> None:
    flow = grown(["abc مرحبا\nمرحبا abc " + "مرحبا " * 30], 300)
    assert [row.rtl for row in flow.rows[:2]] == [False, True]
    assert all(row.rtl for row in flow.rows[1:])
    assert reads_right_to_left("123 שלום")
    assert not reads_right_to_left("")


def test_right_to_left_words_are_laid_out_from_right(qtbot: QtBot) -> None:
    text = "שלום עולם"
    flow = grown([text], 300)
    line = ShapedLine(text, flow.rows[0], flow)
    (first,), (second,) = line.spans(0, 4), line.spans(5, 9)
    assert first[0] > second[1]
    assert first[1] == pytest.approx(300, abs=1)


def test_offsets_with_surrogate_pairs_are_correct(qtbot: QtBot) -> None:
    assert utf16_offsets("ab") is None
    assert utf16_offsets("a😀b") == [0, 1, 3, 4]
    text = "a😀b"
    flow = grown([text], 300)
    line = ShapedLine(text, flow.rows[0], flow)
    (smile,), (b,) = line.spans(1, 2), line.spans(2, 3)
    assert smile[1] == pytest.approx(b[0])
    assert line.offset_at((b[0] + b[1]) / 2) == 2


def column(pieces: Sequence[str], width: float = 400) -> TokenColumn:
    made = TokenColumn(theme_for("light"), 0, prompt_tokens())
    made.set_geometry(0, 0, width)
    made.sync(tokens_of(pieces), "", len(pieces))
    return made


def test_marks_cover_each_token_once_and_do_not_overlap(qtbot: QtBot) -> None:
    made = column(STORY * 3)
    seen: dict[int, int] = {}
    for row in range(len(made.flow.rows)):
        spans = [span for mark in made.shaped_row(row).marks for span in mark.spans]
        assert all(a[1] <= b[0] + 0.6 for a, b in itertools.pairwise(spans))
        for mark in made.shaped_row(row).marks:
            seen[mark.piece] = seen.get(mark.piece, 0) + 1
    assert set(seen) == set(range(made.text.prompt_pieces, made.text.prompt_pieces + 3 * len(STORY)))
    assert max(seen.values()) == 1


def test_an_unfinished_character_has_a_tick(qtbot: QtBot) -> None:
    made = TokenColumn(theme_for("light"), 0, ())
    made.set_geometry(0, 0, 400)
    made.sync([token(0, "a"), token(1, "", piece="⟨E2⟩"), token(2, "", piece="⟨82⟩"), token(3, "€")], "", 4)
    marks = made.shaped_row(0).marks
    assert [mark.tick is not None for mark in marks] == [False, True, True, False]
    assert made.rects(1)[0].left() < made.rects(2)[0].left()
    assert not made.rects(1)[0].isEmpty()


def test_rows_after_cursor_are_hidden_but_keep_height(qtbot: QtBot) -> None:
    made = column(STORY * 3, 300)
    height, rows = made.height, made.drawn_rows
    made.sync(made.text.tokens, "", 5)
    assert made.height == height
    assert made.drawn_rows < rows
    box = made.rects(3)[0]
    assert made.token_at(box.center().x(), box.center().y()) == 3
    assert made.token_at(box.center().x(), made.row_top(rows - 1) + 5) is None


def test_append_reshapes_only_last_rows(qtbot: QtBot) -> None:
    made = column(STORY * 10)
    stored = [made.shaped_row(row) for row in range(len(made.flow.rows))]
    made.sync([*made.text.tokens, token(0, " more")], "", 10 * len(STORY) + 1)
    assert all(made.shaped_row(row) is stored[row] for row in range(len(stored) - 1))


def test_memory_of_shaped_rows_is_bounded(qtbot: QtBot) -> None:
    made = column([piece.text for piece in story(6000)], 300)
    assert len(made.flow.rows) > CACHED_ROWS
    for row in range(len(made.flow.rows)):
        made.shaped_row(row)
    assert len(made._shaped_rows) <= CACHED_ROWS
