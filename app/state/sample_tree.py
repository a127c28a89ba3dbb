"""Samples of one prompt merged into a prefix tree: shared as far as they agree, forked where they differ. No Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from decodescope.app.state.run import Run
from decodescope.app.state.sequences import LIMITS, SequenceStatus
from decodescope.app.state.sequences import RunSequence as Text
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core import strategies

ROOT = 0
"""Node number of the end of the prompt."""
DEFAULT_SAMPLES, MAX_SAMPLES = 64, 512
"""Default and largest number of samples."""
STRATEGY = "sampling"
"""Strategy of the samples; without sampling, all texts would be equal."""


@dataclass(frozen=True, slots=True)
class SampleNode:
    """A token after a prefix, shared by all samples that contain it."""

    id: int
    """Numbered from 1, depth by depth; equal texts give equal numbers."""
    parent: int
    depth: int
    """1 for the first new token."""
    token: int
    piece: str
    text: str
    """Text added by the token."""
    probability: float
    """Probability of the token after its parent, by the model alone."""
    sampling_probability: float
    """Probability after the settings, which the observed frequencies approach."""
    rank: int
    samples: tuple[int, ...]
    """Numbers of the samples that contain this node, ascending."""
    special: bool = False

    @property
    def count(self) -> int:
        """Number of samples that contain this node."""
        return len(self.samples)


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample as a row of a list."""

    number: int
    seed: int | None
    """Seed of a separate run that writes the same text; None if all samples share one random generator."""
    node: int
    """Its last node so far."""
    text: str
    length: int
    surprise: float | None
    """Mean of −log p per token in nats, by the model alone; None before the first token."""
    state: SequenceStatus


class SampleTree:
    """Prefix tree of a run's samples, extended by `update`. Existing nodes never change."""

    def __init__(self) -> None:
        self.nodes: list[SampleNode] = []
        self.total = 0
        """Number of samples."""
        self._end_nodes: list[int] = []
        self._depth = 0
        self._children: dict[int, list[int]] = {}

    def update(self, run: Run) -> list[SampleNode]:
        """Add every depth that all samples have reached or ended before, and return the new nodes, the most frequent
        first.
        """
        texts, before = run.sequences, len(self.nodes)
        self.total = len(texts)
        self._end_nodes += [ROOT] * (len(texts) - len(self._end_nodes))
        while self._is_complete(texts):
            self._grow(texts)
        return self.nodes[before:]

    def _is_complete(self, texts: Sequence[Text]) -> bool:
        """Return whether the next depth is complete."""
        longer = [len(text.tokens) > self._depth for text in texts]
        return any(longer) and all(more or text.finished is not None for more, text in zip(longer, texts, strict=True))

    def _grow(self, texts: Sequence[Text]) -> None:
        groups: dict[tuple[int, int], list[int]] = {}
        for number, text in enumerate(texts):
            if len(text.tokens) > self._depth:
                groups.setdefault((self._end_nodes[number], text.tokens[self._depth].id), []).append(number)
        self._depth += 1
        for (parent, _), samples in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[1])):
            self._add(parent, texts[samples[0]], tuple(samples))

    def _add(self, parent: int, text: Text, samples: tuple[int, ...]) -> None:
        token = text.tokens[self._depth - 1]
        node = SampleNode(
            len(self.nodes) + 1, parent, self._depth, token.id, token.piece, token.text, token.raw_probability,
            token.probability, token.rank, samples, token.special,
        )  # fmt: skip
        self.nodes.append(node)
        self._children.setdefault(parent, []).append(node.id)
        for number in samples:
            self._end_nodes[number] = node.id

    def __contains__(self, node: int) -> bool:
        return 0 < node <= len(self.nodes)

    def node(self, node: int) -> SampleNode:
        """Return the node with the given number.

        Raises KeyError for the prompt and for unknown nodes.
        """
        if node not in self:
            raise KeyError(node)
        return self.nodes[node - 1]

    def children(self, node: int) -> list[SampleNode]:
        """Return the children of a node, the most frequent first."""
        return [self.nodes[child - 1] for child in self._children.get(node, ())]

    def count_samples(self, node: int) -> int:
        """Return the number of samples that contain the node; all at the end of the prompt."""
        return self.total if node == ROOT else self.node(node).count

    def fraction(self, node: int) -> float:
        """Return the fraction of all samples that contain the node."""
        return self.count_samples(node) / self.total if self.total else 0.0

    def path(self, node: int) -> list[SampleNode]:
        """Return the path from the first new token to `node`; empty for the prompt."""
        path: list[SampleNode] = []
        while node in self:
            path.append(self.nodes[node - 1])
            node = path[-1].parent
        return path[::-1]

    def text(self, node: int) -> str:
        """Return the text of the path to `node`."""
        return "".join(step.text for step in self.path(node))

    def end_of(self, sample: int) -> int:
        """Return the last node of a sample, as far as the tree has grown."""
        return self._end_nodes[sample]

    def endings(self) -> Mapping[int, int]:
        """Return how many samples end (so far) at which node; the counts sum to `total`."""
        found: dict[int, int] = {}
        for node in self._end_nodes:
            found[node] = found.get(node, 0) + 1
        return dict(sorted(found.items()))


def has_samples(run: Run | None) -> bool:
    """Return whether the run writes several sequences that can be merged; a beam search has its own tree."""
    return run is not None and run.beams is None and len(run.sequences) > 1


def list_samples(run: Run, tree: SampleTree) -> list[Sample]:
    """Return all samples of the run."""
    return [_make_sample(run, tree, text) for text in run.sequences]


def _make_sample(run: Run, tree: SampleTree, text: Text) -> Sample:
    total = -sum(token.raw_log_probability for token in text.tokens)
    length = len(text.tokens)
    return Sample(
        text.index, seed_of(run.request, text.index), tree.end_of(text.index), text.text, length,
        total / length if length else None, _state(text),
    )  # fmt: skip


def _state(text: Text) -> SequenceStatus:
    if text.finished is None:
        return "running"
    if text.finished.reason in LIMITS:
        return "cut"
    return "stopped" if text.finished.reason == "stopped" else "finished"


def seed_of(request: RunRequest, sample: int) -> int | None:
    """Return the seed with which a separate run generates a sample; None if several share one random generator."""
    if not request.settings.get("seed_each"):
        return None
    return request.seed + sample


def make_samples_request(base: RunRequest, count: int) -> RunRequest:
    """Return `base` with `count` samples, with consecutive seeds from its own seed on.

    Other strategies are replaced by sampling, with the settings that both have.
    """
    if base.strategy != STRATEGY:
        sampling = strategies.registry[STRATEGY]
        values = {name: value for name, value in base.settings.items() if name in sampling.parameter_names}
        base = replace(base.with_strategy(sampling, values), draft_names=())
    return base.with_settings({"num_return_sequences": count, "seed_each": True})
