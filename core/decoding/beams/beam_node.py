"""A node of the beam tree while the search runs: one continuation, linked to the one it continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.decoding.beams.constraints import ConstraintProgress
from core.decoding.stopping import StopReason, StopTail
from core.events import BeamFate
from core.models.text import IncrementalDecoder, Tokenizer, TokenSpellings
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


@dataclass(slots=True, eq=False)
class BeamNode:
    """One continuation. Only what is still running or finished keeps its ancestors alive."""

    token: int
    parent: BeamNode | None
    row: int
    """Row of the batch that its parent had when it was considered."""
    length: int
    """New tokens from the prompt to here."""
    score: float
    """Sum of log-probabilities, penalties included."""
    text_path: PathText
    normalized: float = 0.0
    """score ÷ length^length_penalty."""
    log_probability: float = 0.0
    probability: float = 0.0
    raw_log_probability: float = 0.0
    """By the model alone, as the two that follow."""
    raw_rank: int = 0
    entropy: float = 0.0
    number: int = 0
    rank: int = 0
    group: int = 0
    penalty: float = 0.0
    """What diverse search took off at this step."""
    text: str = ""
    tail: StopTail = ()
    """The last tokens of its text, where stop strings are looked for."""
    progress: ConstraintProgress | None = None
    stop: StopReason | None = None
    """Why the text ends here; None while it goes on."""
    fate: BeamFate = "pruned"

    def ids(self) -> tuple[int, ...]:
        """New tokens from the prompt to here."""
        return tuple(node.token for node in self.lineage())

    def decoded_text(self) -> str:
        """The text from the prompt to here, without characters that are still incomplete."""
        return "".join(node.text for node in self.lineage())

    def lineage(self) -> list[BeamNode]:
        """The nodes from the first new token to this one."""
        nodes: list[BeamNode] = []
        node: BeamNode | None = self
        while node is not None and node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]
