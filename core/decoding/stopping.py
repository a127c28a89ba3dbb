"""When a text ends: its own end token, a limit, a stop string, the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from transformers import GenerationConfig

from core.decoding.stop_strings import StopStringMatcher, StopTail
from core.events import Ending


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
