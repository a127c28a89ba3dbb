"""The funnel on the nodes of a tree: every node is processed with its own prefix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch

from core.decoding.processor_pipeline import ActiveStage
from core.decoding.speculation.tree import DraftTree
from core.processors.base import no_detail

if TYPE_CHECKING:
    from core.processors.base import DetailFactory, StageObserver


class NodePipeline:
    """Stages of a funnel, applied to many nodes."""

    def __init__(self, stages: Iterable[ActiveStage]) -> None:
        self.stages = list(stages)
        self.headings = [stage.heading for stage in self.stages]
        self.needs_prefix = any(not stage.processor.blind for stage in self.stages)
        self._observers: list[StageObserver | None] = []

    def process_rows(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> torch.Tensor:
        """Final scores [n, V]; `prefixes`: ids [1, T_i] of every row (one for all when no stage reads them)."""
        return self.trace(prefixes, raw)[-1]

    def trace_tree(self, text: torch.Tensor, tree: DraftTree, raw: torch.Tensor) -> list[torch.Tensor]:
        """Scores before the first stage and after each, all [N, V]; `text` [1, T] ends with the root."""
        prefixes = node_prefixes(text, tree) if self.needs_prefix else [text]
        return self.trace(prefixes, raw)

    def trace(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> list[torch.Tensor]:
        """The scores before the first stage and after each, all [n, V]."""
        scores, self._observers = [raw], []
        for stage in self.stages:
            after, witness = _apply_stage(stage, prefixes, scores[-1])
            scores.append(after)
            self._observers.append(witness)
        return scores

    def observers(self) -> list[StageObserver | None]:
        """Of the last `trace`, one a stage; they go by the rows of its scores."""
        return self._observers


def _apply_stage(
    stage: ActiveStage, prefixes: list[torch.Tensor], scores: torch.Tensor
) -> tuple[torch.Tensor, StageObserver | None]:
    if stage.processor.blind or scores.shape[0] == 1:
        return stage.process(prefixes[0], scores), stage.observer()
    rows, seen = [], []
    for row, prefix in enumerate(prefixes):
        rows.append(stage.process(prefix, scores[row : row + 1]))
        seen.append(stage.observer())
    return torch.cat(rows), _combine_observers(seen)


def _combine_observers(witnesses: Sequence[StageObserver | None]) -> StageObserver | None:
    """One for all rows, each of which was a step of its own."""
    if not any(witnesses):
        return None

    def tell(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> DetailFactory:
        witness = witnesses[row]
        return witness(0, before, after, chosen) if witness else no_detail

    return tell


def node_prefixes(text: torch.Tensor, tree: DraftTree) -> list[torch.Tensor]:
    """Text and path of every node, ids [1, T + depth]."""
    found = [text]
    for node in range(1, len(tree)):
        token = torch.tensor([[tree.ids[node]]], device=text.device)
        found.append(torch.cat([found[tree.parents[node]], token], dim=1))
    return found
