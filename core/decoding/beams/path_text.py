"""The text of many paths at once: what a token adds to the path it continues, without one decoder a path."""

from __future__ import annotations

from collections.abc import Sequence

from core.models.hf_protocols import Tokenizer
from core.models.text import IncrementalDecoder, TokenSpellings
from core.models.text import TextState as PathText

__all__ = ["PathDecoder", "PathText"]


class PathDecoder:
    """Spells tokens on paths; the texts of a path and `flush` at its end add up to the decoded sequence."""

    def __init__(
        self, tokenizer: Tokenizer | None, pieces: TokenSpellings, context: Sequence[int], state: PathText | None = None
    ) -> None:
        """`state`: that of a stream which has spelled `context` already."""
        self._decoder = IncrementalDecoder(tokenizer, pieces)
        self.start = state if state is not None else self._decoder.state_after(context)

    def push(self, path: PathText, token: int) -> tuple[str, PathText]:
        """Whole characters that `token` completes on `path`, and the path it makes."""
        return self._decoder.push(path, token)

    def flush(self, path: PathText) -> str:
        """What is still held back at the end of a path, incomplete as it is."""
        return self._decoder.flush(path)
