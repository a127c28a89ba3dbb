"""When a text ends: its own end token, a limit, a stop string, the clock."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from transformers import GenerationConfig

from core.events import Ending

_INVALID = "\ufffd"
"""What a text shows in place of bytes that belong to no character."""
StopTail = tuple[bytes, ...]
"""The bytes of the last tokens of a text, in which a stop string may begin."""


class StopStringMatcher:
    """Looks for stop strings at the end of texts that grow token by token."""

    def __init__(
        self, strings: Sequence[str], token_bytes: Callable[[int], bytes | None], prompt_ids: Sequence[int] = ()
    ) -> None:
        """`token_bytes`: the bytes of a token, None for one without text; `prompt_ids`: the tokens before the first new
        one."""
        self._strings = [(string, string.encode("utf-8", "surrogatepass")) for string in strings]
        self._invalid = [string for string in strings if _INVALID in string]
        self._token_bytes = token_bytes
        self._max_tail = max((len(data) for _, data in self._strings), default=1) - 1
        """Tokens before the newest one in which a stop string may begin: one a byte, as in `generate`."""
        self.start: StopTail = ()
        for token in prompt_ids[-self._max_tail :] if self._max_tail else ():
            self.start = self._extend_tail(self.start, token_bytes(token))

    def push(self, tail: StopTail, token: int) -> tuple[str, StopTail]:
        """The stop string that ends inside `token`, behind a text that ends with `tail`, or ""; and the new tail."""
        return self.push_bytes(tail, self._token_bytes(token))

    def push_bytes(self, tail: StopTail, data: bytes | None) -> tuple[str, StopTail]:
        """As `push`, for a token of these bytes."""
        found = ""
        if data:
            before = b"".join(tail)
            text = before + data
            found = next((name for name, string in self._strings if _ends_after(text, string, len(before))), "")
            if not found and self._invalid:
                found = self._find_invalid(before, text)
        return found, self._extend_tail(tail, data)

    def _find_invalid(self, before: bytes, text: bytes) -> str:
        """The stop string with an invalid character that ends behind `prompt_ids`: no token has the bytes of such one."""
        shown, whole = (codecs.utf_8_decode(data, "replace", False)[0] for data in (before, text))
        ends = (name for name in self._invalid if whole.find(name, max(0, len(shown) - len(name) + 1)) >= 0)
        return next(ends, "")

    def _extend_tail(self, tail: StopTail, data: bytes | None) -> StopTail:
        if data is None or not self._max_tail:
            return ()
        return (*tail, data)[-self._max_tail :]


def _ends_after(text: bytes, string: bytes, start: int) -> bool:
    """Whether `string` stands in `text` with its end behind `start`."""
    return text.find(string, max(0, start - len(string) + 1)) >= 0


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a sequence ended: reason, stop string, limit and whole as in SequenceFinished."""

    reason: Ending
    string: str = ""
    limit: float | None = None
    whole: bool | None = None


@dataclass(slots=True)
class StoppingCriteria:
    """Limits of a run. `max_new` counts new tokens; `context_limit` is how many fit into the model's context."""

    max_new: int
    context_limit: int | None
    eos: frozenset[int]
    strings: tuple[str, ...]
    deadline: float | None
    seconds: float = 0.0
    context: int | None = None
    """Tokens that the model's context holds; None without a limit."""
    matcher: StopStringMatcher | None = None
    """Finds the stop strings by the tokens of the text; None where only the text that they add is known."""
    _tails: dict[int, StopTail] = field(default_factory=dict)

    def check(self, sequence: int, token: int, count: int, text: str) -> StopReason | None:
        """After `token`, the `count`-th of its sequence, that added `text`: why it ends here, or None."""
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
        """Whether the text ends by itself with `token` behind `tail`, and the tail with it."""
        found, tail = self.matcher.push(tail, token) if self.matcher is not None else ("", tail)
        return self._natural_reason(token, found), tail

    def _natural_reason(self, token: int, found: str) -> StopReason | None:
        if token in self.eos:
            return StopReason("eos")
        return StopReason("stop_string", found) if found else None

    @property
    def tail(self) -> StopTail:
        """What stands before the first new token, where a stop string may begin."""
        return self.matcher.start if self.matcher is not None else ()

    @property
    def _text_matcher(self) -> StopStringMatcher:
        return StopStringMatcher(self.strings, lambda token: None)

    def reached_limit(self, count: int) -> StopReason | None:
        """Whether a text of `count` new tokens has reached a limit."""
        if count >= self.max_new:
            return StopReason("length", limit=self.max_new)
        if self.context_limit is not None and count >= self.context_limit:
            return StopReason("context", limit=self.context)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return StopReason("time", limit=self.seconds)
        return None


def build_stopping_criteria(
    config: GenerationConfig, start: int, context: int | None, before: Sequence[int] = (),
    token_bytes: Callable[[int], bytes | None] | None = None,
) -> StoppingCriteria:  # fmt: skip
    """Build the stopping rules of a run. The clock of `max_time` starts now.

    `start`: tokens in the decoder before the first new one; `before`: those tokens, where a stop string may begin;
    `token_bytes`: the bytes of a token that stop strings are looked for in.
    """
    given = config.stop_strings or ()
    strings = (given,) if isinstance(given, str) else tuple(string for string in given if string)
    matcher = StopStringMatcher(strings, token_bytes, before) if strings and token_bytes is not None else None
    return StoppingCriteria(
        max_new=new_token_limit(config, start),
        # The last token is chosen from a full context and need not be fed again.
        context_limit=None if context is None else max(context - start + 1, 1),
        eos=end_token_ids(config),
        strings=strings,
        deadline=time.monotonic() + config.max_time if config.max_time else None,
        seconds=config.max_time or 0.0,
        context=context,
        matcher=matcher,
    )


def new_token_limit(config: GenerationConfig, start: int) -> int:
    """transformers' rule: max_new_tokens, else max_length less the prompt, else 20."""
    if config.max_new_tokens is not None:
        return int(config.max_new_tokens)
    if config.max_length is not None:
        return max(int(config.max_length) - start, 0)
    return 20


def end_token_ids(config: GenerationConfig) -> frozenset[int]:
    """The end tokens as a set; empty when there is none."""
    eos = config.eos_token_id
    if eos is None:
        return frozenset()
    return frozenset(int(token) for token in eos) if isinstance(eos, (list, tuple)) else frozenset((int(eos),))
