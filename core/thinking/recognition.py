"""Find the thinking of an answer from its tokens or, where only that is known, from its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.thinking.marks import KNOWN_MARKS, ThinkingMark

if TYPE_CHECKING:
    from decodescope.core.events import PromptToken, RunStarted, TokenChosen

_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_QUOTES = "`\"'“‘«(["
_CHANNELS = re.compile(r"analysis(?=\S)(.*?)assistantfinal(.*)", re.DOTALL)
"""An answer of gpt-oss whose special tokens were left out."""


class AnswerThinking(NamedTuple):
    """The thinking of an answer, as ranges of its tokens."""

    thinking: str
    """Its text, without marks."""
    body: str
    """The rest of the answer."""
    ranges: tuple[tuple[int, int], ...] = ()
    """Ranges [start, stop) of the tokens of thinking, marks included."""
    is_open: bool = False
    """Whether the answer ends inside the thinking."""

    @property
    def token_count(self) -> int:
        """Number of tokens of thinking, marks included."""
        return sum(stop - start for start, stop in self.ranges)

    def contains(self, index: int) -> bool:
        """Return whether the token with this index belongs to the thinking."""
        return any(start <= index < stop for start, stop in self.ranges)


NO_THINKING = AnswerThinking("", "")


class _Span(NamedTuple):
    """Thinking in a text: its outer range with the marks, and the inner one without."""

    start: int
    inner_start: int
    inner_end: int
    end: int
    is_closed: bool


def find_thinking(started: RunStarted | None, tokens: Sequence[TokenChosen], tail: str = "") -> AnswerThinking:
    """Return the thinking of a run's text. `tail`: text after the last token (`SequenceFinished.tail`).

    The marks are those that the run recorded, otherwise all known ones. Thinking may have been opened by the prompt or
    by the given beginning of the answer, which counts as thinking too.
    """
    marks = _marks_of(started)
    beginning = started.beginning if started is not None else ()
    before = is_thinking_open(started.prompt, marks) if started is not None else None
    visible = [*(token.text for token in beginning), *(token.text for token in tokens)]
    parts = [*map(_prompt_part, beginning), *map(_token_part, tokens)]
    flags = [*(token.special for token in beginning), *(token.special for token in tokens)]
    special = {index for index, flag in enumerate(flags) if flag}
    found = split_answer(parts, visible, marks, before, special, tail)
    skipped = len(beginning)
    ranges = tuple((max(start - skipped, 0), stop - skipped) for start, stop in found.ranges if stop > skipped)
    return found._replace(ranges=ranges)


def _marks_of(started: RunStarted | None) -> tuple[ThinkingMark, ...]:
    if started is None or not started.thinking:
        return KNOWN_MARKS
    return tuple(ThinkingMark(*mark) for mark in started.thinking)


def _token_part(token: TokenChosen) -> str:
    return token.piece if token.special and not token.text else token.text


def _prompt_part(token: PromptToken) -> str:
    return (token.piece or token.text) if token.special else token.text


def is_thinking_open(prompt: Sequence[PromptToken], marks: Sequence[ThinkingMark] = KNOWN_MARKS) -> bool:
    """Return whether an answer after these tokens begins inside thinking, as `is_open_after`."""
    return is_open_after([*map(_prompt_part, prompt)], [bool(token.special) for token in prompt], marks)


def is_open_after(parts: Sequence[str], special: Sequence[bool], marks: Sequence[ThinkingMark]) -> bool:
    """Return whether an answer after a prompt begins inside thinking: a mark at the start of a line was opened, and
    neither closed nor followed by a special token, as in a user's question about it.

    `parts`: what each token writes, special tokens by their names; `special`: whether each is special.
    """
    text, starts = _join(parts)
    places = [start for start, flag in zip(starts, special, strict=True) if flag]
    for mark in marks:
        place = text.rfind(mark.opening)
        end = place + len(mark.opening)
        if place < 0 or mark.closing in text[end:] or (places and places[-1] >= end):
            continue
        line = text[text.rfind("\n", 0, place) + 1 : place]
        if not line.strip() or not text[end:].strip() or any(place - 1 <= start <= place for start in places):
            return True
    return False


def split_text(text: str, marks: Sequence[ThinkingMark] = KNOWN_MARKS, is_open: bool | None = None) -> AnswerThinking:
    """Return the thinking of an answer of which only the text is known. `is_open`: whether the prompt opened it; None
    if that is not known.
    """
    return split_answer([text], [text], marks, is_open)


def split_answer(
    parts: Sequence[str], visible: Sequence[str], marks: Sequence[ThinkingMark], is_open: bool | None,
    special: set[int] | frozenset[int] = frozenset(), tail: str = "",
) -> AnswerThinking:  # fmt: skip
    """Return the thinking of an answer.

    `parts`: what each token writes, special tokens by their names; `visible`: what each adds to the shown text;
    `special`: indices of special tokens; `is_open`: whether the prompt opened the thinking, None if that is unknown.
    """
    text, starts = _join(parts)
    text, marks = _fold(text), [ThinkingMark(*map(_fold, mark)) for mark in marks]
    if is_open is not True and not any(mark.opening in text or mark.closing in text for mark in marks):
        shown = "".join(visible) + tail
        if (found := _CHANNELS.fullmatch(shown)) and any(mark.header for mark in marks):
            ranges = _token_ranges(starts, [(0, found.start(2))], len(text)) if shown == "".join(parts) + tail else ()
            return AnswerThinking(found[1].strip(), found[2], ranges)
        return AnswerThinking("", shown)
    spans = _find_spans(text, marks, is_open, {starts[index] for index in special})
    if not spans:
        return AnswerThinking("", "".join(visible) + tail)
    thinking = [_cut(starts, parts, visible, span.inner_start, span.inner_end) for span in spans]
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text)]
    bodies = [_cut(starts, parts, visible, *edges[index : index + 2]) for index in range(0, len(edges), 2)]
    is_cut_off = not spans[-1].is_closed
    if is_cut_off:
        thinking[-1] += tail
    body = "".join(bodies) + (tail if not is_cut_off else "")
    return AnswerThinking(
        "\n\n".join(part for part in map(str.strip, thinking) if part),
        body.lstrip() if not text[: spans[0].start].strip() else body,
        _token_ranges(starts, [(span.start, span.end) for span in spans], len(text)),
        is_cut_off,
    )


def _fold(text: str) -> str:
    """Return the text with the letters A to Z in lower case; all positions stay the same."""
    return text.translate(_LOWER)


_LOWER = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}


def _join(parts: Sequence[str]) -> tuple[str, list[int]]:
    """Return the whole text, and the position at which each part begins."""
    starts, length = [], 0
    for part in parts:
        starts.append(length)
        length += len(part)
    return "".join(parts), starts


def _token_ranges(starts: Sequence[int], spans: Sequence[tuple[int, int]], length: int) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the tokens that begin inside the spans of characters."""
    found, index = [], 0
    for start, end in spans:
        while index < len(starts) and starts[index] < start:
            index += 1
        first = index
        while index < len(starts) and (starts[index] < end or (end == length and starts[index] <= end)):
            index += 1
        found.append((first, index))
    return tuple(found)


def _cut(starts: Sequence[int], parts: Sequence[str], visible: Sequence[str], start: int, end: int) -> str:
    """Return the shown text between two positions of the whole text."""
    if len(parts) == 1:
        return parts[0][start:end] if parts[0] == visible[0] else ""
    found = []
    for place, part, shown in zip(starts, parts, visible, strict=True):
        if place + len(part) <= start or place >= end:
            continue
        is_whole = start <= place and place + len(part) <= end
        found.append(shown if is_whole else part[max(start - place, 0) : end - place] if part == shown else "")
    return "".join(found)


def _find_spans(text: str, marks: Sequence[ThinkingMark], is_open: bool | None, special: set[int]) -> list[_Span]:
    """Return the spans of thinking. `special`: positions at which a special token begins, which is always a mark."""
    spans: list[_Span] = []
    position = 0
    if is_open is True:
        again = next((mark for mark in marks if text.lstrip().startswith(mark.opening)), None)
        inner = text.index(again.opening) + len(again.opening) if again is not None else 0
        spans.append(_span_from(text, 0, inner, marks, special))
        position = spans[-1].end
    while spans == [] or spans[-1].is_closed:
        opening = _next_opening(text, position, marks, special, is_first=not spans)
        if opening is None:
            break
        mark, place = opening
        spans.append(_span_from(text, place, place + len(mark.opening), [mark], special))
        position = spans[-1].end
    if not spans or spans[0].start > 0:
        spans = _without_opening(text, marks, spans, special)
    return spans


def _without_opening(text: str, marks: Sequence[ThinkingMark], spans: list[_Span], special: set[int]) -> list[_Span]:
    """Return the spans, and before them thinking that is closed without having been opened."""
    limit = spans[0].start if spans else len(text)
    for mark in marks:
        place = text.find(mark.closing, 0, limit)
        if place < 0 or mark.header or mark.opening in text[:place]:
            continue
        before = text[:place]
        if place in special or not ("`" in before or _is_mention(text, place, mark.closing)):
            end = _after_header(text, place + len(mark.closing), mark)
            return [_Span(0, 0, place, end, True), *spans]
    return spans


def _next_opening(
    text: str, start: int, marks: Sequence[ThinkingMark], special: set[int], is_first: bool
) -> tuple[ThinkingMark, int] | None:
    """Return the next mark that opens thinking: at the start of the text or of a line outside code, or a token."""
    places = sorted(
        (found.start(), -len(mark.opening), mark)
        for mark in marks
        for found in re.finditer(re.escape(mark.opening), text[start:] if start else text)
    )
    for place, _, mark in places:
        place += start
        before = text[start:place]
        is_at_start = not before.strip()
        begins_line = not before[before.rfind("\n") + 1 :].strip()
        is_attached = not is_first and before[-1:] not in (" ", *_QUOTES)
        is_in_code = len(_FENCE.findall(text[:place])) % 2 == 1
        if place in special or is_at_start or (not is_in_code and (begins_line or is_attached)):
            return mark, place
    return None


def _span_from(text: str, start: int, inner: int, marks: Sequence[ThinkingMark], special: set[int]) -> _Span:
    """Return the span that begins at `start`, to its closing mark or the end of the text.

    A mark that a sentence mentions closes it only if no other one follows before the next opening.
    """
    places = sorted(
        (inner + found.start(), mark) for mark in marks for found in re.finditer(re.escape(mark.closing), text[inner:])
    )
    limit = min((found for mark in marks if (found := text.find(mark.opening, inner)) >= 0), default=len(text))
    near = [one for one in places if one[0] < limit] or places
    real = [one for one in near if one[0] in special or not _is_mention(text, one[0], one[1].closing)]
    if not (real or near):
        return _Span(start, inner, len(text), len(text), False)
    place, mark = (real or near)[0]
    return _Span(start, inner, place, _after_header(text, place + len(mark.closing), mark), True)


def _is_mention(text: str, place: int, mark: str) -> bool:
    """Return whether a mark stands inside a sentence: separated from words on both sides, or quoted."""
    before, after = text[place - 1 : place] if place else "", text[place + len(mark) : place + len(mark) + 1]
    return (before in (" ", *_QUOTES) and before != "") and (after in " `\"'”’»),.;:!?" and after != "")


def _after_header(text: str, end: int, mark: ThinkingMark) -> int:
    """Return the position after a closing mark and the header that may follow it."""
    if mark.header:
        rest = text[end:]
        if rest.lstrip().startswith(mark.header):
            return end + len(rest) - len(rest.lstrip()) + len(mark.header)
    return end
