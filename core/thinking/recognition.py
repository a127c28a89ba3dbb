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
    marks = marks_of(started)
    beginning = started.beginning if started is not None else ()
    before = is_thinking_open(started.prompt, marks) if started is not None else None
    visible = [*(token.text for token in beginning), *(token.text for token in tokens)]
    parts = [*map(_prompt_part, beginning), *map(token_part, tokens)]
    flags = [*(token.special for token in beginning), *(token.special for token in tokens)]
    special = {index for index, flag in enumerate(flags) if flag}
    found = split_answer(parts, visible, marks, before, special, tail)
    skipped = len(beginning)
    ranges = tuple((max(start - skipped, 0), stop - skipped) for start, stop in found.ranges if stop > skipped)
    return found._replace(ranges=ranges)


def marks_of(started: RunStarted | None) -> tuple[ThinkingMark, ...]:
    """Return the marks that a run recorded, otherwise all known ones."""
    if started is None or not started.thinking:
        return KNOWN_MARKS
    return tuple(ThinkingMark(*mark) for mark in started.thinking)


def token_part(token: TokenChosen) -> str:
    """Return what a token writes, special tokens by their names."""
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


class ThinkingStream:
    """Splits an answer while it is written. What was returned once keeps its place.

    Rules of `split_answer` that need the whole answer do not apply here: thinking that ends without having begun, a
    closing mark inside a sentence that turns out to be the only one, and channels whose special tokens were left out.
    """

    def __init__(self, marks: Sequence[ThinkingMark], is_open: bool) -> None:
        """`is_open`: whether the prompt opened the thinking."""
        self._marks = [ThinkingMark(*map(_fold, mark)) for mark in marks]
        self._text = self._folded = ""
        self._special: set[int] = set()
        self._names: list[tuple[int, int]] = []
        """Ranges of the names of special tokens, which are not shown."""
        self._closers = self._marks if is_open else []
        """Marks that can close the thinking in progress; () outside of thinking."""
        self._segment = self._position = 0
        """Start of the text since the last mark, and the length of the text that was split."""
        self._may_reopen = is_open
        self._has_thinking = is_open
        self._space = ""
        """White space of thinking that is returned only if more follows."""
        self._is_blank = {True: True, False: True}
        """Whether nothing of the current piece of thinking, or of the rest, was returned."""
        self._has_returned = False

    def add(self, part: str, visible: str, is_special: bool) -> None:
        """Append a token: what it writes, special tokens by their names, and what it adds to the shown text."""
        if is_special:
            self._special.add(len(self._text))
        if part != visible:
            self._names.append((len(self._text), len(self._text) + len(part)))
        self._text += part
        self._folded += _fold(part)

    def take(self, held_back: int = 0, *, has_ended: bool = False) -> list[tuple[bool, str]]:
        """Return the new parts, each with whether it is thinking.

        `held_back`: number of shown characters at the end that may yet be removed; `has_ended`: nothing follows.
        """
        limit = self._limit(held_back)
        parts: list[tuple[bool, str]] = []
        while self._position < limit:
            before = self._position
            split = self._split_thinking if self._closers else self._split_rest
            if (part := split(limit, has_ended)) is not None:
                parts.append(part)
            if self._position == before:
                break
        return [(is_thinking, text) for is_thinking, text in parts if text]

    def _limit(self, held_back: int) -> int:
        """Return the length of the text without its last shown characters."""
        limit = len(self._text)
        for start, end in reversed(self._names):
            if held_back <= limit - end:
                break
            held_back -= limit - end
            limit = start
        return limit - held_back

    def _split_thinking(self, limit: int, has_ended: bool) -> tuple[bool, str] | None:
        text, start = self._folded[:limit], self._position
        if self._may_reopen:  # the model repeats the mark that the prompt has
            begun = text[start:].lstrip()
            again = next((mark for mark in self._closers if begun.startswith(mark.opening)), None)
            if again is not None:
                self._position = limit - len(begun) + len(again.opening)
                self._may_reopen = False
                return None
            if not has_ended and any(mark.opening.startswith(begun) for mark in self._closers):
                return None
            self._may_reopen = False
        places = sorted(
            (start + found.start(), mark)
            for mark in self._closers
            for found in re.finditer(re.escape(mark.closing), text[start:])
        )
        for place, mark in places:
            end = place + len(mark.closing)
            if place not in self._special:
                if end == limit and not has_ended and text[place - 1 : place] in (" ", *_QUOTES):
                    return self._advance(True, place)  # the next letter shows whether a sentence mentions it
                if _is_mention(text, place, mark.closing):
                    continue
            if mark.header and not has_ended and mark.header.startswith(text[end:].lstrip()):
                return self._advance(True, place)
            part = self._advance(True, place)
            self._space, self._closers = "", []
            self._segment = self._position = _after_header(text, end, mark)
            return part
        return self._advance(True, self._safe_end(text, [mark.closing for mark in self._closers], has_ended))

    def _split_rest(self, limit: int, has_ended: bool) -> tuple[bool, str] | None:
        text, start = self._folded[:limit], self._position
        if any(mark.opening in text[start:] for mark in self._marks):
            found = _next_opening(text, self._segment, self._marks, self._special, is_first=not self._has_thinking)
            if found is not None:
                mark, place = found
                self._has_thinking |= not text[:place].strip()  # white space before it is no part of the rest
                part = self._advance(False, place)
                self._position = place + len(mark.opening)
                self._closers, self._has_thinking, self._is_blank[True] = [mark], True, True
                return part
        end = self._safe_end(text, [mark.opening for mark in self._marks], has_ended)
        may_open = self._is_blank[False] and not self._has_thinking and not has_ended
        if may_open and self._marks and not self._shown(start, end).strip():
            return None
        return self._advance(False, end)

    def _safe_end(self, text: str, marks: Sequence[str], has_ended: bool) -> int:
        """Return the end of the text that no mark can begin before."""
        if has_ended:
            return len(text)
        lengths = (
            length
            for mark in marks
            for length in range(min(len(mark) - 1, len(text) - self._position), 0, -1)
            if text.endswith(mark[:length])
        )
        return len(text) - max(lengths, default=0)

    def _shown(self, start: int, end: int) -> str:
        """Return the shown text between two positions."""
        shown, place = "", start
        for name_start, name_end in self._names:
            if name_start < end and name_end > place:
                shown += self._text[place : max(name_start, place)]
                place = min(name_end, end)
        return shown + self._text[place:end]

    def _advance(self, is_thinking: bool, end: int) -> tuple[bool, str]:
        """Return the shown text up to `end`, without white space around thinking."""
        start, self._position = self._position, max(end, self._position)
        shown = self._shown(start, self._position)
        if is_thinking:
            shown = self._space + shown
            if self._is_blank[True]:
                shown = shown.lstrip()
            kept = shown.rstrip()
            self._space, shown = shown[len(kept) :], kept
            if shown and self._is_blank[True] and self._has_returned:
                shown = "\n\n" + shown
            self._has_returned |= bool(shown)
        elif self._is_blank[False] and self._has_thinking:
            shown = shown.lstrip()
        self._is_blank[is_thinking] &= not shown
        return is_thinking, shown


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
