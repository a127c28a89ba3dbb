"""When a text ends: its own end token, a limit, a stop string, the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from transformers import GenerationConfig

from core.events import Ending


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a sequence ended: reason, stop string, limit and whole as in SequenceFinished."""

    reason: Ending
    string: str = ""
    limit: float | None = None
    whole: bool | None = None


@dataclass(slots=True)
class Stopping:
    """Limits of a run. `max_new` counts new tokens; `room` is how many fit into the model's context."""

    max_new: int
    room: int | None
    eos: frozenset[int]
    strings: tuple[str, ...]
    deadline: float | None
    seconds: float = 0.0
    context: int | None = None
    """Tokens that the model's context holds; None without a limit."""
    before: str = ""
    """Text that the answer begins with: a stop string may begin in it."""
    _tails: dict[int, str] = field(default_factory=dict)

    def check(self, sequence: int, token: int, count: int, text: str) -> Stop | None:
        """After `token`, the `count`-th of its sequence, that added `text`: why it ends here, or None."""
        return self.ending(token, self._tail(sequence, text)) or self.limit(count)

    def ending(self, token: int, tail: str) -> Stop | None:
        """Whether the text ends by itself with `token`; `tail` is its end where stop strings may stand."""
        if token in self.eos:
            return Stop("eos")
        found = next((string for string in self.strings if string in tail), None) if tail else None
        return Stop("stop_string", found) if found else None

    def limit(self, count: int) -> Stop | None:
        """Whether a text of `count` new tokens has reached a limit."""
        if count >= self.max_new:
            return Stop("length", limit=self.max_new)
        if self.room is not None and count >= self.room:
            return Stop("context", limit=self.context)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return Stop("time", limit=self.seconds)
        return None

    def _tail(self, sequence: int, text: str) -> str:
        """The end of the sequence with `text` added; empty when nothing is looked for or nothing was added."""
        if not self.strings or not text:
            return ""
        tail = self._tails.get(sequence, self.before[-self.reach :]) + text
        self._tails[sequence] = tail[-self.reach :]
        return tail

    @property
    def reach(self) -> int:
        """Characters of a text's end that must be kept to find stop strings in it; 0 when there are none."""
        return max(map(len, self.strings), default=0)


def build_stopping(config: GenerationConfig, start: int, context: int | None, before: str = "") -> Stopping:
    """`start`: tokens in the decoder before the first new one; `before`: the text that the answer begins with. The
    clock of `max_time` starts now."""
    strings = config.stop_strings or ()
    return Stopping(
        max_new=new_token_limit(config, start),
        # The last token is chosen from a full context and need not be fed again.
        room=None if context is None else max(context - start + 1, 1),
        eos=eos_ids(config),
        strings=(strings,) if isinstance(strings, str) else tuple(string for string in strings if string),
        deadline=time.monotonic() + config.max_time if config.max_time else None,
        seconds=config.max_time or 0.0,
        context=context,
        before=before,
    )


def new_token_limit(config: GenerationConfig, start: int) -> int:
    """transformers' rule: max_new_tokens, else max_length less the prompt, else 20."""
    if config.max_new_tokens is not None:
        return int(config.max_new_tokens)
    if config.max_length is not None:
        return max(int(config.max_length) - start, 0)
    return 20


def eos_ids(config: GenerationConfig) -> frozenset[int]:
    """The end tokens as a set; empty when there is none."""
    eos = config.eos_token_id
    if eos is None:
        return frozenset()
    return frozenset(int(token) for token in eos) if isinstance(eos, (list, tuple)) else frozenset((int(eos),))
