"""What is learnt about drafters on a target: how often they are right, and what their rounds cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from core.decoding.speculation.length_schedule import RoundResult

INITIAL_PAUSE = 8
_BINS = 10
_PRIOR_WEIGHT = 3.0
"""How many observations the first guess is worth."""
_LATER_PRIOR = 0.25
"""First guess of how often a second draw is taken where the first was not."""
_MIN_ROUNDS = 5.0
"""So many rounds say more than what is foretold of them."""
_PAUSE_DECAY = 0.7
_RATE_DECAY = 0.92
_ACCEPTANCE_DECAY = 0.98

TokenSort = tuple[int, int, bool]
"""Drafter, bin of its probability, and whether it liked another token better: only that one's errors are left to it."""


@dataclass(slots=True)
class AcceptanceStats:
    """What was learnt about a set of drafters on a target; kept between runs."""

    hits: dict[TokenSort, float] = field(default_factory=dict)
    """Accepted, by sort of token."""
    trials: dict[TokenSort, float] = field(default_factory=dict)
    """The same → examined."""
    accepted: float = 0.7
    """Of the levels examined, with a first guess of 70 % that a few failures outweigh."""
    examined: float = 1.0
    draft_pass_seconds: float | None = None
    """Seconds of one draft pass behind the first."""
    first_token_seconds: float | None = None
    """Seconds of a draft up to its first token: catching up with the text, and all that happens once."""
    single_pass_seconds: float | None = None
    """Seconds of a target pass over one token, by the latest passes."""
    overhead_seconds: float | None = None
    """Seconds a round with drafts costs besides its passes, and more than the curve says of them; its tokens' writing
    counts as far as plain steps would have written them for less."""
    emit_seconds: float | None = None
    """Seconds in which a plain step writes its token."""
    tokens: float = 0.0
    """Tokens a round, and its seconds, running averages' numerator and denominator."""
    seconds: float = 0.0
    rounds: float = 0.0
    """How many these averages speak of."""
    pause_steps: int = INITIAL_PAUSE
    """Plain steps after the next attempt in vain."""

    @property
    def acceptance(self) -> float:
        """Share of levels with an accepted node, one standard deviation on the hopeful side."""
        share = min(self.accepted / self.examined, 1.0)
        return min(share + math.sqrt(share * (1 - share) / self.examined), 0.995)

    @property
    def later_acceptance(self) -> float:
        """How often a child is taken that is not the drafter's first."""
        sorts = [sort for sort in self.trials if sort[2]]
        hits, trials = (sum(kind[sort] for sort in sorts) for kind in (self.hits, self.trials))
        return (hits + _PRIOR_WEIGHT * _LATER_PRIOR) / (trials + _PRIOR_WEIGHT)

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens a second of rounds with drafts; None before there were enough of them."""
        return self.tokens / self.seconds if self.rounds > _MIN_ROUNDS else None

    def decay(self) -> None:
        """What was seen counts less: after a pause the text may be another."""
        self.accepted, self.examined = self.accepted * _PAUSE_DECAY, self.examined * _PAUSE_DECAY
        self.tokens = self.seconds = self.rounds = 0.0

    def _add_round(self, tokens: int, seconds: float) -> None:
        self.tokens = _RATE_DECAY * self.tokens + tokens
        self.seconds = _RATE_DECAY * self.seconds + seconds
        self.rounds = _RATE_DECAY * self.rounds + 1

    def update_costs(self, outcome: RoundResult, expected_verify: float, is_cold: bool) -> None:
        """What a round took; `expected_verify`: seconds that its pass of the target should take.

        A run's first round `is_cold`: it reads the prompt, too, and says of later ones only that they cost no more.
        """
        if outcome.passes > 1 or self.draft_pass_seconds is None:
            later = outcome.draft_seconds - outcome.first_token_seconds
            step = later / (outcome.passes - 1) if outcome.passes > 1 else outcome.first_token_seconds
            self.draft_pass_seconds = _fast_average(self.draft_pass_seconds, step)
        first = max(outcome.draft_seconds - (outcome.passes - 1) * self.draft_pass_seconds, 0.0)
        beside = max(outcome.overhead_seconds - outcome.tokens * (self.emit_seconds or 0.0), 0.0)
        extra = beside + max(outcome.verify_seconds - expected_verify, 0.0)
        if is_cold:
            self.first_token_seconds = (
                min(self.first_token_seconds, first) if self.first_token_seconds is not None else None
            )
            self.overhead_seconds = (
                _fast_average(self.overhead_seconds, min(self.overhead_seconds, extra))
                if self.overhead_seconds is not None
                else None
            )
            return
        self.first_token_seconds, self.overhead_seconds = (
            _fast_average(self.first_token_seconds, first),
            clipped_average(self.overhead_seconds, extra),
        )
        self._add_round(len(outcome.verified.path) + 1, outcome.draft_seconds + outcome.verify_seconds + beside)

    def update_acceptance(self, outcome: RoundResult) -> None:
        """What the target took of a draft, by level and by sort of token."""
        tree, verdict = outcome.tree, outcome.verified
        levels = len(verdict.path) + (not verdict.is_bonus)
        self.accepted = _ACCEPTANCE_DECAY * self.accepted + len(verdict.path)
        self.examined = _ACCEPTANCE_DECAY * self.examined + levels
        for child in _examined(outcome):
            beside = tree.children[tree.parents[child]][0] != child
            key = (tree.drafters[child], _bin(tree.confidences[child]), beside)
            decision = verdict.decisions.get(child)
            hit = decision.ratio if decision else float(child in verdict.path)
            self.hits[key] = _ACCEPTANCE_DECAY * self.hits.get(key, 0.0) + hit
            self.trials[key] = _ACCEPTANCE_DECAY * self.trials.get(key, 0.0) + 1.0

    def acceptance_of(self, drafter: int, probability: float, beside: bool) -> float:
        """Observed acceptance of tokens of this sort, beginning with the probability itself."""
        sort = (drafter, _bin(probability), beside)
        return (self.hits.get(sort, 0.0) + _PRIOR_WEIGHT * probability) / (self.trials.get(sort, 0.0) + _PRIOR_WEIGHT)


def _examined(outcome: RoundResult) -> Iterable[int]:
    """Drafted nodes that were compared with the target's choice: children of the root and of the accepted path."""
    for node in (0, *outcome.verified.path):
        yield from outcome.tree.children[node]


def _bin(probability: float) -> int:
    return min(int(probability * _BINS), _BINS - 1)


def clipped_average(old: float | None, new: float) -> float:
    """A running average that a single slow pass cannot throw off."""
    return new if old is None else old + 0.15 * (min(new, 2.5 * old) - old)


def _fast_average(old: float | None, new: float) -> float:
    """A running average that is quick to believe the better times: what disturbs a pass only makes it longer."""
    if old is None:
        return new
    return old + (0.5 if new < old else 0.05) * (min(new, 2.5 * old) - old)
