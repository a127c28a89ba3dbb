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

from core.decoding.speculation.cost import VerifyCost
from core.decoding.speculation.plan import Gate
from core.decoding.speculation.schedule import Outcome

_BINS = 10
_PRIOR = 3.0
"""How many observations the first guess is worth."""
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_LONGEST = 16
_LONGEST_ON_DISK = 48
"""Where layers are read from the disk, a pass costs so much more than a drafted token that long drafts pay."""
_MOST_NODES = 31
_CAUTION = 1.5
"""What a node costs besides its row in the target's pass, as a factor: its own draft row, bookkeeping, its event."""
_LEAF = 3.0
"""How many times its price a token beside the likeliest one has to promise: it makes a chain a tree to be merged."""
_MARGIN = 1.02
"""Drafting has to promise this much more than plain decoding."""
_PAUSES = (8, 128)
_EXPLORES = 50
"""Every so many rounds a draft is tried that does not seem worth it, lest a wrong opinion last for ever."""
_OVERHEAD = 0.05
"""Of a target pass, what a round costs besides its passes, where times are reckoned."""
_FADE = 0.7
_MEMORY = 0.92
_FORGET = 0.98

Sort = tuple[int, int, bool]
"""Drafter, bin of its probability, and whether it liked another token better: only that one's errors are left to it."""


@dataclass(slots=True)
class Experience:
    """What was learnt about a set of drafters on a target; kept between runs."""

    hits: dict[Sort, float] = field(default_factory=dict)
    """Accepted, by sort of token."""
    trials: dict[Sort, float] = field(default_factory=dict)
    """The same → examined."""
    accepted: float = 0.7
    """Of the levels examined, with a first guess of 70 % that a few failures outweigh."""
    examined: float = 1.0
    draft_step: float | None = None
    """Seconds of one draft pass behind the first."""
    draft_first: float | None = None
    """Seconds of a draft up to its first token: catching up with the text, and all that happens once."""
    verify_one: float | None = None
    """Seconds of a target pass over one token, by the latest passes."""
    extra: float | None = None
    """Seconds a round with drafts costs besides its passes, and more than the curve says of them."""
    tokens: float = 0.0
    """Tokens a round, and its seconds, running averages' numerator and denominator."""
    seconds: float = 0.0
    pause: int = _PAUSES[0]
    """Plain steps after the next attempt in vain."""

    @property
    def acceptance(self) -> float:
        """Share of levels with an accepted node, one standard deviation on the hopeful side."""
        share = min(self.accepted / self.examined, 1.0)
        return min(share + math.sqrt(share * (1 - share) / self.examined), 0.995)

    def fade(self) -> None:
        """What was seen counts less: after a pause the text may be another."""
        self.accepted, self.examined = self.accepted * _FADE, self.examined * _FADE


class Economy:
    """The `auto` schedule, and the gate its drafters ask."""

    def __init__(
        self, cost: VerifyCost, memory: dict[str, Experience], key: str, draft_share: float | None = None,
        on_disk: bool = False,
    ) -> None:  # fmt: skip
        """`memory` keeps under `key` what is learnt for later runs; `on_disk`: the target's layers are read from there.

        `draft_share`, the cost of a draft pass ÷ that of the target's, makes it a steady one, for sampling: lengths
        decide which die falls on which token, so they must not follow the clock, nor what earlier runs saw, if the
        same request and seed are to give the same tokens. Times are then reckoned.
        """
        self._share = draft_share
        self._cost = cost if draft_share is None else cost.rounded
        self._known: Experience = memory.setdefault(key, Experience()) if draft_share is None else Experience()
        self._known.verify_one = self._known.verify_one or cost.one
        self._longest = _LONGEST_ON_DISK if on_disk else _LONGEST
        self._most = max(_MOST_NODES, self._longest)
        self._rises = _rises(cost, self._most)
        self._ratios = [(length, self._cost.ratio(length + 1)) for length in _LENGTHS]
        self._left = self._rounds = 0
        self._explores = False
        self.gate: Gate | None = self

    # -- the schedule

    def length(self) -> int:
        """The longest draft while drafting pays, 0 in a pause."""
        self._rounds += 1
        self._explores = self._rounds % _EXPLORES == 0
        if self._left > 0:
            self._left -= 1
            return 0
        if self._pays():
            return self._longest
        known = self._known
        self._left, known.pause = known.pause, min(known.pause * 2, _PAUSES[1])
        known.fade()
        return 1

    def pause(self) -> int:
        """What is left of the present one."""
        return self._left

    def rest(self, steps: int) -> None:
        """They count as rounds, as any other."""
        self._rounds += steps
        self._left -= steps

    def learn(self, outcome: Outcome) -> None:
        """Acceptance by probability, the pace, and what passes cost."""
        self._learn_acceptance(outcome)
        outcome = outcome if self._share is None else self._reckoned(outcome, self._share)
        known, tree = self._known, outcome.tree
        later = outcome.draft_seconds - outcome.first_seconds
        if outcome.passes > 1 or known.draft_step is None:
            step = later / (outcome.passes - 1) if outcome.passes > 1 else outcome.first_seconds
            known.draft_step = _settle(known.draft_step, step)
        known.draft_first = _settle(
            known.draft_first, max(outcome.draft_seconds - (outcome.passes - 1) * known.draft_step, 0.0)
        )
        surplus = outcome.verify_seconds - self._one * self._cost.ratio(len(tree))
        extra = outcome.extra_seconds + max(surplus, 0.0)
        known.extra = extra if known.extra is None else _blend(known.extra, extra)
        known.tokens = _MEMORY * known.tokens + len(outcome.verdict.path) + 1
        known.seconds = _MEMORY * known.seconds + (
            outcome.draft_seconds + outcome.verify_seconds + outcome.extra_seconds
        )
        if outcome.verdict.path and self._pays():
            known.pause = _PAUSES[0]

    def learn_plain(self, seconds: float) -> None:
        """What a pass over one token costs."""
        if self._share is None:
            self._known.verify_one = _blend(self._known.verify_one, seconds)

    def _reckoned(self, outcome: Outcome, share: float) -> Outcome:
        """The round with the times it should take."""
        step, verify = share * self._one, self._one * self._cost.ratio(len(outcome.tree))
        return replace(
            outcome, draft_seconds=(outcome.passes + 1) * step, first_seconds=2 * step, verify_seconds=verify,
            extra_seconds=_OVERHEAD * self._one,
        )  # fmt: skip

    def _learn_acceptance(self, outcome: Outcome) -> None:
        known, tree, verdict = self._known, outcome.tree, outcome.verdict
        levels = len(verdict.path) + (not verdict.is_bonus)
        known.accepted = _FORGET * known.accepted + len(verdict.path)
        known.examined = _FORGET * known.examined + levels
        for child in _examined(outcome):
            beside = tree.children[tree.parents[child]][0] != child
            key = (tree.drafters[child], _bin(tree.confidences[child]), beside)
            decision = verdict.decisions.get(child)
            hit = decision.ratio if decision else float(child in verdict.path)
            known.hits[key] = _FORGET * known.hits.get(key, 0.0) + hit
            known.trials[key] = _FORGET * known.trials.get(key, 0.0) + 1.0

    def _pays(self) -> bool:
        """Whether some length promises more tokens a second than plain decoding."""
        beta, once = self._known.acceptance, self._draft_first + self._extra
        one, step = self._one, self._draft_step
        return any(
            expected_tokens(beta, length) / (ratio * one + once + (length - 1) * step) * one > _MARGIN
            for length, ratio in self._ratios
        )

    # -- the gate

    def accept(self, drafter: int, probability: float) -> float:
        """Observed acceptance at about this probability, beginning with the probability itself."""
        return self._accept(drafter, probability, False)

    def _accept(self, drafter: int, probability: float, beside: bool) -> float:
        key = (drafter, _bin(probability), beside)
        return (self._known.hits.get(key, 0.0) + _PRIOR * probability) / (self._known.trials.get(key, 0.0) + _PRIOR)

    def goes_on(self, chances: Sequence[float], nodes: int) -> bool:
        """Compare what one more level brings with what its draft pass and its nodes cost at the present pace."""
        count = len(chances)
        if not count or nodes + count > self._most:
            return False
        price = self._draft_step + count * self._node_price(nodes)
        return sum(chances) * self._known.acceptance > self._pace * price

    def is_worth(self, chance: float, nodes: int) -> bool:
        """Compare what one more node brings with its place in the target's pass."""
        price = _CAUTION * self._node_price(nodes) + (0.0 if nodes else self._extra)
        return nodes < self._most and (self._explores or chance > self._pace * price)

    def width(self, chance: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool) -> int:
        """One child goes on; further ones, likeliest first, have to be well worth their place as leaves.

        With dice one child is all: tried in random order, a leaf that is accepted first ends the path at once.
        """
        if sampled:
            return 1
        shares = [chance * self._accept(drafter, probability, True) / _LEAF for probability in probabilities[1:]]
        return 1 + sum(1 for share in shares if self.is_worth(share, nodes + 1))

    @property
    def _one(self) -> float:
        return self._known.verify_one or self._cost.one

    @property
    def _draft_step(self) -> float:
        return self._known.draft_step if self._known.draft_step is not None else self._one * (self._share or 1 / 8)

    @property
    def _extra(self) -> float:
        return self._known.extra or 0.0

    @property
    def _draft_first(self) -> float:
        return self._known.draft_first if self._known.draft_first is not None else self._one * (self._share or 1 / 8)

    @property
    def _pace(self) -> float:
        """Tokens a second to beat: what rounds with drafts reach, at least that of plain decoding."""
        plain = 1 / self._one
        return max(plain, self._known.tokens / self._known.seconds) if self._known.seconds else plain

    def _node_price(self, nodes: int) -> float:
        """Seconds one more node adds to the target's pass."""
        return self._one * self._rises[min(nodes, self._most)]


@lru_cache(maxsize=8)
def _rises(cost: VerifyCost, most: int) -> tuple[float, ...]:
    """What each node up to `most` adds to the curve; the same for every run of a model."""
    return tuple(_rise(cost, nodes) for nodes in range(most + 1))


def _rise(cost: VerifyCost, nodes: int) -> float:
    """What one more node adds to the curve, averaged over the next few: a curve may have steps."""
    now = cost.ratio(nodes + 1)
    return min((cost.ratio(nodes + 1 + more) - now) / more for more in (1, 2, 4))


def expected_tokens(beta: float, length: int) -> float:
    """(1 − β^(γ+1)) / (1 − β): tokens a target pass yields at acceptance β and draft length γ."""
    return length + 1.0 if beta >= 1 else (1 - beta ** (length + 1)) / (1 - beta)


def expected_speedup(beta: float, length: float, cost: float) -> float:
    """(1 − β^(γ+1)) / ((1 − β)(γc + 1)), c = time of a draft token ÷ time of a target pass."""
    tokens = length + 1.0 if beta >= 1 else (1 - beta ** (length + 1)) / (1 - beta)
    return tokens / (length * cost + 1)


def _examined(outcome: Outcome) -> Iterable[int]:
    """Drafted nodes that were compared with the target's choice: children of the root and of the accepted path."""
    for node in (0, *outcome.verdict.path):
        yield from outcome.tree.children[node]


def _bin(probability: float) -> int:
    return min(int(probability * _BINS), _BINS - 1)


def _blend(old: float | None, new: float) -> float:
    """A running average that a single slow pass cannot throw off."""
    return new if old is None else old + 0.15 * (min(new, 2.5 * old) - old)


def _settle(old: float | None, new: float) -> float:
    """A running average that is quick to believe the better times: what disturbs a pass only makes it longer."""
    if old is None:
        return new
    return old + (0.5 if new < old else 0.05) * (min(new, 2.5 * old) - old)
