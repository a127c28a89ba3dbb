"""Reads answers token by token with patterns: what each token does to a text, for the whole vocabulary at once."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.stopping import StopTail
from decodescope.core.errors import PromptError
from decodescope.core.likelihood.text_pattern import PatternAutomaton, TextPattern
from decodescope.resources.language import tr

IntArray = npt.NDArray[np.int64]
YES, OPEN, NO = 1, 0, -1
"""Whether an answer matches: whatever follows; depends on what follows; never."""


class _AnswerState(NamedTuple):
    """The properties of a text that decide how further tokens are judged."""

    states: tuple[int, ...]
    """States of the patterns."""
    pending: bytes
    """Bytes of an incomplete character."""
    drops_space: bool
    """Whether a space at the beginning of the next token is not shown."""
    tail: StopTail
    """End of the text, in which a stop string may begin."""
    has_ended: bool = False


class AnswerReader:
    """Follows patterns through the answers of a run. A state is a number; 0 is the empty answer.

    The text of an answer is the bytes of its tokens, decoded as UTF-8; special tokens have none.
    """

    def __init__(self, run: DecodingRun, patterns: Sequence[TextPattern]) -> None:
        """Prepare the automata. Raises PromptError for a model without tokenizer, ParameterError."""
        data = run.model.token_bytes
        if data is None:
            raise PromptError(
                tr("{model} has no tokenizer, so its answers are no texts.").format(model=run.model.name),
                tr("Load the model with its tokenizer."),
            )
        self._run, self._bytes = run, data
        self._automata = [PatternAutomaton(pattern) for pattern in patterns]
        drops_space = run.model.strips_first_space(run.start_ids)
        first = _AnswerState((0,) * len(patterns), b"", drops_space, run.stopping.tail)
        self._states, self._numbers = [first], {first: 0}
        self._following: dict[int, IntArray] = {}
        self._verdicts: dict[int, tuple[int, ...]] = {}

    def follow(self, state: int, tokens: IntArray) -> IntArray:
        """Return the states [n] after each of `tokens` [n]."""
        table = self._following.get(state)
        if table is None:
            table = self._following[state] = np.full(self._run.model.vocabulary, -1, np.int64)
        for token in tokens[table[tokens] < 0]:
            table[token] = self._step(state, int(token))
        return table[tokens]

    def has_ended(self, state: int) -> bool:
        """Return whether the text ends by itself: with an end token or a stop string."""
        return self._states[state].has_ended

    def verdicts(self, state: int) -> tuple[int, ...]:
        """Return for each pattern whether a text in this state matches whatever follows: YES, OPEN or NO."""
        found = self._verdicts.get(state)
        if found is None:
            found = tuple(
                YES if one.is_certain(own) else NO if one.is_impossible(own) else OPEN
                for one, own in zip(self._automata, self._states[state].states, strict=True)
            )
            if self._states[state].has_ended:
                found = self.final_verdicts(state)
            self._verdicts[state] = found
        return found

    def final_verdicts(self, state: int) -> tuple[int, ...]:
        """Return for each pattern whether the text matches if it ends here: YES or NO."""
        own = self._states[state]
        rest = codecs.utf_8_decode(own.pending, "replace", True)[0]
        pairs = zip(self._automata, own.states, strict=True)
        return tuple(YES if one.accepts(one.read(number, rest)) else NO for one, number in pairs)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of an answer, without an incomplete character at its end."""
        text = codecs.utf_8_decode(b"".join(self._bytes[token] or b"" for token in ids), "replace", False)[0]
        return text.removeprefix(" ") if self._states[0].drops_space else text

    def _step(self, state: int, token: int) -> int:
        own, data = self._states[state], self._bytes[token] or b""
        stop, tail = self._run.stopping.natural_end(token, own.tail)
        text, pending, drops_space = "", own.pending, own.drops_space
        if data:
            text, length = codecs.utf_8_decode(pending + data, "replace", False)
            pending = (pending + data)[length:]
            if drops_space:
                text, drops_space = text.removeprefix(" "), False
        states = tuple(one.read(number, text) for one, number in zip(self._automata, own.states, strict=True))
        key = _AnswerState(states, pending, drops_space, tail, stop is not None)
        if key not in self._numbers:
            self._numbers[key] = len(self._states)
            self._states.append(key)
        return self._numbers[key]
