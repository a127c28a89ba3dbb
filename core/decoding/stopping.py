"""When a text ends: its own end token, a limit, a stop string, the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from transformers import GenerationConfig


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a sequence ended: reason as in SequenceFinished, and the words for it."""

    reason: str
    detail: str = ""


@dataclass(slots=True)
class Stopping:
    """Limits of a run. `max_new` counts new tokens; `room` is how many fit into the model's context."""

    max_new: int
    room: int | None
    eos: frozenset[int]
    strings: tuple[str, ...]
    deadline: float | None
    seconds: float = 0.0
    _tails: dict[int, str] = field(default_factory=dict)

    def check(self, sequence: int, token: int, count: int, text: str) -> Stop | None:
        """After `token`, the `count`-th of its sequence, that added `text`: why it ends here, or None."""
        if token in self.eos:
            return Stop("eos", "the end token")
        if found := self._find_string(sequence, text):
            return Stop("stop_string", found)
        if count >= self.max_new:
            return Stop("length", f"the limit of {self.max_new:,} tokens")
        if self.room is not None and count >= self.room:
            return Stop("context", "the end of the model's context")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return Stop("time", f"the time limit of {self.seconds:g} s")
        return None

    def _find_string(self, sequence: int, text: str) -> str | None:
        """A stop string that `text` completes in the sequence."""
        if not self.strings or not text:
            return None
        tail = self._tails.get(sequence, "") + text
        self._tails[sequence] = tail[-max(map(len, self.strings)) :]
        return next((string for string in self.strings if string in tail), None)


def build_stopping(config: GenerationConfig, start: int, context: int | None) -> Stopping:
    """`start`: tokens in the decoder before the first new one. The clock of `max_time` starts now."""
    strings = config.stop_strings or ()
    return Stopping(
        max_new=new_token_limit(config, start),
        # The last token is chosen from a full context and need not be fed again.
        room=None if context is None else max(context - start + 1, 1),
        eos=eos_ids(config),
        strings=(strings,) if isinstance(strings, str) else tuple(string for string in strings if string),
        deadline=time.monotonic() + config.max_time if config.max_time else None,
        seconds=config.max_time or 0.0,
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
