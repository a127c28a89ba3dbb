"""The funnel on the nodes of a tree: every node is processed with its own prefix."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from core.decoding.funnel import FunnelStage
from core.decoding.speculation.tree import DraftTree


class NodeFunnel:
    """Stages of a funnel, applied to many nodes."""

    def __init__(self, stages: Iterable[FunnelStage]) -> None:
        self.stages = list(stages)
        self.names = [stage.heading for stage in self.stages]
        self.needs_prefix = any(not stage.processor.blind for stage in self.stages)

    def rows(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> torch.Tensor:
        """Final scores [n, V]; `prefixes`: ids [1, T_i] of every row (one for all when no stage reads them)."""
        return self.trace(prefixes, raw)[-1]

    def tree(self, text: torch.Tensor, tree: DraftTree, raw: torch.Tensor) -> list[torch.Tensor]:
        """Scores before the first stage and after each, all [N, V]; `text` [1, T] ends with the root."""
        prefixes = prefixes_of(text, tree) if self.needs_prefix else [text]
        return self.trace(prefixes, raw)

    def trace(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> list[torch.Tensor]:
        """The scores before the first stage and after each, all [n, V]."""
        scores = [raw]
        for stage in self.stages:
            scores.append(_apply(stage, prefixes, scores[-1]))
        return scores


def _apply(stage: FunnelStage, prefixes: list[torch.Tensor], scores: torch.Tensor) -> torch.Tensor:
    if stage.processor.blind or scores.shape[0] == 1:
        return stage.process(prefixes[0], scores)
    rows = [stage.process(prefix, scores[row : row + 1]) for row, prefix in enumerate(prefixes)]
    return torch.cat(rows)


def prefixes_of(text: torch.Tensor, tree: DraftTree) -> list[torch.Tensor]:
    """Text and path of every node, ids [1, T + depth]."""
    found = [text]
    for node in range(1, len(tree)):
        token = torch.tensor([[tree.ids[node]]], device=text.device)
        found.append(torch.cat([found[tree.parents[node]], token], dim=1))
    return found
