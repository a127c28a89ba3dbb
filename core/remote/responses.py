"""What one message of an engine says: text, tokens with their log-probabilities, an end, figures. Both shapes of
OpenAI's faces, with what vLLM, SGLang and llama.cpp add to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from core.remote.token_table import as_bytes, shown, whole

MOST_LIKELY = 1000
"""Alternatives of a token that are read; no engine can be asked for more."""
_LARGEST_ID = 2**31
_MOST_TEXTS = 1024
"""Texts of a reply whose figures are added up."""


class TokenLogprob(NamedTuple):
    """A token, its log-probability (natural), and its id where it is told."""

    piece: str
    log_probability: float
    id: int | None = None
    data: bytes | None = None
    """Its bytes, where they are reported."""


@dataclass(frozen=True, slots=True)
class StreamedToken:
    """A token that was written."""

    piece: str
    id: int | None = None
    log_probability: float = math.nan
    """NaN where it is not told."""
    top: tuple[TokenLogprob, ...] = ()
    """The likeliest of its step, the likeliest first."""
    data: bytes | None = None
    """Its bytes, where they are reported."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """What a message adds to one text."""

    sequence: int
    text: str = ""
    tokens: tuple[StreamedToken, ...] = ()
    """Empty where the engine tells no tokens: then `text` is a piece as it came."""
    finish: str = ""
    """stop, length, … at its end."""
    stop: str = ""
    """The stop text that ended it, where that is told."""


def parts(message: Mapping[str, object]) -> Iterator[TextDelta]:
    """The parts of a message; none for one that holds figures only."""
    choices = message.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield _part(choice)


def _part(choice: Mapping[str, Any]) -> TextDelta:
    why = choice.get("stop_reason", choice.get("matched_stop"))
    return TextDelta(
        whole_number(choice.get("index")), _text(choice), tuple(tokens(choice)), str(choice.get("finish_reason") or ""),
        why if isinstance(why, str) else "",
    )  # fmt: skip


def _text(choice: Mapping[str, object]) -> str:
    """Of a completion or of a chat, where what is thought before the answer has a field of its own."""
    delta = choice.get("delta") or choice.get("message")
    if not isinstance(delta, dict):
        delta = {"content": choice.get("text")}
    fields = (delta.get(name) for name in ("content", "reasoning_content", "reasoning"))
    return next((text for text in fields if isinstance(text, str) and text), "")


def tokens(choice: Mapping[str, object]) -> Iterator[StreamedToken]:
    """The tokens of a choice, in whichever shape; none where they are not told."""
    told = choice.get("logprobs")
    ids = choice.get("token_ids")
    ids = ids if isinstance(ids, list) else []
    if isinstance(told, dict) and isinstance(told.get("content"), list):
        yield from _of_chat(told["content"], ids)
    elif isinstance(told, dict) and isinstance(told.get("tokens"), list):
        yield from _of_completion(told, ids)


def _of_chat(content: Sequence[object], ids: Sequence[object]) -> Iterator[StreamedToken]:
    for place, item in enumerate(content):
        if isinstance(item, dict):
            told = _list(item.get("top_logprobs"))[:MOST_LIKELY]
            top = sorted((_likely(one) for one in told if isinstance(one, dict)), key=_order)
            one = _likely(item)
            yield StreamedToken(one.piece, _id(item.get("id"), ids, place), one.log_probability, tuple(top), one.data)


def _likely(item: Mapping[str, object]) -> TokenLogprob:
    data = item.get("bytes")
    return TokenLogprob(
        shown(str(item.get("token", "")), data), log_probability(item.get("logprob")), _id(item.get("id")),
        as_bytes(data),
    )  # fmt: skip


def _of_completion(told: Mapping[str, object], ids: Sequence[object]) -> Iterator[StreamedToken]:
    pieces, logs, tops = (_list(told.get(name)) for name in ("tokens", "token_logprobs", "top_logprobs"))
    for place, piece in enumerate(pieces):
        likely = tops[place] if place < len(tops) and isinstance(tops[place], dict) else {}
        told_likely = islice(likely.items(), MOST_LIKELY)
        top = sorted((TokenLogprob(whole(str(one)), log_probability(value)) for one, value in told_likely), key=_order)
        log = log_probability(logs[place]) if place < len(logs) else math.nan
        yield StreamedToken(whole(str(piece)), _id(None, ids, place), log, tuple(top))


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _order(item: TokenLogprob) -> float:
    return -item.log_probability


def log_probability(value: Any) -> float:
    """A log-probability; −∞ is told in several ways, the largest negative number among them."""
    if (
        not isinstance(value, (int, float)) or isinstance(value, bool) or value != value
    ):  # isnan knows no huge whole one
        return math.nan
    if value >= 0:
        return 0.0
    return float(value) if value > -1e30 else -math.inf


def mapping(value: object) -> Mapping[str, Any]:
    """An object of JSON. Raises TypeError."""
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def whole_number(value: object) -> int:
    """A place or a count; 0 where none is told. Raises ValueError."""
    if value is None:
        return 0
    if (found := _count(value, None)) is None:
        raise ValueError(value)
    return found


def _id(value: object, ids: Sequence[object] = (), place: int = 0) -> int | None:
    found = value if value is not None else ids[place] if place < len(ids) else None
    return found if isinstance(found, int) and 0 <= found < _LARGEST_ID else None


@dataclass(slots=True)
class Counts:
    """Figures that an engine tells of a run; None where it does not."""

    prompt: int | None = None
    cached: int | None = None
    """Of the prompt: those that were not computed anew."""
    written: int | None = None
    prompt_seconds: float | None = None
    decoded: int | None = None
    """Tokens that llama.cpp has decoded up to the message that was read last."""
    drafted: int | None = None
    accepted: int | None = None
    passes: int | None = None
    """Of the model, where it checked drafts."""
    rate: float | None = None
    """Share of drafts that were accepted, as it is told itself."""
    _texts: dict[int, Mapping[str, object]] = field(default_factory=dict)

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take what a message says of them. Raises ValueError."""
        self._hear_usage(message.get("usage"))
        self._hear_llama(message.get("timings"))
        self._hear_vllm(message.get("metrics"))
        if isinstance(told := message.get("meta_info"), dict):
            number = whole_number(message.get("index"))
            if number in self._texts or len(self._texts) < _MOST_TEXTS:
                self._texts[number] = told
            self._hear_sglang(told)

    def _hear_usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        self.prompt = _count(usage.get("prompt_tokens"), self.prompt)
        self.written = _count(usage.get("completion_tokens"), self.written)
        read, said = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
        if isinstance(read, dict):
            self.cached = _count(read.get("cached_tokens"), self.cached)
        if isinstance(said, dict):
            accepted, rejected = (_count(said.get(f"{name}_prediction_tokens"), None) for name in _OUTCOMES)
            if accepted is not None and rejected is not None and accepted + rejected:
                self.drafted, self.accepted = accepted + rejected, accepted

    def _hear_llama(self, timings: object) -> None:
        if not isinstance(timings, dict):
            return
        milliseconds = timings.get("prompt_ms")
        if isinstance(milliseconds, (int, float)) and 0 < milliseconds < _MOST:
            self.prompt_seconds = milliseconds / 1000
        self.cached = _count(timings.get("cache_n"), self.cached)
        self.decoded = _count(timings.get("predicted_n"), self.decoded)
        self.drafted = _count(timings.get("draft_n"), self.drafted)
        self.accepted = _count(timings.get("draft_n_accepted"), self.accepted)

    def _hear_vllm(self, metrics: object) -> None:
        drafts = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
        if isinstance(drafts, dict):
            self.drafted = _count(drafts.get("num_draft_tokens"), self.drafted)
            self.accepted = _count(drafts.get("num_accepted_tokens"), self.accepted)

    def _hear_sglang(self, told: Mapping[str, object]) -> None:
        """Each of several texts has figures of its own; names of newer and older versions."""
        self.prompt = _count(told.get("prompt_tokens"), self.prompt)
        self.cached = _count(told.get("cached_tokens"), self.cached)
        self.written = self._sum("completion_tokens")
        self.passes = self._sum("spec_verify_ct")
        self.drafted = self._sum("spec_num_proposed_drafts", "spec_draft_token_num")
        self.accepted = self._sum("spec_num_correct_drafts", "spec_accept_token_num")
        rate = told.get("spec_accept_rate")
        if isinstance(rate, (int, float)) and 0 <= rate <= 1 and len(self._texts) == 1:
            self.rate = float(rate)

    def _sum(self, *names: str) -> int | None:
        found = [_count(told.get(name), None) for told in self._texts.values() for name in names]
        counts = [count for count in found if count is not None]
        return sum(counts) if counts else None

    @property
    def acceptance(self) -> float | None:
        """Share of the drafted tokens that became text; None where nothing was drafted, or told."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else self.rate

    @property
    def prompt_speed(self) -> float | None:
        """Tokens of the prompt that were computed in a second; None where that is not told."""
        computed = (self.prompt or 0) - (self.cached or 0)
        return computed / self.prompt_seconds if self.prompt_seconds and computed > 0 else None


_OUTCOMES = ("accepted", "rejected")


_MOST = 2**53
"""No figure of a run is as large."""


def _count(value: object, known: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else known


def shared_out(text: str, pieces: Sequence[str]) -> list[str]:
    """What each token adds to `text`, which they spell together: a character made of several comes with the last."""
    found: list[str] = []
    done = 0
    for piece in pieces[:-1]:
        mine = piece if piece and text.startswith(piece, done) else ""
        found.append(mine)
        done += len(mine)
    return [*found, text[done:]]
