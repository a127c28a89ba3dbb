"""The automatic draft length: draft a token only while it is likely to earn more time than it costs.

The verify-cost curve of this machine, the time of a draft pass and the running acceptance (of drafted tokens by the
probability their drafter gave them) price every further token; the pace to beat is what the run reaches now. When no
length beats plain decoding, drafting pauses, for longer after every attempt in vain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from core.decoding.speculation.round_plan import DraftGate, RoundResult
from core.decoding.speculation.tree_passes import VerifyCost

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


TRIAL_LENGTH = 4
"""Tokens of the draft that ends a pause: one would tell neither what the next one costs nor how far a draft carries."""
_MAX_NODES = 31
_NODE_COST_FACTOR = 1.5
"""What a node costs besides its row in the target's pass, as a factor: its own draft row, bookkeeping, its event."""
_LEAF_FACTOR = 3.0
"""How many times its price a token beside the likeliest one has to promise: it makes a chain a tree to be merged."""
_BRANCH_PROBABILITY = 1 / 8
"""A token of this chance has to be worth its place before drafts branch."""
_MAX_DRAWS = 3


class SpeedupGate:
    """Judges drafts while they are made, by what is known of their drafters and by the verify-cost curve."""

    def __init__(self, stats: AcceptanceStats, cost: VerifyCost, draft_cost: float | None, max_length: int) -> None:
        """`draft_cost`: what a draft pass should cost ÷ the target's, before any was timed."""
        self._stats, self._cost, self._draft_cost = stats, cost, draft_cost or 1 / 8
        self._max_nodes = max(_MAX_NODES, max_length)
        self._node_costs = _compute_node_costs(cost, self._max_nodes)
        self.is_exploring = False
        """A draft is made that does not seem worth it."""
        self.is_trial = False
        """A pause ends with a short chain."""

    def acceptance(self, drafter: int, probability: float, is_alternative: bool = False) -> float:
        """Observed acceptance at about this probability, beginning with the probability itself."""
        return self._stats.acceptance_of(drafter, probability, is_alternative)

    def should_branch(self) -> bool:
        """Where even a token of little chance, behind others, is worth its place; a trial is of a chain."""
        return (
            not self.is_trial
            and self._rate_to_beat * _NODE_COST_FACTOR * self._node_seconds(TRIAL_LENGTH) < _BRANCH_PROBABILITY
        )

    def draw_count(self, probability: float, nodes: int) -> int:
        """The first child for as often as levels have one that is taken, each further one for as often as such were."""
        count, hope = 0, probability * self._stats.acceptance
        while count < _MAX_DRAWS and self.is_worthwhile(hope, nodes + count):
            count, hope = count + 1, probability * self._stats.later_acceptance
        return count

    def should_extend(self, probabilities: Sequence[float], nodes: int) -> bool:
        """Compare what one more level brings with what its draft pass and its nodes cost at the present pace."""
        count = len(probabilities)
        if not count or nodes + count > self._max_nodes:
            return False
        if self.is_trial:
            return True
        price = self.draft_pass_seconds + count * self._node_seconds(nodes)
        return sum(probabilities) * self._stats.acceptance > self._rate_to_beat * price

    def is_worthwhile(self, probability: float, nodes: int) -> bool:
        """Compare what one more node brings with its place in the target's pass."""
        price = _NODE_COST_FACTOR * self._node_seconds(nodes) + (0.0 if nodes else self.overhead_seconds)
        return nodes < self._max_nodes and (
            self.is_exploring or self.is_trial or probability > self._rate_to_beat * price
        )

    def child_count(
        self, probability: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool
    ) -> int:
        """One child goes on; further ones, likeliest first, have to be well worth their place as leaves.

        With dice one child is all: tried in random order, a leaf that is accepted first ends the path at once.
        A trial is of the chain alone.
        """
        if sampled or self.is_trial:
            return 1
        shares = [
            probability * self.acceptance(drafter, probability, True) / _LEAF_FACTOR
            for probability in probabilities[1:]
        ]
        return 1 + sum(1 for share in shares if self.is_worthwhile(share, nodes + 1))

    @property
    def single_pass_seconds(self) -> float:
        """Seconds of a target pass over one token."""
        return self._stats.single_pass_seconds or self._cost.single_pass_seconds

    @property
    def draft_pass_seconds(self) -> float:
        """Seconds of a draft pass behind the first."""
        return (
            self._stats.draft_pass_seconds
            if self._stats.draft_pass_seconds is not None
            else self.single_pass_seconds * self._draft_cost
        )

    @property
    def overhead_seconds(self) -> float:
        """Seconds that a round costs besides its passes."""
        return self._stats.overhead_seconds or 0.0

    @property
    def first_token_seconds(self) -> float:
        """Seconds of a draft up to its first token."""
        return (
            self._stats.first_token_seconds
            if self._stats.first_token_seconds is not None
            else self.single_pass_seconds * self._draft_cost
        )

    @property
    def _rate_to_beat(self) -> float:
        """Tokens a second to beat: what rounds with drafts reach, at least that of plain decoding."""
        plain = 1 / self.single_pass_seconds
        return max(plain, self._stats.tokens / self._stats.seconds) if self._stats.seconds else plain

    def _node_seconds(self, nodes: int) -> float:
        """Seconds one more node adds to the target's pass."""
        return self.single_pass_seconds * self._node_costs[min(nodes, self._max_nodes)]


@lru_cache(maxsize=8)
def _compute_node_costs(cost: VerifyCost, max_nodes: int) -> tuple[float, ...]:
    """What each node up to `max_nodes` adds to the curve; the same for every run of a model."""
    return tuple(_node_cost(cost, nodes) for nodes in range(max_nodes + 1))


def _node_cost(cost: VerifyCost, nodes: int) -> float:
    """What one more node adds to the curve, averaged over the next few: a curve may have steps."""
    now = cost.ratio(nodes + 1)
    return min((cost.ratio(nodes + 1 + more) - now) / more for more in (1, 2, 4))


_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_MAX_LENGTH = 16
_MAX_LENGTH_ON_DISK = 48
"""Where layers are read from the disk, a pass costs so much more than a drafted token that long drafts pay."""
_MIN_SPEEDUP = 1.02
"""Drafting has to promise this much more than plain decoding."""
_MAX_PAUSE = 128
_EXPLORE_INTERVAL = 50
"""Every so many rounds a draft is tried that does not seem worth it, lest a wrong opinion last for ever."""
_OVERHEAD = 0.05
"""Of a target pass, what a round costs besides its passes, where times are reckoned."""


class AutoLength:
    """The `auto` schedule."""

    def __init__(
        self, cost: VerifyCost, memory: dict[str, AcceptanceStats], key: str, draft_cost: float | None = None,
        on_disk: bool = False,
    ) -> None:  # fmt: skip
        """`memory` keeps under `key` what is learnt for later runs; `on_disk`: the target's layers are read from there.

        `draft_cost`, the cost of a draft pass ÷ that of the target's, makes it a steady one, for sampling: lengths
        decide which die falls on which token, so they must not follow the clock, nor what earlier runs saw, if the
        same request and seed are to give the same tokens. Times are then reckoned.
        """
        self._draft_cost = draft_cost
        self._cost = cost if draft_cost is None else cost.rounded
        self._stats: AcceptanceStats = (
            memory.setdefault(key, AcceptanceStats()) if draft_cost is None else AcceptanceStats()
        )
        self._stats.single_pass_seconds = self._stats.single_pass_seconds or cost.single_pass_seconds
        self._max_length = _MAX_LENGTH_ON_DISK if on_disk else _MAX_LENGTH
        self._ratios = [(length, self._cost.ratio(length + 1)) for length in _LENGTHS]
        self._pause_left = self._rounds = 0
        self._is_cold = draft_cost is None
        """Before the first round, which reads the prompt; reckoned times are never cold."""
        self._gate = SpeedupGate(self._stats, cost, draft_cost, self._max_length)
        self.gate: DraftGate | None = self._gate

    def length(self) -> int:
        """The longest draft while drafting pays, 0 in a pause."""
        self._rounds += 1
        self._gate.is_exploring = self._rounds % _EXPLORE_INTERVAL == 0
        if self._pause_left > 0:
            self._pause_left -= 1
            return 0
        self._gate.is_trial = not self._pays_off()
        if not self._gate.is_trial:
            return self._max_length
        known = self._stats
        self._pause_left, known.pause_steps = known.pause_steps, min(known.pause_steps * 2, _MAX_PAUSE)
        known.decay()
        return TRIAL_LENGTH

    def remaining_pause(self) -> int:
        """What is left of the present one."""
        return self._pause_left

    def consume_pause(self, steps: int) -> None:
        """They count as rounds, as any other."""
        self._rounds += steps
        self._pause_left -= steps

    def update(self, outcome: RoundResult) -> None:
        """Acceptance by probability, the pace, and what passes cost."""
        known = self._stats
        known.update_acceptance(outcome)
        timed = outcome if self._draft_cost is None else self._with_modelled_times(outcome, self._draft_cost)
        known.update_costs(timed, self._gate.single_pass_seconds * self._cost.ratio(len(outcome.tree)), self._is_cold)
        self._is_cold = False
        if outcome.verified.path and self._pays_off():
            self._pause_left = 0
            if known.tokens_per_second is not None:
                known.pause_steps = INITIAL_PAUSE

    def update_plain(self, seconds: float, writing: float) -> None:
        """What a pass over one token costs, and what its writing."""
        if self._draft_cost is None:
            self._stats.single_pass_seconds = clipped_average(self._stats.single_pass_seconds, seconds)
            self._stats.emit_seconds = clipped_average(self._stats.emit_seconds, writing)

    def _with_modelled_times(self, outcome: RoundResult, share: float) -> RoundResult:
        """The round with the times it should take."""
        step, verify = (
            share * self._gate.single_pass_seconds,
            self._gate.single_pass_seconds * self._cost.ratio(len(outcome.tree)),
        )
        return replace(
            outcome, draft_seconds=(outcome.passes + 1) * step, first_token_seconds=2 * step, verify_seconds=verify,
            overhead_seconds=_OVERHEAD * self._gate.single_pass_seconds,
        )  # fmt: skip

    def _pays_off(self) -> bool:
        """Whether some length promises more tokens a second than plain decoding, and the latest rounds had them."""
        if (
            self._stats.tokens_per_second is not None
            and self._stats.tokens_per_second * self._gate.single_pass_seconds < _MIN_SPEEDUP
        ):
            return False
        beta, once = self._stats.acceptance, self._gate.first_token_seconds + self._gate.overhead_seconds
        one, step = self._gate.single_pass_seconds, self._gate.draft_pass_seconds
        return any(
            expected_tokens(beta, length) / (ratio * one + once + (length - 1) * step) * one > _MIN_SPEEDUP
            for length, ratio in self._ratios
        )


def expected_tokens(beta: float, length: float) -> float:
    """(1 − β^(γ+1)) / (1 − β): tokens a target pass yields at acceptance β and draft length γ."""
    return length + 1.0 if beta >= 1 else (1 - beta ** (length + 1)) / (1 - beta)


def expected_speedup(beta: float, length: float, cost: float) -> float:
    """(1 − β^(γ+1)) / ((1 − β)(γc + 1)), c = time of a draft token ÷ time of a target pass."""
    return expected_tokens(beta, length) / (length * cost + 1)
