"""The funnel on the nodes of a tree: every node is processed with its own prefix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch

from core.decoding.processor_pipeline import ActiveStage
from core.decoding.speculation.tree import DraftTree
from core.processors.base import tells_nothing

if TYPE_CHECKING:
    from core.processors.base import Telling, Witness


class NodeFunnel:
    """Stages of a funnel, applied to many nodes."""

    def __init__(self, stages: Iterable[ActiveStage]) -> None:
        self.stages = list(stages)
        self.names = [stage.heading for stage in self.stages]
        self.needs_prefix = any(not stage.processor.blind for stage in self.stages)
        self._witnesses: list[Witness | None] = []

    def rows(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> torch.Tensor:
        """Final scores [n, V]; `prefixes`: ids [1, T_i] of every row (one for all when no stage reads them)."""
        return self.trace(prefixes, raw)[-1]

    def tree(self, text: torch.Tensor, tree: DraftTree, raw: torch.Tensor) -> list[torch.Tensor]:
        """Scores before the first stage and after each, all [N, V]; `text` [1, T] ends with the root."""
        prefixes = prefixes_of(text, tree) if self.needs_prefix else [text]
        return self.trace(prefixes, raw)

    def trace(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> list[torch.Tensor]:
        """The scores before the first stage and after each, all [n, V]."""
        scores, self._witnesses = [raw], []
        for stage in self.stages:
            after, witness = _apply(stage, prefixes, scores[-1])
            scores.append(after)
            self._witnesses.append(witness)
        return scores

    def witnesses(self) -> list[Witness | None]:
        """Of the last `trace`, one a stage; they go by the rows of its scores."""
        return self._witnesses


def _apply(
    stage: ActiveStage, prefixes: list[torch.Tensor], scores: torch.Tensor
) -> tuple[torch.Tensor, Witness | None]:
    if stage.processor.blind or scores.shape[0] == 1:
        return stage.process(prefixes[0], scores), stage.witness()
    rows, seen = [], []
    for row, prefix in enumerate(prefixes):
        rows.append(stage.process(prefix, scores[row : row + 1]))
        seen.append(stage.witness())
    return torch.cat(rows), _by_row(seen)


def _by_row(witnesses: Sequence[Witness | None]) -> Witness | None:
    """One for all rows, each of which was a step of its own."""
    if not any(witnesses):
        return None

    def tell(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> Telling:
        witness = witnesses[row]
        return witness(0, before, after, chosen) if witness else tells_nothing

    return tell


def prefixes_of(text: torch.Tensor, tree: DraftTree) -> list[torch.Tensor]:
    """Text and path of every node, ids [1, T + depth]."""
    found = [text]
    for node in range(1, len(tree)):
        token = torch.tensor([[tree.ids[node]]], device=text.device)
        found.append(torch.cat([found[tree.parents[node]], token], dim=1))
    return found
