"""Stopping criteria: end token, limits, stop strings, time."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from decodescope.core.events import Ending
from decodescope.core.parameter import Settings

_INVALID = "\ufffd"
"""Replacement character for invalid bytes."""
StopTail = tuple[bytes, ...]
"""Bytes of the last tokens of a text, in which a stop string may begin."""


class StopStringMatcher:
    """Finds stop strings at the end of texts that grow token by token."""

    def __init__(
        self, strings: Sequence[str], token_bytes: Callable[[int], bytes | None], prompt_ids: Sequence[int] = ()
    ) -> None:
        """Prepare the search.

        `token_bytes`: returns the bytes of a token, None for one without text; `prompt_ids`: the tokens before the
        first new one.
        """
        self._strings = [(string, string.encode("utf-8", "surrogatepass")) for string in strings]
        self._invalid = [string for string in strings if _INVALID in string]
        self._token_bytes = token_bytes
        self._max_tail = max((len(data) for _, data in self._strings), default=1) - 1
        """Number of tokens before the newest one in which a stop string may begin: one per byte, as in `generate`."""
        self.start: StopTail = ()
        for token in prompt_ids[-self._max_tail :] if self._max_tail else ():
            self.start = self._extend_tail(self.start, token_bytes(token))

    def push(self, tail: StopTail, token: int) -> tuple[str, StopTail]:
        """Return the stop string that ends inside `token` after a text ending with `tail`, or "", and the new tail."""
        return self.push_bytes(tail, self._token_bytes(token))

    def push_bytes(self, tail: StopTail, data: bytes | None) -> tuple[str, StopTail]:
        """Do the same for a token of these bytes."""
        found = ""
        if data:
            before = b"".join(tail)
            text = before + data
            found = next((name for name, string in self._strings if _ends_after(text, string, len(before))), "")
            if not found and self._invalid:
                found = self._find_invalid(before, text)
        return found, self._extend_tail(tail, data)

    def _find_invalid(self, before: bytes, text: bytes) -> str:
        """Return the stop string with a replacement character that ends after `before`; no token has its bytes."""
        shown, whole = (codecs.utf_8_decode(data, "replace", False)[0] for data in (before, text))
        ends = (name for name in self._invalid if whole.find(name, max(0, len(shown) - len(name) + 1)) >= 0)
        return next(ends, "")

    def _extend_tail(self, tail: StopTail, data: bytes | None) -> StopTail:
        if data is None or not self._max_tail:
            return ()
        return (*tail, data)[-self._max_tail :]


def _ends_after(text: bytes, string: bytes, start: int) -> bool:
    """Return whether `string` occurs in `text` and ends after `start`."""
    return text.find(string, max(0, start - len(string) + 1)) >= 0


@dataclass(frozen=True, slots=True)
class StopReason:
    """The reason why a sequence ended; fields as in SequenceFinished."""

    reason: Ending
    string: str = ""
    limit: float | None = None
    whole: bool | None = None


@dataclass(slots=True)
class StoppingCriteria:
    """Stopping criteria of a run. `max_new` limits new tokens; `context_limit` is the number that fits into the model's
    context.
    """

    max_new: int
    context_limit: int | None
    eos: frozenset[int]
    strings: tuple[str, ...]
    deadline: float | None
    seconds: float = 0.0
    context: int | None = None
    """Context length of the model in tokens; None without a limit."""
    matcher: StopStringMatcher | None = None
    """Finds stop strings by token bytes; None where only decoded text is known."""
    _tails: dict[int, StopTail] = field(default_factory=dict)

    def check(self, sequence: int, token: int, count: int, text: str) -> StopReason | None:
        """Check the sequence after `token`, its `count`-th, which added `text`; return the stop reason or None."""
        found = ""
        if self.strings:
            tail = self._tails.get(sequence, self.tail)
            if self.matcher is not None:
                found, self._tails[sequence] = self.matcher.push(tail, token)
            else:
                found, self._tails[sequence] = self._text_matcher.push_bytes(
                    tail, text.encode("utf-8", "surrogatepass")
                )
        return self._natural_reason(token, found) or self.reached_limit(count)

    def natural_end(self, token: int, tail: StopTail) -> tuple[StopReason | None, StopTail]:
        """Return the stop reason if the text ends by itself with `token` after `tail`, and the new tail."""
        found, tail = self.matcher.push(tail, token) if self.matcher is not None else ("", tail)
        return self._natural_reason(token, found), tail

    def _natural_reason(self, token: int, stop_string: str) -> StopReason | None:
        if token in self.eos:
            return StopReason("eos")
        return StopReason("stop_string", stop_string) if stop_string else None

    @property
    def tail(self) -> StopTail:
        """Tail before the first new token, where a stop string may begin."""
        return self.matcher.start if self.matcher is not None else ()

    @property
    def _text_matcher(self) -> StopStringMatcher:
        return StopStringMatcher(self.strings, lambda token: None)

    def reached_limit(self, count: int) -> StopReason | None:
        """Return the limit that a text of `count` new tokens has reached, or None."""
        if count >= self.max_new:
            return StopReason("length", limit=self.max_new)
        if self.context_limit is not None and count >= self.context_limit:
            return StopReason("context", limit=self.context)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return StopReason("time", limit=self.seconds)
        return None


def build_stopping_criteria(
    settings: Settings, start: int, context: int | None, before: Sequence[int] = (),
    token_bytes: Callable[[int], bytes | None] | None = None,
) -> StoppingCriteria:  # fmt: skip
    """Build the stopping criteria of a run; `max_time` counts from now.

    `start`: number of decoder tokens before the first new one; `before`: those tokens, where a stop string may begin;
    `token_bytes`: returns the bytes of a token in which stop strings are searched.
    """
    given, max_time = settings.get("stop_strings") or (), settings.get("max_time")
    strings = (given,) if isinstance(given, str) else tuple(string for string in given if string)
    matcher = StopStringMatcher(strings, token_bytes, before) if strings and token_bytes is not None else None
    return StoppingCriteria(
        max_new=new_token_limit(settings, start),
        # The last token is chosen from a full context and need not be fed again.
        context_limit=None if context is None else max(context - start + 1, 1),
        eos=end_token_ids(settings),
        strings=strings,
        deadline=time.monotonic() + max_time if max_time else None,
        seconds=max_time or 0.0,
        context=context,
        matcher=matcher,
    )


def new_token_limit(settings: Settings, start: int) -> int:
    """Return the maximum number of new tokens by transformers' rule: max_new_tokens, else max_length minus the prompt,
    else 20.
    """
    if (max_new := settings.get("max_new_tokens")) is not None:
        return int(max_new)
    if (max_length := settings.get("max_length")) is not None:
        return max(int(max_length) - start, 0)
    return 20


def end_token_ids(settings: Settings) -> frozenset[int]:
    """Return the end tokens; empty if there are none."""
    eos = settings.get("eos_token_id")
    if eos is None:
        return frozenset()
    return frozenset(int(token) for token in eos) if isinstance(eos, (list, tuple)) else frozenset((int(eos),))
