"""Parse an engine's messages: text, tokens with log-probabilities, finish reasons and usage. Supports both response
formats of OpenAI's API, with extensions that several engines share.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from decodescope.core.models.text import shown_bytes
from decodescope.core.remote.client import Utf8Joiner

_MAX_ANSWERS = 64
"""Number of answers whose displayed text is remembered."""


class AnswerText:
    """The tokens of one answer with the text that each adds, as displayed."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.texts: list[str] = []

    def add(self, number: int, text: str) -> None:
        """Append one token."""
        self.ids.append(number)
        self.texts.append(text)

    def common_prefix_length(self, ids: Sequence[object]) -> int:
        """Return the length of the common prefix of `ids` and this answer."""
        length = 0
        for one, other in zip(ids, self.ids, strict=False):
            if one != other:
                break
            length += 1
        return length


class TokenTable:
    """Maps tokens to ids and texts. A token whose id is not reported gets a negative number, which only distinguishes
    it from others.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._pieces: dict[int, str] = {}
        self._data: dict[int, bytes] = {}
        self._answers: deque[AnswerText] = deque(maxlen=_MAX_ANSWERS)

    def new_answer(self) -> AnswerText:
        """Add the record of a new answer. A branch continues from the text in this record."""
        self._answers.append(AnswerText())
        return self._answers[-1]

    def shown_prefix(self, ids: Sequence[object]) -> tuple[str, int]:
        """Return the displayed text of the longest prefix of `ids` found in an answer, and its number of tokens."""
        found = max(self._answers, key=lambda one: one.common_prefix_length(ids), default=None)
        length = found.common_prefix_length(ids) if found is not None else 0
        return ("".join(found.texts[:length]), length) if found is not None else ("", 0)

    def bytes_of(self, number: int) -> bytes | None:
        """Return the bytes of a token, or None if unknown: it may be part of a character."""
        if number in self._data:
            return self._data[number]
        piece = self._pieces.get(number)
        return None if piece is None or "\ufffd" in piece else piece.encode("utf-8", "replace")

    def id_of(self, piece: str, reported_id: int | None = None, data: bytes | None = None) -> int:
        """Return the reported id, or a substitute that is always the same for the same text. `data` are the token's
        bytes, if reported.
        """
        if reported_id is not None:
            if data is not None:
                self._data.setdefault(reported_id, data)
            self._pieces.setdefault(reported_id, piece)
            self._numbers.setdefault(piece, reported_id)
            return reported_id
        found = self._numbers.get(piece)
        if found is None:
            found = self._numbers[piece] = -1 - len(self._numbers)
            self._pieces[found] = piece
        return found

    def piece_of(self, number: int) -> str | None:
        """Return the text of a reported token; None for any other."""
        return self._pieces.get(number)


def display_piece(piece: str, data: object) -> str:
    """Return a token's own text, from its bytes if reported; bytes of incomplete characters as ⟨E2⟩."""
    known = as_bytes(data)
    return display_bytes(known) if known else repair_text(piece)


def display_bytes(data: bytes) -> str:
    """Return the bytes of a token as text, with each byte of an incomplete character as ⟨E2⟩."""
    return shown_bytes(data.decode("utf-8", "surrogateescape"))


def as_bytes(data: object) -> bytes | None:
    """Return a JSON list of byte values as bytes, or None for anything else."""
    if isinstance(data, list) and all(isinstance(one, int) and 0 <= one < 256 for one in data):
        return bytes(data)
    return None


def repair_text(text: str) -> str:
    """Return the text with incomplete characters replaced by the replacement character."""
    joiner = Utf8Joiner()
    return joiner.push(text) + joiner.flush()


MAX_ALTERNATIVES = 1000
"""Maximum number of alternatives read per token; no engine supports more."""
_MAX_ID = 2**31
_MAX_TEXTS = 1024
"""Maximum number of texts in a response whose usage is added up."""


class TokenLogprob(NamedTuple):
    """A token with its log-probability (natural), and its id if reported."""

    piece: str
    log_probability: float
    id: int | None = None
    token_bytes: bytes | None = None
    """Its bytes, if reported."""


@dataclass(frozen=True, slots=True)
class StreamedToken:
    """A generated token."""

    piece: str
    id: int | None = None
    log_probability: float = math.nan
    """NaN if not reported."""
    top: tuple[TokenLogprob, ...] = ()
    """The likeliest tokens of its step, likeliest first."""
    token_bytes: bytes | None = None
    """Its bytes, if reported."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The tokens and characters that a message adds to one text."""

    sequence: int
    text: str = ""
    tokens: tuple[StreamedToken, ...] = ()
    """Empty if the engine reports no tokens: then `text` is a piece as received."""
    finish: str = ""
    """stop, length, … at the end of the text."""
    stop: str = ""
    """The stop string that ended it, if reported."""


def read_choices(message: Mapping[str, object]) -> Iterator[TextDelta]:
    """Yield the deltas in a message; none for one that contains only usage."""
    choices = message.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield _delta_of(choice)


def _delta_of(choice: Mapping[str, Any]) -> TextDelta:
    why = choice.get("stop_reason", choice.get("matched_stop"))
    return TextDelta(
        as_count(choice.get("index")),
        _choice_text(choice),
        tuple(choice_tokens(choice)),
        str(choice.get("finish_reason") or ""),
        why if isinstance(why, str) else "",
    )


def _choice_text(choice: Mapping[str, object]) -> str:
    """Return the text of a completion or a chat delta; reasoning before the answer has its own field."""
    delta = choice.get("delta") or choice.get("message")
    if not isinstance(delta, dict):
        delta = {"content": choice.get("text")}
    fields = (delta.get(name) for name in ("content", "reasoning_content", "reasoning"))
    return next((text for text in fields if isinstance(text, str) and text), "")


def choice_tokens(choice: Mapping[str, object]) -> Iterator[StreamedToken]:
    """Yield the tokens of a choice in either format; none if they are not reported."""
    logprobs = choice.get("logprobs")
    ids = choice.get("token_ids")
    ids = ids if isinstance(ids, list) else []
    if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
        yield from _chat_tokens(logprobs["content"], ids)
    elif isinstance(logprobs, dict) and isinstance(logprobs.get("tokens"), list):
        prompt = _as_list(choice.get("prompt_token_ids"))
        if len(logprobs["tokens"]) == len(prompt) + len(ids):  # with `echo`, the prompt comes first
            ids = [*prompt, *ids]
        yield from _completion_tokens(logprobs, ids, _as_list(choice.get("prompt_logprobs")))


def _chat_tokens(content: Sequence[object], ids: Sequence[object]) -> Iterator[StreamedToken]:
    for place, item in enumerate(content):
        if isinstance(item, dict):
            alternatives = _as_list(item.get("top_logprobs"))[:MAX_ALTERNATIVES]
            top = sorted(
                (_token_logprob(one) for one in alternatives if isinstance(one, dict)), key=_descending_probability
            )
            one = _token_logprob(item)
            yield StreamedToken(
                one.piece, _token_id(item.get("id"), ids, place), one.log_probability, tuple(top), one.token_bytes
            )


def _token_logprob(item: Mapping[str, object]) -> TokenLogprob:
    data = item.get("bytes")
    return TokenLogprob(
        display_piece(str(item.get("token", "")), data),
        parse_log_probability(item.get("logprob")),
        _token_id(item.get("id")),
        as_bytes(data),
    )


def _completion_tokens(
    logprobs: Mapping[str, object], ids: Sequence[object], of_prompt: Sequence[object]
) -> Iterator[StreamedToken]:
    """Yield the tokens of a completion. `of_prompt`: the same of each token of the prompt, by id (vLLM)."""
    pieces, logs, tops = (_as_list(logprobs.get(name)) for name in ("tokens", "token_logprobs", "top_logprobs"))
    for place, piece in enumerate(pieces):
        likely = tops[place] if place < len(tops) and isinstance(tops[place], dict) else {}
        reported = islice(likely.items(), MAX_ALTERNATIVES)
        known = dict(_ids_by_piece(of_prompt[place])) if place < len(of_prompt) else {}
        top = sorted(
            (
                TokenLogprob(repair_text(str(one)), parse_log_probability(value), _token_id(known.get(str(one))))
                for one, value in reported
            ),
            key=_descending_probability,
        )
        log = parse_log_probability(logs[place]) if place < len(logs) else math.nan
        yield StreamedToken(repair_text(str(piece)), _token_id(None, ids, place), log, tuple(top))


def _ids_by_piece(reported: object) -> Iterator[tuple[str, int]]:
    """Yield the piece and the id of each token for which vLLM reports a probability at a position of the prompt."""
    for number, details in reported.items() if isinstance(reported, dict) else ():
        if isinstance(details, dict) and str(number).isdecimal() and len(str(number)) < _MAX_DIGITS:
            yield str(details.get("decoded_token")), int(number)


_MAX_DIGITS = 12
"""Digits of a token id."""


def _as_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _descending_probability(item: TokenLogprob) -> float:
    return -item.log_probability


def parse_log_probability(value: Any) -> float:
    """Parse a log-probability; −∞ is encoded in several ways, including the largest negative number."""
    if (
        not isinstance(value, (int, float)) or isinstance(value, bool) or value != value
    ):  # isnan fails for huge integers
        return math.nan
    if value >= 0:
        return 0.0
    return float(value) if value > -1e30 else -math.inf


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object. Raises TypeError for other values."""
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def as_count(value: object) -> int:
    """Return an index or count; 0 for None. Raises ValueError."""
    if value is None:
        return 0
    if (found := valid_count(value, None)) is None:
        raise ValueError(value)
    return found


def _token_id(value: object, ids: Sequence[object] = (), position: int = 0) -> int | None:
    found = value if value is not None else ids[position] if position < len(ids) else None
    return found if isinstance(found, int) and 0 <= found < _MAX_ID else None


@dataclass(slots=True)
class ResponseUsage:
    """Usage statistics that an engine reports for a run; None where it does not."""

    readers: Sequence[Callable[[ResponseUsage, Mapping[str, Any]], None]] = ()
    """Functions that read an engine's own statistics: `core.remote.engines.usage_readers`."""
    prompt: int | None = None
    cached: int | None = None
    """Number of prompt tokens taken from the cache."""
    written: int | None = None
    prompt_seconds: float | None = None
    decoded: int | None = None
    """Number of tokens decoded up to the last message read."""
    drafted: int | None = None
    accepted: int | None = None
    passes: int | None = None
    """Forward passes of the model when verifying drafts."""
    rate: float | None = None
    """Acceptance rate of drafts, if reported as such."""
    _texts: dict[int, Mapping[str, object]] = field(default_factory=dict)

    def update(self, message: Mapping[str, Any]) -> None:
        """Update the statistics from a message. Raises ValueError."""
        self._update_from_usage(message.get("usage"))
        for read in self.readers:
            read(self, message)

    def _update_from_usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        self.prompt = valid_count(usage.get("prompt_tokens"), self.prompt)
        self.written = valid_count(usage.get("completion_tokens"), self.written)
        read, written_details = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
        if isinstance(read, dict):
            self.cached = valid_count(read.get("cached_tokens"), self.cached)
        if isinstance(written_details, dict):
            accepted, rejected = (
                valid_count(written_details.get(f"{name}_prediction_tokens"), None) for name in _OUTCOMES
            )
            if accepted is not None and rejected is not None and accepted + rejected:
                self.drafted, self.accepted = accepted + rejected, accepted

    def add_text(self, number: int, statistics: Mapping[str, object]) -> None:
        """Set the latest statistics of one text."""
        if number in self._texts or len(self._texts) < _MAX_TEXTS:
            self._texts[number] = statistics

    @property
    def text_count(self) -> int:
        """Number of texts with statistics of their own."""
        return len(self._texts)

    def total(self, *names: str) -> int | None:
        """Return the sum of a count over all texts; `names` are its names in different versions. None if not
        reported.
        """
        found = [valid_count(usage.get(name), None) for usage in self._texts.values() for name in names]
        counts = [count for count in found if count is not None]
        return sum(counts) if counts else None

    @property
    def acceptance_rate(self) -> float | None:
        """Fraction of drafted tokens that were accepted; None if nothing was drafted or reported."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else self.rate

    @property
    def prefill_speed(self) -> float | None:
        """Computed prompt tokens per second; None if not reported."""
        computed = (self.prompt or 0) - (self.cached or 0)
        return computed / self.prompt_seconds if self.prompt_seconds and computed > 0 else None


_OUTCOMES = ("accepted", "rejected")


_MAX_COUNT = 2**53
"""Upper limit for plausible counts."""


def valid_count(value: object, known: int | None) -> int | None:
    """Return a reported count, or `known` if it is not plausible."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT else known


def split_text(text: str, pieces: Sequence[str]) -> list[str]:
    """Split `text` into what each token adds: a character of several tokens comes with the last of them."""
    found: list[str] = []
    done = 0
    for piece in pieces[:-1]:
        mine = piece if piece and text.startswith(piece, done) else ""
        found.append(mine)
        done += len(mine)
    return [*found, text[done:]]
