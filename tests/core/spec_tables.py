"""Models replaced by tables of distributions, so that thousands of rounds take seconds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch

from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.model_drafter import ModelDrafter
from decodescope.core.decoding.speculation.tree import DraftTree, NodePipeline

SIZE = 6
Path = tuple[int, ...]


class Table:
    """A random distribution over six tokens for every prefix, the same for the same seed."""

    def __init__(self, seed: int, sharpness: float = 1.5) -> None:
        self._seed, self._sharpness = seed, sharpness
        self._known: dict[Path, torch.Tensor] = {}

    def __call__(self, path: Path) -> torch.Tensor:
        """Probabilities [6] after a path."""
        found = self._known.get(path)
        if found is None:
            generator = np.random.default_rng([self._seed, *path, len(path)])
            logits = torch.tensor(generator.normal(size=SIZE) * self._sharpness, dtype=torch.float32)
            found = self._known[path] = torch.softmax(logits, -1)
        return found


class TableReader:
    """Replaces a model's passes: reads tokens and returns the table's log-probabilities."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.length = 0
        self.extra = 0
        self._fed: list[int] = []

    def read_text(self, ids: torch.Tensor) -> torch.Tensor:
        """The root's distribution."""
        self.length += ids.shape[1]
        return self._table(()).log()[None]

    def read_nodes(self, ids: torch.Tensor, depths: Sequence[int], visibility: np.ndarray) -> torch.Tensor:
        """Every node's distribution; its path is what it may look at."""
        self._fed += ids[0].tolist()
        rows = [self._table(tuple(self._fed[row] for row in np.flatnonzero(seen))).log() for seen in visibility]
        self.extra = len(self._fed)
        return torch.stack(rows)

    def commit(self, rows: Sequence[int]) -> None:
        """Reset: every round of the tests begins at the same position."""
        self._fed, self.extra, self.length = [], 0, 0

    def crop(self, length: int) -> None:
        """Do nothing."""


def table_drafter(table: Table, generator: torch.Generator, number: int = 0) -> ModelDrafter:
    """The real drafter on a table."""
    return ModelDrafter(
        f"table-{number}", TableReader(table), NodePipeline([]), generator, number, lambda: False, SIZE, None
    )


def root_text() -> SpeculationText:
    """A text of one token."""
    return SpeculationText([0], torch.device("cpu"))


def scores_of(table: Table, tree: DraftTree) -> torch.Tensor:
    """Return the target's probabilities after every node, [N, 6]."""
    return torch.stack([table(tuple(tree.path(node))) for node in range(len(tree))])


def complete(table: Table, tokens: list[int], length: int, generator: torch.Generator) -> Path:
    """The first `length` tokens; what a round did not yield is drawn from the target, as the next round would."""
    while len(tokens) < length:
        drawn = torch.multinomial(table(tuple(tokens)), 1, generator=generator)
        tokens.append(int(drawn))
    return tuple(tokens[:length])


def expected_shares(table: Table, length: int) -> dict[Path, float]:
    """Probability of every path of `length` tokens under the target."""
    shares: dict[Path, float] = {(): 1.0}
    for _ in range(length):
        shares = {
            (*path, token): share * float(table(path)[token]) for path, share in shares.items() for token in range(SIZE)
        }
    return shares


def p_value(counts: Counter[Path], shares: dict[Path, float]) -> float:
    """Chi-square test of the counts; paths expected less than five times are pooled."""
    from scipy.stats import chi2

    total = counts.total()
    assert set(counts) <= set(shares)
    statistic, cells, rest_seen, rest_expected = 0.0, 0, 0.0, 0.0
    for path, share in shares.items():
        expected = share * total
        if expected < 5:
            rest_seen, rest_expected = rest_seen + counts[path], rest_expected + expected
            continue
        statistic += (counts[path] - expected) ** 2 / expected
        cells += 1
    if rest_expected > 0:
        statistic += (rest_seen - rest_expected) ** 2 / max(rest_expected, 1e-9)
        cells += 1
    assert math.isfinite(statistic)
    return float(chi2.sf(statistic, cells - 1))
