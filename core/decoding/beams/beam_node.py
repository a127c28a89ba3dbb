"""A node of the beam tree during the search: one continuation, linked to its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decodescope.core.decoding.beams.constraints import ConstraintProgress
from decodescope.core.decoding.stopping import StopReason, StopTail
from decodescope.core.events import BeamFate
from decodescope.core.models.text import IncrementalDecoder, Tokenizer, TokenSpellings
from decodescope.core.models.text import TextState as PathText

__all__ = ["PathDecoder", "PathText"]


class PathDecoder:
    """Decode tokens on paths; the texts of a path plus `flush` at its end equal the decoded sequence."""

    def __init__(
        self, tokenizer: Tokenizer | None, pieces: TokenSpellings, context: Sequence[int], state: PathText | None = None
    ) -> None:
        """Start after `context`; `state` is that of a stream that has already decoded it."""
        self._decoder = IncrementalDecoder(tokenizer, pieces)
        self.start = state if state is not None else self._decoder.state_after(context)

    def push(self, path: PathText, token: int) -> tuple[str, PathText]:
        """Return the complete characters that `token` adds to `path`, and the new path."""
        return self._decoder.push(path, token)

    def flush(self, path: PathText) -> str:
        """Return the incomplete text held back at the end of a path."""
        return self._decoder.flush(path)


@dataclass(slots=True, eq=False)
class BeamNode:
    """One continuation. Ancestors stay in memory only while a running or finished node needs them."""

    token: int
    parent: BeamNode | None
    row: int
    """Batch row of its parent at the time it was considered."""
    length: int
    """Number of new tokens up to and including this one."""
    score: float
    """Sum of log-probabilities, penalties included."""
    text_path: PathText
    normalized: float = 0.0
    """score ÷ length^length_penalty."""
    log_probability: float = 0.0
    probability: float = 0.0
    raw_log_probability: float = 0.0
    """From the model alone, before any processor; so are `raw_rank` and `entropy`."""
    raw_rank: int = 0
    entropy: float = 0.0
    number: int = 0
    rank: int = 0
    group: int = 0
    penalty: float = 0.0
    """Diversity penalty subtracted at this step."""
    text: str = ""
    tail: StopTail = ()
    """Last tokens of the text, in which stop strings are searched."""
    progress: ConstraintProgress | None = None
    stop: StopReason | None = None
    """Why the text ends here; None while it continues."""
    fate: BeamFate = "pruned"

    def ids(self) -> tuple[int, ...]:
        """Return the new tokens from the prompt to this node."""
        return tuple(node.token for node in self.lineage())

    def decoded_text(self) -> str:
        """Return the text from the prompt to this node, without incomplete characters."""
        return "".join(node.text for node in self.lineage())

    def lineage(self) -> list[BeamNode]:
        """Return the nodes from the first new token to this one."""
        nodes: list[BeamNode] = []
        node: BeamNode | None = self
        while node is not None and node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]
