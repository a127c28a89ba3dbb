"""Several texts of one prompt merged into one tree: one branch as far as they agree, a fork where they part. No Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.state.run import Run
from app.state.sequences import LIMITS, SequenceStatus
from app.state.sequences import RunSequence as Text
from app.state.worker_messages import RunRequest
from core import strategies

ROOT = 0
"""Number of the node that stands for the prompt's end."""
DEFAULT_SAMPLES, MAX_SAMPLES = 64, 512
"""Texts of a chorus unless somebody says otherwise, and at most."""
STRATEGY = "sampling"
"""What writes a chorus: where nothing is drawn, every text would be the same."""


@dataclass(frozen=True, slots=True)
class SampleNode:
    """One token behind one beginning, however many texts pass it."""

    id: int
    """From 1, depth by depth; the same texts give the same numbers."""
    parent: int
    depth: int
    """1 for the first new token."""
    token: int
    piece: str
    text: str
    """What it adds to the text."""
    probability: float
    """Of the token behind its parent, by the model alone."""
    sampling_probability: float
    """The same after the settings: the share that draws tend to."""
    rank: int
    samples: tuple[int, ...]
    """Numbers of the texts that pass, ascending."""
    special: bool = False

    @property
    def count(self) -> int:
        """How many texts pass."""
        return len(self.samples)


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the texts, as a list tells it."""

    number: int
    seed: int | None
    """Of a run of its own that writes the same; None where one die was rolled for all."""
    node: int
    """Where it ends, or stands."""
    text: str
    length: int
    surprise: float | None
    """Mean of −log p a token, in nats, by the model alone; None before the first token."""
    state: SequenceStatus


class SampleTree:
    """The tree of a run's texts; `update` lets it grow. A node never changes once it is there."""

    def __init__(self) -> None:
        self.nodes: list[SampleNode] = []
        self.total = 0
        """Texts in all."""
        self._end_nodes: list[int] = []
        self._depth = 0
        self._children: dict[int, list[int]] = {}

    def update(self, run: Run) -> list[SampleNode]:
        """Add every depth that all texts have come to, or ended before; the new nodes, the most frequent first."""
        texts, before = run.sequences, len(self.nodes)
        self.total = len(texts)
        self._end_nodes += [ROOT] * (len(texts) - len(self._end_nodes))
        while self._is_complete(texts):
            self._grow(texts)
        return self.nodes[before:]

    def _is_complete(self, texts: Sequence[Text]) -> bool:
        """Whether nothing more can come at the next depth."""
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
        """The node of that number. Raises KeyError for the prompt and for strangers."""
        if node not in self:
            raise KeyError(node)
        return self.nodes[node - 1]

    def children(self, node: int) -> list[SampleNode]:
        """What follows it, the most frequent first."""
        return [self.nodes[child - 1] for child in self._children.get(node, ())]

    def count_samples(self, node: int) -> int:
        """How many texts pass; all of them at the prompt's end."""
        return self.total if node == ROOT else self.node(node).count

    def fraction(self, node: int) -> float:
        """Share of all texts that pass."""
        return self.count_samples(node) / self.total if self.total else 0.0

    def path(self, node: int) -> list[SampleNode]:
        """From the first new token to `node`; empty for the prompt."""
        path: list[SampleNode] = []
        while node in self:
            path.append(self.nodes[node - 1])
            node = path[-1].parent
        return path[::-1]

    def text(self, node: int) -> str:
        """What the path to `node` wrote."""
        return "".join(step.text for step in self.path(node))

    def end_of(self, sample: int) -> int:
        """The last node of a text, as far as the tree has grown."""
        return self._end_nodes[sample]

    def endings(self) -> Mapping[int, int]:
        """How many texts end (or stand, while they are written) at which node; the counts sum to `total`."""
        found: dict[int, int] = {}
        for node in self._end_nodes:
            found[node] = found.get(node, 0) + 1
        return dict(sorted(found.items()))


def has_samples(run: Run | None) -> bool:
    """Whether the run writes several texts that can be merged: a beam search has a tree of its own."""
    return run is not None and run.beams is None and len(run.sequences) > 1


def list_samples(run: Run, tree: SampleTree) -> list[Sample]:
    """Every text of the run."""
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
    """The seed with which a run of its own writes that text; None where one die was rolled for several."""
    if not request.options.get("seed_each"):
        return None
    return request.seed + sample


def make_samples_request(base: RunRequest, count: int) -> RunRequest:
    """`base` written `count` times at once, each text with a seed of its own: its seed, the next one, and so on.

    What is no sampling becomes it, with the settings that both have.
    """
    if base.strategy != STRATEGY:
        sampling = strategies.registry[STRATEGY]
        values = {name: value for name, value in base.settings.items() if name in sampling.parameter_names}
        base = replace(base.with_strategy(sampling, values), draft_names=())
    config = {**base.config, "num_return_sequences": count}
    return replace(base, config=config, options={**base.options, "seed_each": True})
