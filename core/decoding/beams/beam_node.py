"""A node of the beam tree while the search runs: one continuation, linked to the one it continues."""

from __future__ import annotations

from dataclasses import dataclass

from core.decoding.beams.constraints import ConstraintProgress
from core.decoding.beams.path_text import PathText
from core.decoding.stop_strings import StopTail
from core.decoding.stopping import StopReason
from core.events import BeamFate


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
