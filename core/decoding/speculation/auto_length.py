"""Automatic draft length: draft a token only while its expected gain exceeds its cost.

Each further token is priced by this machine's verify-cost curve, the time of a draft pass, and the measured acceptance
by draft probability; it must beat the run's current tokens per second. When no length beats plain decoding, drafting
pauses, for longer after every failed attempt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from decodescope.core.decoding.speculation.round_plan import DraftGate, RoundResult
from decodescope.core.decoding.speculation.tree_passes import VerifyCost

INITIAL_PAUSE = 8
_BINS = 10
_PRIOR_WEIGHT = 3.0
"""Weight of the prior, in observations."""
_LATER_PRIOR = 0.25
"""Prior probability that a second draw is accepted after the first was not."""
_MIN_ROUNDS = 5.0
"""Number of rounds after which measurements replace the prediction."""
_PAUSE_DECAY = 0.7
_RATE_DECAY = 0.92
_ACCEPTANCE_DECAY = 0.98

TokenSort = tuple[int, int, bool]
"""Drafter, bin of its probability, and whether its first choice was another token: such a token is examined only after
that one failed.
"""


@dataclass(slots=True)
class AcceptanceStats:
    """Statistics of a set of drafters on a target; kept between runs."""

    hits: dict[TokenSort, float] = field(default_factory=dict)
    """Accepted tokens by sort."""
    trials: dict[TokenSort, float] = field(default_factory=dict)
    """Examined tokens by sort."""
    accepted: float = 0.7
    """Levels accepted; the prior of 70 % has the weight of one level."""
    examined: float = 1.0
    draft_pass_seconds: float | None = None
    """Seconds of one draft pass after the first."""
    first_token_seconds: float | None = None
    """Seconds of a draft up to its first token, including reading new text."""
    single_pass_seconds: float | None = None
    """Seconds of a recent target pass over one token."""
    overhead_seconds: float | None = None
    """Overhead of a round with drafts in seconds: time beyond its passes, the verify-cost curve, and the plain cost of
    emitting its tokens.
    """
    emit_seconds: float | None = None
    """Seconds in which a plain step emits its token."""
    tokens: float = 0.0
    """Running numerator of tokens per second of rounds; `seconds` is the denominator."""
    seconds: float = 0.0
    rounds: float = 0.0
    """Number of rounds in these averages."""
    pause_steps: int = INITIAL_PAUSE
    """Plain steps after the next failed attempt."""

    @property
    def acceptance(self) -> float:
        """Fraction of levels with an accepted node, plus one standard deviation."""
        share = min(self.accepted / self.examined, 1.0)
        return min(share + math.sqrt(share * (1 - share) / self.examined), 0.995)

    @property
    def later_acceptance(self) -> float:
        """Probability that a child is accepted that is not the drafter's first choice."""
        sorts = [sort for sort in self.trials if sort[2]]
        hits, trials = (sum(kind[sort] for sort in sorts) for kind in (self.hits, self.trials))
        return (hits + _PRIOR_WEIGHT * _LATER_PRIOR) / (trials + _PRIOR_WEIGHT)

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second of rounds with drafts; None before there are enough rounds."""
        return self.tokens / self.seconds if self.rounds > _MIN_ROUNDS else None

    def decay(self) -> None:
        """Reduce the weight of earlier observations, because the text may change during a pause."""
        self.accepted, self.examined = self.accepted * _PAUSE_DECAY, self.examined * _PAUSE_DECAY
        self.tokens = self.seconds = self.rounds = 0.0

    def _add_round(self, tokens: int, seconds: float) -> None:
        self.tokens = _RATE_DECAY * self.tokens + tokens
        self.seconds = _RATE_DECAY * self.seconds + seconds
        self.rounds = _RATE_DECAY * self.rounds + 1

    def update_costs(self, outcome: RoundResult, expected_verify: float, is_cold: bool) -> None:
        """Update the costs from a round; `expected_verify` is the expected time of its target pass.

        A run's first round `is_cold`: it also reads the prompt, so its times are only an upper bound.
        """
        if outcome.passes > 1 or self.draft_pass_seconds is None:
            later = outcome.draft_seconds - outcome.first_token_seconds
            step = later / (outcome.passes - 1) if outcome.passes > 1 else outcome.first_token_seconds
            self.draft_pass_seconds = _fast_average(self.draft_pass_seconds, step)
        first = max(outcome.draft_seconds - (outcome.passes - 1) * self.draft_pass_seconds, 0.0)
        other_overhead = max(outcome.overhead_seconds - outcome.tokens * (self.emit_seconds or 0.0), 0.0)
        extra = other_overhead + max(outcome.verify_seconds - expected_verify, 0.0)
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
        self._add_round(len(outcome.verified.path) + 1, outcome.draft_seconds + outcome.verify_seconds + other_overhead)

    def update_acceptance(self, outcome: RoundResult) -> None:
        """Update acceptance from a verified draft, by level and by sort of token."""
        tree, verdict = outcome.tree, outcome.verified
        levels = len(verdict.path) + (not verdict.is_bonus)
        self.accepted = _ACCEPTANCE_DECAY * self.accepted + len(verdict.path)
        self.examined = _ACCEPTANCE_DECAY * self.examined + levels
        for child in _examined(outcome):
            is_sibling = tree.children[tree.parents[child]][0] != child
            key = (tree.drafters[child], _bin(tree.confidences[child]), is_sibling)
            decision = verdict.decisions.get(child)
            hit = decision.ratio if decision else float(child in verdict.path)
            self.hits[key] = _ACCEPTANCE_DECAY * self.hits.get(key, 0.0) + hit
            self.trials[key] = _ACCEPTANCE_DECAY * self.trials.get(key, 0.0) + 1.0

    def acceptance_of(self, drafter: int, probability: float, is_sibling: bool) -> float:
        """Return the observed acceptance of tokens of this sort; the prior is the probability itself."""
        sort = (drafter, _bin(probability), is_sibling)
        return (self.hits.get(sort, 0.0) + _PRIOR_WEIGHT * probability) / (self.trials.get(sort, 0.0) + _PRIOR_WEIGHT)


def _examined(outcome: RoundResult) -> Iterable[int]:
    """Yield drafted nodes that the verifier examined: children of the root and of the accepted path."""
    for node in (0, *outcome.verified.path):
        yield from outcome.tree.children[node]


def _bin(probability: float) -> int:
    return min(int(probability * _BINS), _BINS - 1)


def clipped_average(old: float | None, new: float) -> float:
    """Update a running average; outliers are clipped."""
    return new if old is None else old + 0.15 * (min(new, 2.5 * old) - old)


def _fast_average(old: float | None, new: float) -> float:
    """Update a running average that follows faster times quickly, because disturbances only add time."""
    if old is None:
        return new
    return old + (0.5 if new < old else 0.05) * (min(new, 2.5 * old) - old)


TRIAL_LENGTH = 4
"""Length of the draft that ends a pause; a single token would not show the cost of the next one or how far drafts are
accepted.
"""
_MAX_NODES = 31
_NODE_COST_FACTOR = 1.5
"""Cost factor of a node: its row in the target's pass, plus draft row, bookkeeping and event."""
_LEAF_FACTOR = 3.0
"""Minimum gain of an alternative token, relative to its price, because it turns a chain into a tree."""
_BRANCH_PROBABILITY = 1 / 8
"""Drafts branch only if a token of this probability is worth its price."""
_MAX_DRAWS = 3


class SpeedupGate:
    """Decides during drafting by drafter statistics and the verify-cost curve."""

    def __init__(self, stats: AcceptanceStats, cost: VerifyCost, draft_cost: float | None, max_length: int) -> None:
        """Initialize the gate; `draft_cost` is the expected cost of a draft pass ÷ a target pass before any was
        timed.
        """
        self._stats, self._cost, self._draft_cost = stats, cost, draft_cost or 1 / 8
        self._max_nodes = max(_MAX_NODES, max_length)
        self._node_costs = _compute_node_costs(cost, self._max_nodes)
        self.is_exploring = False
        """Whether a draft is made against the prediction."""
        self.is_trial = False
        """Whether a short chain is tried to end a pause."""

    def acceptance(self, drafter: int, probability: float, is_alternative: bool = False) -> float:
        """Return the observed acceptance at about this probability; the prior is the probability itself."""
        return self._stats.acceptance_of(drafter, probability, is_alternative)

    def should_branch(self) -> bool:
        """Return whether even an unlikely token after others is worth its price; never for a trial, which is a
        chain.
        """
        return (
            not self.is_trial
            and self._rate_to_beat * _NODE_COST_FACTOR * self._node_seconds(TRIAL_LENGTH) < _BRANCH_PROBABILITY
        )

    def draw_count(self, probability: float, nodes: int) -> int:
        """Return how many children to draw: the first weighted by acceptance, further ones by the acceptance of later
        children.
        """
        count, hope = 0, probability * self._stats.acceptance
        while count < _MAX_DRAWS and self.is_worthwhile(hope, nodes + count):
            count, hope = count + 1, probability * self._stats.later_acceptance
        return count

    def should_extend(self, probabilities: Sequence[float], nodes: int) -> bool:
        """Return whether the expected gain of one more level exceeds the cost of its draft pass and nodes."""
        count = len(probabilities)
        if not count or nodes + count > self._max_nodes:
            return False
        if self.is_trial:
            return True
        price = self.draft_pass_seconds + count * self._node_seconds(nodes)
        return sum(probabilities) * self._stats.acceptance > self._rate_to_beat * price

    def is_worthwhile(self, probability: float, nodes: int) -> bool:
        """Return whether the expected gain of one more node exceeds its price."""
        price = _NODE_COST_FACTOR * self._node_seconds(nodes) + (0.0 if nodes else self.overhead_seconds)
        return nodes < self._max_nodes and (
            self.is_exploring or self.is_trial or probability > self._rate_to_beat * price
        )

    def child_count(
        self, probability: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool
    ) -> int:
        """Return the number of children: one that continues, and further ones that are worth their price as leaves.

        With sampling only one: children are tried in random order, and an accepted leaf would end the path. A trial is
        always a chain.
        """
        if sampled or self.is_trial:
            return 1
        shares = [probability * self.acceptance(drafter, other, True) / _LEAF_FACTOR for other in probabilities[1:]]
        return 1 + sum(1 for share in shares if self.is_worthwhile(share, nodes + 1))

    @property
    def single_pass_seconds(self) -> float:
        """Seconds of a target pass over one token."""
        return self._stats.single_pass_seconds or self._cost.single_pass_seconds

    @property
    def draft_pass_seconds(self) -> float:
        """Seconds of a draft pass after the first."""
        return (
            self._stats.draft_pass_seconds
            if self._stats.draft_pass_seconds is not None
            else self.single_pass_seconds * self._draft_cost
        )

    @property
    def overhead_seconds(self) -> float:
        """Overhead of a round in seconds."""
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
        """Tokens per second to beat: the rate of rounds with drafts, at least that of plain decoding."""
        plain = 1 / self.single_pass_seconds
        return max(plain, self._stats.tokens / self._stats.seconds) if self._stats.seconds else plain

    def _node_seconds(self, nodes: int) -> float:
        """Return the seconds that one more node adds to the target's pass."""
        return self.single_pass_seconds * self._node_costs[min(nodes, self._max_nodes)]


@lru_cache(maxsize=8)
def _compute_node_costs(cost: VerifyCost, max_nodes: int) -> tuple[float, ...]:
    """Return the cost that each node up to `max_nodes` adds to the curve; shared by all runs of a model."""
    return tuple(_node_cost(cost, nodes) for nodes in range(max_nodes + 1))


def _node_cost(cost: VerifyCost, nodes: int) -> float:
    """Return the cost that one more node adds, averaged over the next few because the curve may have steps."""
    now = cost.ratio(nodes + 1)
    return min((cost.ratio(nodes + 1 + more) - now) / more for more in (1, 2, 4))


_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_MAX_LENGTH = 16
_MAX_LENGTH_ON_DISK = 48
"""Maximum length with disk-offloaded layers, where a pass costs so much more than a drafted token that long drafts pay
off.
"""
_MIN_SPEEDUP = 1.02
"""Speedup over plain decoding that drafting must promise."""
_MAX_PAUSE = 256
"""Plain steps, which a failed attempt slows down by less than 2 % together."""
_EXPLORE_INTERVAL = 50
"""Interval in rounds at which a draft is tried against the prediction, so that a wrong estimate is corrected."""
_OVERHEAD = 0.05
"""Overhead of a round as a fraction of a target pass, for runs with modelled times."""


class AutoLength:
    """The `auto` draft length."""

    def __init__(
        self, cost: VerifyCost, memory: dict[str, AcceptanceStats], key: str, draft_cost: float | None = None,
        on_disk: bool = False,
    ) -> None:  # fmt: skip
        """Initialize the schedule.

        `memory` stores statistics under `key` for later runs; `on_disk`: the target's layers are disk-offloaded.
        `draft_cost`, the cost of a draft pass ÷ that of a target pass, makes lengths deterministic, for sampling:
        lengths decide which random number is used for which token, so they must not depend on time or earlier runs if
        the same request and seed are to give the same tokens. Times are then modelled.
        """
        self._draft_cost = draft_cost
        self._cost = cost if draft_cost is None else cost.rounded
        self._stats: AcceptanceStats = (
            memory.setdefault(key, AcceptanceStats()) if draft_cost is None else AcceptanceStats()
        )
        self._stats.single_pass_seconds = self._stats.single_pass_seconds or cost.single_pass_seconds
        self._max_length = _MAX_LENGTH_ON_DISK if on_disk else _MAX_LENGTH
        self._ratios = [(length, self._cost.ratio(length + 1)) for length in _LENGTHS]
        self._rounds = 0
        self._pause = 0
        """Remaining plain steps."""
        self._is_cold = draft_cost is None
        """Whether the first round, which reads the prompt, is still to come; never with modelled times."""
        self._gate = SpeedupGate(self._stats, cost, draft_cost, self._max_length)
        self.gate: DraftGate | None = self._gate

    def length(self) -> int:
        """Return the maximum draft length while drafting pays off, 0 during a pause."""
        self._rounds += 1
        self._gate.is_exploring = self._rounds % _EXPLORE_INTERVAL == 0
        if self._pause > 0:
            self._pause -= 1
            return 0
        self._gate.is_trial = not self._pays_off()
        if not self._gate.is_trial:
            return self._max_length
        known = self._stats
        length = TRIAL_LENGTH
        if self._rounds == 1:
            # A run always makes an attempt: its text may suit the draft, and its proposals are shown.
            # After failed ones it is shorter.
            length = max(TRIAL_LENGTH * INITIAL_PAUSE // known.pause_steps, 1)
        self._pause, known.pause_steps = known.pause_steps, min(known.pause_steps * 2, _MAX_PAUSE)
        known.decay()
        return length

    def remaining_pause(self) -> int:
        """Return the remaining steps of the current pause."""
        return self._pause

    def consume_pause(self, steps: int) -> None:
        """Count plain steps as rounds of the pause."""
        self._rounds += steps
        self._pause = max(self._pause - steps, 0)

    def update(self, outcome: RoundResult) -> None:
        """Update acceptance, speed and costs from a round."""
        known = self._stats
        known.update_acceptance(outcome)
        timed = outcome if self._draft_cost is None else self._with_modelled_times(outcome, self._draft_cost)
        known.update_costs(timed, self._gate.single_pass_seconds * self._cost.ratio(len(outcome.tree)), self._is_cold)
        self._is_cold = False
        if outcome.verified.path and self._pays_off():
            self._pause = 0
            if known.tokens_per_second is not None:
                known.pause_steps = INITIAL_PAUSE

    def update_plain(self, seconds: float, writing: float) -> None:
        """Update the cost of a one-token pass and of emitting its token."""
        if self._draft_cost is None:
            self._stats.single_pass_seconds = clipped_average(self._stats.single_pass_seconds, seconds)
            self._stats.emit_seconds = clipped_average(self._stats.emit_seconds, writing)

    def _with_modelled_times(self, outcome: RoundResult, share: float) -> RoundResult:
        """Return the round with modelled times."""
        step, verify = (
            share * self._gate.single_pass_seconds,
            self._gate.single_pass_seconds * self._cost.ratio(len(outcome.tree)),
        )
        return replace(
            outcome, draft_seconds=(outcome.passes + 1) * step, first_token_seconds=2 * step, verify_seconds=verify,
            overhead_seconds=_OVERHEAD * self._gate.single_pass_seconds,
        )  # fmt: skip

    def _pays_off(self) -> bool:
        """Return whether some length promises a speedup over plain decoding, and recent rounds reached one."""
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
    """Return (1 − β^(γ+1)) / (1 − β): expected tokens per target pass at acceptance β and draft length γ."""
    return length + 1.0 if beta >= 1 else (1 - beta ** (length + 1)) / (1 - beta)


def expected_speedup(beta: float, length: float, cost: float) -> float:
    """Return (1 − β^(γ+1)) / ((1 − β)(γc + 1)), with c = time of a draft token ÷ time of a target pass."""
    return expected_tokens(beta, length) / (length * cost + 1)
