"""From a beam search to the canvas: each step's candidates as nodes, the root as the prompt's end."""

from __future__ import annotations

from collections.abc import Iterator

from app.state.beam_tree import BeamTree
from app.state.run import Run
from app.views.text.token_wording import token_text
from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from core import words
from core.events import BeamCandidate, BeamFate
from resources.language import tr

ROOT = 0
_STATES: dict[BeamFate, NodeState] = {
    "kept": "kept",
    "pruned": "pruned",
    "finished": "finished",
    "early_stopped": "unreached",
}


class BeamTreeBuilder:
    """Knows how much of a run's tree stands on the stage, and adds what is new."""

    def __init__(self, stage: CanvasState) -> None:
        self._stage = stage
        self.steps = self._constraint_length = 0

    def restart(self) -> None:
        """An empty stage, for another run."""
        self.steps = self._constraint_length = 0
        self._stage.clear()

    def update(self, run: Run, tree: BeamTree) -> None:
        """Add the steps that are new, and show the tree as it was at the run's cursor."""
        if self.steps < len(tree.steps):
            self._stage.add_nodes(self._new_nodes(run, tree))
        self._stage.set_max_depth(None if run.cursor >= len(tree.steps) else run.cursor)
        self._stage.set_best_path([ROOT, *(candidate.node for candidate in tree.leading_path(run.cursor))])

    def _new_nodes(self, run: Run, tree: BeamTree) -> Iterator[TreeNode]:
        if self.steps == 0:
            self._stage.set_lane_titles({n: tr("Group {number}").format(number=n + 1) for n in range(tree.groups)})
            yield TreeNode(ROOT, None, root_label(run), state="root", lane=None if tree.groups > 1 else 0)
        total = tree.progress  # every result meets all constraints: some node will come to their full length
        if total != self._constraint_length:
            self._constraint_length = total
            self._stage.set_progress({c.node: (c.progress, total) for s in tree.steps for c in s.candidates})
        for step in tree.steps[self.steps :]:
            for candidate in step.candidates:
                yield _node(candidate, total)
        self.steps = len(tree.steps)


def root_label(run: Run) -> str:
    """The prompt's last word; `start` where it has none."""
    words = [token_text(token.text, token.special).strip("␣") for token in run.before[-1:]]
    return f"…{words[0]}" if words and words[0] and not words[0].startswith("⟨") else tr("start")


def displayed_path(run: Run) -> list[BeamCandidate]:
    """The nodes of the shown text; empty where no beam search wrote it."""
    if run.beams is None or not run.tokens:
        return []
    return run.beams.path(run.beams.node_of(run.tokens[-1]))


def candidate_label(candidate: BeamCandidate) -> str:
    """The token; whatever ends a text by itself is called end."""
    return tr("end") if candidate.ended == "eos" else token_text(candidate.piece, candidate.special)


def _node(candidate: BeamCandidate, total: int) -> TreeNode:
    return TreeNode(
        candidate.node, candidate.parent, candidate_label(candidate), probability_text(candidate.probability),
        note=words.decimal(candidate.score), weight=candidate.probability, state=_STATES[candidate.fate],
        lane=candidate.group,
        progress=(candidate.progress, total) if total else None,
    )  # fmt: skip


def probability_text(probability: float) -> str:
    """`.46`; `1`, `>.99` and `<.01` at the ends."""
    return words.compact_share(probability)
