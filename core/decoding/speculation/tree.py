"""The token tree of a round: nodes in depth-first order, ancestor masks, and merging of drafts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from decodescope.core.decoding.processor_pipeline import ActiveStage
from decodescope.core.processors.base import no_detail
from decodescope.core.system.gpu import upload

if TYPE_CHECKING:
    from decodescope.core.processors.base import DetailFactory, StageObserver

DraftTrial = tuple[int, int]
"""(node, drafter): a token that a drafter proposed; the same node may be tried more than once."""


@dataclass(slots=True)
class Branch:
    """One drafter's proposal. Nodes count from 1 and follow their parents; 0 is the last token of the text."""

    ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    """The drafter's processed probability of each node given its parent."""
    trials: list[int] = field(default_factory=list)
    """Nodes in drawing order; a token drawn twice at one parent is one node and two trials."""
    q: dict[int, torch.Tensor | None] = field(default_factory=dict)
    """Parent → the distribution [V] its children were drawn from (sampling); None for a point mass."""

    confidences: list[float] = field(default_factory=list)
    """Confidence per node of a drafter without probabilities; empty: use its probabilities."""

    def add(self, parent: int, token: int, probability: float) -> int:
        """Add a node and its first trial; return its index."""
        self.ids.append(token)
        self.parents.append(parent)
        self.probabilities.append(probability)
        self.trials.append(len(self.ids))
        return len(self.ids)

    def draw(self, parent: int, tokens: Sequence[int], probabilities: Sequence[float]) -> list[int]:
        """Add children in drawing order; a token drawn again is a second trial of the same node."""
        nodes: dict[int, int] = {}
        for token, probability in zip(tokens, probabilities, strict=True):
            if token in nodes:
                self.trials.append(nodes[token])
            else:
                nodes[token] = self.add(parent, token, probability)
        return list(nodes.values())

    @property
    def is_chain(self) -> bool:
        """Whether each node has one child, drawn once."""
        count = len(self.ids)
        return len(self.trials) == count and self.parents == list(range(count))

    @staticmethod
    def chain(ids: list[int], probabilities: list[float], q: Sequence[torch.Tensor | None] = ()) -> Branch:
        """Build a chain of tokens."""
        count = len(ids)
        return Branch(
            ids, list(range(count)), probabilities, list(range(1, count + 1)), dict(enumerate(q)) if q else {}
        )


@dataclass
class DraftTree:
    """The merged proposals in depth-first order. Index 0 of every list is the root, the last token of the text."""

    ids: list[int]
    parents: list[int]
    """-1 for the root."""
    depths: list[int]
    drafters: list[int]
    probabilities: list[float]
    trials: dict[int, list[DraftTrial]]
    """Parent → proposals after it, in drawing order, drafter by drafter."""
    q: dict[tuple[int, int], torch.Tensor | None]
    """(parent, drafter) → the distribution its children were drawn from."""
    confidences: list[float] = field(default_factory=list)
    """Confidence per node; equals `probabilities` unless the drafter sets it."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def drafted(self) -> int:
        """Number of nodes without the root."""
        return len(self.ids) - 1

    @cached_property
    def children(self) -> list[list[int]]:
        """Children of every node, in order."""
        children: list[list[int]] = [[] for _ in self.ids]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(node)
        return children

    @cached_property
    def is_chain(self) -> bool:
        """Whether no node has two children."""
        return all(parent == node - 1 for node, parent in enumerate(self.parents))

    def ancestor_mask(self) -> npt.NDArray[np.bool_]:
        """Return [N, N]: row i marks node i and its ancestors."""
        return build_ancestor_mask(self.parents)

    def path(self, node: int) -> list[int]:
        """Return the token ids from below the root down to `node`."""
        ids: list[int] = []
        while node > 0:
            ids.append(self.ids[node])
            node = self.parents[node]
        return ids[::-1]


def build_ancestor_mask(parents: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return [N, N]: row i marks i and its ancestors, for nodes that follow their parents (-1: none)."""
    sees = np.eye(len(parents), dtype=np.bool_)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
    return sees


def merge_branches(root: int, branches: Sequence[Branch], drafters: Sequence[int] = ()) -> DraftTree:
    """Merge all drafters' proposals into one prefix tree: equal tokens after equal paths are one node.

    `drafters`: the drafters' indices; without it they are numbered from 0.
    """
    drafters = drafters or range(len(branches))
    if len(branches) == 1 and branches[0].is_chain:
        return _chain_tree(root, branches[0], drafters[0])
    builder: _TreeBuilder = _TreeBuilder(root)
    places = [builder.insert(branch, drafter) for drafter, branch in zip(drafters, branches, strict=True)]
    order = builder.depth_first()
    place_of = {old: new for new, old in enumerate(order)}
    tree = DraftTree(
        ids=[builder.ids[old] for old in order],
        parents=[place_of[builder.parents[old]] if old else -1 for old in order],
        depths=[builder.depths[old] for old in order],
        drafters=[builder.drafters[old] for old in order],
        probabilities=[builder.probabilities[old] for old in order],
        trials={},
        q={},
        confidences=[builder.confidences[old] for old in order],
    )
    for drafter, branch, places_of in zip(drafters, branches, places, strict=True):
        for node in branch.trials:
            parent = place_of[places_of[branch.parents[node - 1]]]
            tree.trials.setdefault(parent, []).append((place_of[places_of[node]], drafter))
        tree.q.update({(place_of[places_of[parent]], drafter): q for parent, q in branch.q.items()})
    return tree


def _chain_tree(root: int, branch: Branch, drafter: int) -> DraftTree:
    count = len(branch.ids)
    return DraftTree(
        ids=[root, *branch.ids],
        parents=list(range(-1, count)),
        depths=list(range(count + 1)),
        drafters=[drafter] * (count + 1),
        probabilities=[1.0, *branch.probabilities],
        trials={node: [(node + 1, drafter)] for node in range(count)},
        q={(parent, drafter): q for parent, q in branch.q.items()},
        confidences=[1.0, *(branch.confidences or branch.probabilities)],
    )


class _TreeBuilder:
    """Builds a merged tree; node 0 is the root."""

    def __init__(self, root: int) -> None:
        self.ids, self.parents, self.depths, self.drafters, self.probabilities = [root], [-1], [0], [0], [1.0]
        self.confidences = [1.0]
        self._children: list[dict[int, int]] = [{}]

    def insert(self, branch: Branch, drafter: int) -> list[int]:
        """Insert a branch; return the indices of its nodes, the root first."""
        places = [0]
        sure = branch.confidences or branch.probabilities
        for token, parent, *shares in zip(branch.ids, branch.parents, branch.probabilities, sure, strict=True):
            places.append(self._insert_node(places[parent], token, drafter, *shares))
        return places

    def _insert_node(self, parent: int, token: int, drafter: int, probability: float, confidence: float) -> int:
        known = self._children[parent].get(token)
        if known is not None:
            return known
        place = self._children[parent][token] = len(self.ids)
        self.ids.append(token)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        self.drafters.append(drafter)
        self.probabilities.append(probability)
        self.confidences.append(confidence)
        self._children.append({})
        return place

    def depth_first(self) -> list[int]:
        """Return nodes in preorder, children in insertion order."""
        order, stack = [], [0]
        while stack:
            node = stack.pop()
            order.append(node)
            stack.extend(reversed(self._children[node].values()))
        return order


class NodePipeline:
    """Stages of a pipeline, applied to many nodes."""

    def __init__(self, stages: Iterable[ActiveStage]) -> None:
        self.stages = list(stages)
        self.headings = [stage.heading for stage in self.stages]
        self.needs_prefix = any(not stage.processor.uses_scores_only for stage in self.stages)
        self._observers: list[StageObserver | None] = []

    def process_rows(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> torch.Tensor:
        """Return final scores [n, V]; `prefixes`: ids [1, T_i] of every row (one for all if no stage reads them)."""
        return self.trace(prefixes, raw)[-1]

    def trace_tree(self, text: torch.Tensor, tree: DraftTree, raw: torch.Tensor) -> list[torch.Tensor]:
        """Return the scores before the first stage and after each, all [N, V]; `text` [1, T] ends with the root."""
        prefixes = node_prefixes(text, tree) if self.needs_prefix else [text]
        return self.trace(prefixes, raw)

    def trace(self, prefixes: list[torch.Tensor], raw: torch.Tensor) -> list[torch.Tensor]:
        """Return the scores before the first stage and after each, all [n, V]."""
        scores, self._observers = [raw], []
        for stage in self.stages:
            after, witness = _apply_stage(stage, prefixes, scores[-1])
            scores.append(after)
            self._observers.append(witness)
        return scores

    def observers(self) -> list[StageObserver | None]:
        """Return one observer per stage for the last `trace`, indexed by its rows."""
        return self._observers


def _apply_stage(
    stage: ActiveStage, prefixes: list[torch.Tensor], scores: torch.Tensor
) -> tuple[torch.Tensor, StageObserver | None]:
    if stage.processor.uses_scores_only or scores.shape[0] == 1:
        return stage.process(prefixes[0], scores), stage.observer()
    rows, seen = [], []
    for row, prefix in enumerate(prefixes):
        rows.append(stage.process(prefix, scores[row : row + 1]))
        seen.append(stage.observer())
    return torch.cat(rows), _combine_observers(seen)


def _combine_observers(observers: Sequence[StageObserver | None]) -> StageObserver | None:
    """Combine one observer per row into one observer."""
    if not any(observers):
        return None

    def observe(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> DetailFactory:
        witness = observers[row]
        return witness(0, before, after, chosen) if witness else no_detail

    return observe


def node_prefixes(text: torch.Tensor, tree: DraftTree) -> list[torch.Tensor]:
    """Return the prefix of every node: text and path, ids [1, T + depth]."""
    found = [text]
    for node in range(1, len(tree)):
        token = upload([[tree.ids[node]]], text.device)
        found.append(torch.cat([found[tree.parents[node]], token], dim=1))
    return found
