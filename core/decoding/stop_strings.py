"""Find stop strings where transformers' `generate` finds them.

As `StopStringCriteria` has it: the texts of the tokens are joined, special tokens by their names, the prompt's tokens
included, and a stop string must end inside the newest token.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence

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
