"""The thinking of a text that grows token by token, and the tokens that a budget writes into it.

Everything is a function of the tokens, so that any strategy can compute it for any text: drafts, beams and branches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from decodescope.core.thinking.marks import ThinkingMark


class TextPieces(Protocol):
    """Texts of tokens (`core.models.text.TokenSpellings`)."""

    special: frozenset[int]

    def __getitem__(self, token: int) -> str:
        """Return the token's own text."""


class TokenizedMark(NamedTuple):
    """A mark, and the tokens that close it."""

    mark: ThinkingMark
    closing: tuple[int, ...]
    """Tokens of the closing mark, and of the header that must follow it before the answer."""


class ThinkingState(NamedTuple):
    """The state of a text: before, inside or after its thinking."""

    mark: int = -1
    """Index of the mark that is open; −1 outside of thinking."""
    length: int = 0
    """Number of tokens of thinking so far, the opening marks not included."""
    tail: str = ""
    """End of the text, in which a mark may begin."""
    last: tuple[int, ...] = ()
    """The last tokens, with which a closing mark may begin."""
    pending: tuple[int, ...] = ()
    """Tokens that must be written next."""
    extensions: int = 0
    """Number of times that the end was replaced."""
    is_closed_by_force: bool = False
    """Whether thinking was just ended by force, and nothing but white space has followed."""


class ThinkingWalker:
    """Follows texts through their thinking. `limit`: maximum number of its tokens; None for no limit."""

    def __init__(
        self, marks: Sequence[TokenizedMark], pieces: TextPieces, limit: int | None, message: Sequence[int] = (),
        extension: Sequence[int] = (), start: ThinkingState | None = None,
    ) -> None:  # fmt: skip
        """Prepare for one run.

        `message`: tokens that are written before the closing mark; `extension`: tokens that replace it; `start`: the
        state at the end of the prompt.
        """
        self.marks, self._pieces, self._limit = tuple(marks), pieces, limit
        self._message, self._extension = tuple(message), tuple(extension)
        self._tail = max((max(map(len, one.mark[:2])) for one in marks), default=0) + 1
        self._memory = max((len(one.closing) for one in marks), default=0)
        self._start = self._with_pending(start or ThinkingState())
        self._path: list[int] = []
        self._states = [self._start]
        self._replaced: set[tuple[int, ...]] = set()
        """Texts after which the end was replaced by the extension."""

    def state(self, text: Sequence[int]) -> ThinkingState:
        """Return the state after the tokens of an answer."""
        path, wanted = self._path, list(text)
        if path != wanted[: len(path)]:
            pairs = enumerate(zip(path, wanted, strict=False))
            known = next((place for place, (one, other) in pairs if one != other), min(len(path), len(wanted)))
            self._cut(known)
        for token in wanted[len(path) :]:
            self._states.append(self._step(self._states[-1], token))
            path.append(token)
        return self._states[len(wanted)]

    def set_replaced(self, text: Sequence[int], is_replaced: bool) -> None:
        """Note whether the end of thinking is replaced after the tokens of an answer."""
        key = tuple(text)
        if is_replaced is not (key in self._replaced):
            (self._replaced.add if is_replaced else self._replaced.discard)(key)
            self._cut(len(key))

    def is_replaced(self, text: Sequence[int]) -> bool:
        """Return whether the end of thinking is replaced after the tokens of an answer."""
        return bool(self._replaced) and tuple(text) in self._replaced

    def _cut(self, length: int) -> None:
        del self._path[length:]
        del self._states[length + 1 :]

    def _step(self, state: ThinkingState, token: int) -> ThinkingState:
        """Return the state after one more token."""
        piece = self._pieces[token]
        following = self._follow_marks(state, token, piece)
        if self._replaced and self._extension and token == self._extension[0] and tuple(self._path) in self._replaced:
            return following._replace(pending=self._extension[1:], extensions=state.extensions + 1)
        if state.pending and token == state.pending[0]:
            following = following._replace(pending=state.pending[1:])
            if following.pending or following.mark >= 0:
                return self._with_pending(following)
            return following._replace(is_closed_by_force=True)
        still = state.is_closed_by_force and not piece.strip() and following.mark < 0
        return self._with_pending(following._replace(pending=(), is_closed_by_force=still))

    def _follow_marks(self, state: ThinkingState, token: int, piece: str) -> ThinkingState:
        text = state.tail + piece
        last = (*state.last, token)[-self._memory :]
        if state.mark >= 0:
            closing = self.marks[state.mark].mark.closing
            is_closed = text.find(closing, max(0, len(state.tail) - len(closing) + 1)) >= 0
            tail = "\n" if is_closed else text[-self._tail :]
            return state._replace(mark=-1 if is_closed else state.mark, length=state.length + 1, tail=tail, last=last)
        opened = next((n for n, one in enumerate(self.marks) if self._opens(one.mark.opening, text, state.tail)), -1)
        tail = text[-self._tail :] if opened < 0 else ""
        return state._replace(mark=opened, tail=tail, last=() if opened >= 0 else last)

    @staticmethod
    def _opens(opening: str, text: str, tail: str) -> bool:
        """Return whether an opening mark ends inside the newest token and begins a line."""
        place = text.find(opening, max(0, len(tail) - len(opening) + 1))
        return place >= 0 and not text[text.rfind("\n", 0, place) + 1 : place].strip()

    def _with_pending(self, state: ThinkingState) -> ThinkingState:
        """Return the state with the tokens that end the thinking, if its budget is used up."""
        if self._limit is None or state.mark < 0 or state.pending or state.length < self._limit:
            return state
        closing = self.marks[state.mark].closing
        begun = next((n for n in range(len(closing) - 1, 0, -1) if state.last[-n:] == closing[:n]), 0)
        return state._replace(pending=closing[begun:] if begun else (*self._message, *closing))


def start_state(marks: Sequence[TokenizedMark], is_open: Callable[[ThinkingMark], bool]) -> ThinkingState:
    """Return the state at the end of a prompt. `is_open`: whether the prompt opened this mark."""
    opened = next((n for n, one in enumerate(marks) if is_open(one.mark)), -1)
    return ThinkingState(opened, tail="" if opened >= 0 else "\n")
