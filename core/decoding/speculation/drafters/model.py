"""A model as drafter: chains in a bare loop, trees level by level in one pass each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from core.decoding.speculation.cost import clock_of
from core.decoding.speculation.plan import Plan
from core.decoding.speculation.processing import NodeFunnel
from core.decoding.speculation.text import Text
from core.decoding.speculation.tree import Branch


class Reader(Protocol):
    """The part of `Passes` that drafting uses."""

    length: int
    extra: int

    def text(self, ids: torch.Tensor) -> torch.Tensor: ...
    def nodes(self, ids: torch.Tensor, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> torch.Tensor: ...
    def settle(self, rows: Sequence[int]) -> None: ...
    def crop(self, length: int) -> None: ...


class ModelDrafter:
    """Drafts with a model that shares the target's tokens.

    `reader` holds its memory; `funnel` processes its scores as the target's are; `fit` brings its logits to the
    target's vocabulary.
    """

    def __init__(
        self, name: str, reader: Reader, funnel: NodeFunnel, generator: torch.Generator, number: int,
        is_cancelled: Callable[[], bool], vocabulary: int, context: int | None,
    ) -> None:  # fmt: skip
        self.name, self.reader, self.funnel = name, reader, funnel
        self._generator, self._number, self._is_cancelled, self._vocabulary = (
            generator, number, is_cancelled, vocabulary,
        )  # fmt: skip
        self._context = context
        self._clock = clock_of(generator.device)
        self.first_seconds = 0.0
        self._fed: list[tuple[int, int]] = []
        """(parent's row or -1, token) of the node rows in memory."""

    def room(self, length: int) -> int:
        """What its own context leaves."""
        return 1_000_000 if self._context is None else self._context - length + 1

    def propose(self, text: Text, plan: Plan) -> Branch | None:
        """Catch up with the text, then draft."""
        self._fed = []
        begun = self._clock()
        logits = self._fit(self.reader.text(text.slice(self.reader.length)))
        self.first_seconds = self._clock() - begun
        if plan.is_chain:
            return self._chain(text, plan, logits)
        return _Grower(self, text, plan).grow(logits)

    def settle(self, accepted: Sequence[int]) -> None:
        """Keep the rows of the accepted path as far as it was read."""
        rows: list[int] = []
        place = {fed: row for row, fed in enumerate(self._fed)}
        row = -1
        for token in accepted:
            found = place.get((row, token))
            if found is None:
                break
            rows.append(found)
            row = found
        self.reader.settle(rows)
        self._fed = []

    def close(self, length: int) -> None:
        """Cut the memory to the text."""
        self.reader.crop(length)

    def _fit(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits [n, V] over the target's vocabulary: surplus ids cut, missing ones impossible."""
        missing = self._vocabulary - logits.shape[-1]
        if missing == 0:
            return logits
        return logits[:, :missing] if missing < 0 else torch.nn.functional.pad(logits, (0, missing), value=-torch.inf)

    def _chain(self, text: Text, plan: Plan, logits: torch.Tensor) -> Branch | None:
        """The bare loop: nothing leaves the device unless a rule has to look at a probability."""
        tokens: list[torch.Tensor] = []
        rows: list[torch.Tensor] = []
        looks, chance = plan.threshold > 0 or plan.gate is not None, 1.0
        prefix = text.tensor
        for depth in range(plan.depth):
            scores = self.funnel.rows([prefix], logits) if self.funnel.stages else logits
            if plan.sampled or looks:
                scores = torch.softmax(scores, -1)
            token = torch.multinomial(scores, 1, generator=self._generator)[0] if plan.sampled else scores.argmax(-1)
            tokens.append(token)
            rows.append(scores)
            if looks:
                probability = float(scores[0, token])
                chance *= plan.gate.accept(self._number, probability) if plan.gate else 1.0
                if probability < plan.threshold or (plan.gate and not plan.gate.goes_on((chance,), depth + 1)):
                    break
            if depth + 1 == plan.depth:
                break
            if self._is_cancelled():
                return None
            if self.funnel.needs_prefix:
                prefix = torch.cat([prefix, token[None]], dim=1)
            logits = self._fit(self.reader.nodes(token[None], (depth,), np.ones((1, depth + 1), dtype=np.bool_)))
        return self._finish_chain(tokens, rows, plan, plan.sampled or looks)

    def _finish_chain(
        self, tokens: list[torch.Tensor], rows: list[torch.Tensor], plan: Plan, are_probabilities: bool
    ) -> Branch:
        drawn = torch.cat(tokens)
        scores = torch.cat(rows)
        q = scores if are_probabilities else torch.softmax(scores, -1)
        ids: list[int] = drawn.tolist()
        self._fed = list(zip(range(-1, len(ids) - 2), ids[:-1], strict=True))
        probabilities = q.gather(1, drawn[:, None])[:, 0].tolist()
        return Branch.chain(ids, probabilities, list(q) if plan.keep_q else ())

    def feed(
        self, tokens: Sequence[int], parents: Sequence[int], depth: int, sees: npt.NDArray[np.bool_]
    ) -> torch.Tensor:
        """Read one level of a tree; logits [n, V]. `parents`: rows of the nodes' parents, -1 for the root."""
        self._fed += zip(parents, tokens, strict=True)
        ids = torch.tensor([list(tokens)], device=self._generator.device)
        return self._fit(self.reader.nodes(ids, [depth] * len(tokens), sees))

    @property
    def generator(self) -> torch.Generator:
        """The run's source of randomness."""
        return self._generator

    @property
    def number(self) -> int:
        """Its place among the run's drafters."""
        return self._number

    @property
    def is_cancelled(self) -> Callable[[], bool]:
        """Whether the user asked to stop."""
        return self._is_cancelled


class _Grower:
    """One tree being drafted, level by level."""

    def __init__(self, drafter: ModelDrafter, text: Text, plan: Plan) -> None:
        self.drafter, self.plan = drafter, plan
        self.branch = Branch()
        self.chances = [1.0]
        self._prefixes: dict[int, torch.Tensor] = {0: text.tensor}
        self._rows: dict[int, int] = {0: -1}
        self._sees = np.zeros((0, 0), dtype=np.bool_)

    def grow(self, logits: torch.Tensor) -> Branch | None:
        """Levels until the depth is reached or nothing is worth going on."""
        frontier = [0]
        for depth in range(self.plan.depth):
            children = self._level(frontier, logits, depth)
            frontier = self._worth_going_on(children)
            if not frontier or depth + 1 == self.plan.depth:
                break
            if self.drafter.is_cancelled():
                return None
            logits = self._read(frontier, depth)
        return self.branch

    def _level(self, frontier: list[int], logits: torch.Tensor, depth: int) -> list[int]:
        """Children of the frontier; their numbers."""
        funnel = self.drafter.funnel
        prefixes = [self._prefixes[node] for node in frontier] if funnel.needs_prefix else [self._prefixes[0]]
        q = torch.softmax(funnel.rows(prefixes, logits), -1)
        if self.plan.keep_q:
            self.branch.q.update(zip(frontier, q, strict=True))
        if self.plan.sampled:
            return self._draw(frontier, q, depth)
        return self._take(frontier, q, depth)

    def _draw(self, frontier: list[int], q: torch.Tensor, depth: int) -> list[int]:
        """Independent draws, with replacement; a repeated one is a second trial of the same node."""
        width = self.plan.width(depth)
        if self.plan.branching:
            tops = q.topk(min(2, q.shape[-1])).values.tolist()
            counts = [self._width(node, row) for node, row in zip(frontier, tops, strict=True)]
            width = max(counts)
        else:
            counts = [width] * len(frontier)
        drawn = torch.multinomial(q, width, replacement=True, generator=self.drafter.generator)
        shares = q.gather(1, drawn).tolist()
        new: list[int] = []
        for parent, tokens, row, count in zip(frontier, drawn.tolist(), shares, counts, strict=True):
            known: dict[int, int] = {}
            for token, share in zip(tokens[:count], row, strict=False):
                if token in known:
                    self.branch.trials.append(known[token])
                else:
                    known[token] = self._add(parent, token, share)
            new += known.values()
        return new

    def _take(self, frontier: list[int], q: torch.Tensor, depth: int) -> list[int]:
        """The likeliest children."""
        most = 4 if self.plan.branching else self.plan.width(depth)
        top = q.topk(min(most, q.shape[-1]))
        new: list[int] = []
        for parent, tokens, shares in zip(frontier, top.indices.tolist(), top.values.tolist(), strict=True):
            count = self._width(parent, shares) if self.plan.branching else most
            pairs = list(zip(tokens, shares, strict=True))[:count]
            new += [self._add(parent, token, share) for token, share in pairs if share > 0]
        return new

    def _width(self, node: int, shares: list[float]) -> int:
        assert self.plan.gate is not None
        nodes = len(self.branch.ids)
        return max(1, self.plan.gate.width(self.chances[node], shares, self.drafter.number, nodes, self.plan.sampled))

    def _add(self, parent: int, token: int, share: float) -> int:
        node = self.branch.add(parent, token, share)
        gate = self.plan.gate
        self.chances.append(self.chances[parent] * (gate.accept(self.drafter.number, share) if gate else 1.0))
        return node

    def _worth_going_on(self, children: list[int]) -> list[int]:
        """Of a level, the nodes to draft behind."""
        gate, nodes = self.plan.gate, len(self.branch.ids)
        sure = [node for node in children if self.branch.probabilities[node - 1] >= self.plan.threshold]
        if gate is None:
            return sure
        sure = [node for node in sure if gate.is_worth(self.chances[node], nodes)]
        return sure if gate.goes_on([self.chances[node] for node in sure], nodes) else []

    def _read(self, frontier: list[int], depth: int) -> torch.Tensor:
        """Feed the frontier; every node sees its ancestors and itself."""
        before, count = self._sees.shape[0], len(frontier)
        sees = np.zeros((before + count, before + count), dtype=np.bool_)
        sees[:before, :before] = self._sees
        parents = [self._rows[self.branch.parents[node - 1]] for node in frontier]
        for row, (node, parent) in enumerate(zip(frontier, parents, strict=True), before):
            if parent >= 0:
                sees[row] = sees[parent]
            sees[row, row] = True
            self._rows[node] = row
        self._sees = sees
        tokens = [self.branch.ids[node - 1] for node in frontier]
        if self.drafter.funnel.needs_prefix:
            self._extend_prefixes(frontier, tokens)
        return self.drafter.feed(tokens, parents, depth, sees[before:])

    def _extend_prefixes(self, frontier: list[int], tokens: list[int]) -> None:
        for node, token in zip(frontier, tokens, strict=True):
            parent = self._prefixes[self.branch.parents[node - 1]]
            self._prefixes[node] = torch.cat([parent, torch.tensor([[token]], device=parent.device)], dim=1)
