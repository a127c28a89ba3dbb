"""Random beam searches for the tests of tree and table: plausible numbers without a model."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core.events import BeamCandidate, BeamsRanked, BeamStep, Event, Hypothesis, Prefilled
from tests.ui.scripted import PROMPT, started

WORDS = (
    " fox", " named", " Lily", " Mia", ".", " She", " lived", " in", " a", " house", " by", " the", " river", " and",
    " wanted", " to", " see", " stars", " rabbit", " bear", " girl", " boy", " who", " liked", " play", "ing",
)  # fmt: skip
Beam = tuple[int, float, int]
"""(node, score, constraint tokens met)."""


class FakeSearch:
    """Grows `beams` hypotheses in `groups`; half of each step's candidates are pruned."""

    def __init__(self, beams: int = 4, groups: int = 1, constraint: int = 0, seed: int = 1, ends: float = 0.0) -> None:
        self._rng = random.Random(seed)
        self._width, self._constraint, self._ends = beams // groups, constraint, ends
        self._alive: list[list[Beam]] = [[(0, 0.0, 0)] for _ in range(groups)]
        self._node, self._step = 0, 0
        self._finished: list[BeamCandidate] = []

    def steps(self, count: int) -> Iterator[BeamStep]:
        """The next `count` steps."""
        for _ in range(count):
            yield self._next()

    def _next(self) -> BeamStep:
        seen = [candidate for group in range(len(self._alive)) for candidate in self._group(group)]
        self._finished += [candidate for candidate in seen if candidate.fate == "finished"]
        live = [candidate for candidate in seen if candidate.fate == "kept"] + self._finished
        self._step += 1
        best = max(live, key=lambda candidate: candidate.normalized)
        return BeamStep(self._step - 1, tuple(seen), best.node, 0.01)

    def _group(self, group: int) -> list[BeamCandidate]:
        found = sorted(self._continuations(group), key=lambda item: -item[1])[: 2 * self._width]
        stored: list[Beam] = []
        seen = []
        for rank, (parent, score, word, share, met) in enumerate(found, 1):
            fate = "kept" if len(stored) < self._width else "pruned"
            if fate == "kept" and self._step > 2 and self._rng.random() < self._ends:
                fate, word = "finished", "<|end|>"
            self._node += 1
            met = min(self._constraint, met + (self._rng.random() < 0.3))
            seen.append(self._candidate(parent, word, share, score, rank, fate, group, met))
            if fate == "kept":
                stored.append((self._node, score, met))
        self._alive[group] = stored
        return seen

    def _continuations(self, group: int) -> Iterator[tuple[int, float, str, float, int]]:
        for node, score, met in self._alive[group]:
            rest = 1.0
            for word in self._rng.sample(WORDS, min(len(WORDS), 2 * self._width)):
                share = rest * self._rng.betavariate(1.2, 1)
                rest -= share
                yield node, score + math.log(max(share, 1e-6)), word, share, met

    def _candidate(
        self, parent: int, word: str, share: float, score: float, rank: int, fate: str, group: int, met: int
    ) -> BeamCandidate:
        ended = "eos" if fate == "finished" else None
        return BeamCandidate(
            self._node, parent, 100 + WORDS.index(word) if word in WORDS else 2, word, share,
            math.log(max(share, 1e-6)), score, score / (self._step + 1), rank, fate, share, math.log(max(share, 1e-6)),
            rank, 2.0, group, 0.5 * group, met, "" if ended else word, ended,
        )  # fmt: skip


def beam_steps(count: int, beams: int = 4, **kwargs: object) -> list[BeamStep]:
    """`count` steps of a made-up search."""
    return list(FakeSearch(beams, **kwargs).steps(count))  # type: ignore[arg-type]


def ranking(run: Run) -> BeamsRanked:
    """The final ranking that fits the run's last step."""
    assert run.beams is not None
    rows = run.beams.hypotheses(len(run.beams.steps))
    found = tuple(Hypothesis(r.node, (), r.text, r.score * r.length, r.length, r.score, r.state == "finished", r.group)
                  for r in rows)  # fmt: skip
    return BeamsRanked(found)


def beam_run(steps: Sequence[BeamStep], sequences: int = 1, ranked: bool = False) -> Run:
    """Return a Run with these steps applied."""
    run = Run(RunRequest("".join(PROMPT), strategy="beam_search", load=LoadRequest("storyteller")))
    events: list[Event] = [started(sequences=sequences), Prefilled(len(PROMPT), 0.02), *steps]
    run.apply(events)
    if ranked:
        run.apply([ranking(run)])
    return run
