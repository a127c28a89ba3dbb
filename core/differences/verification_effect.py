"""Check whether a rule for verifying drafts is lossless: the exact distribution of the token that it emits at a step.

p is the model's distribution, q that of the draft, ν that of the emitted token. A rule is lossless where ν = p. NumPy
only.

Sources: rejection sampling: Leviathan et al. 2023, Chen et al. 2023; several drafts at a position: Miao et al. 2024
(SpecInfer); typical acceptance: Cai et al. 2024 (Medusa); ensemble weight: `assistant_ensemble_weight` of transformers.
The sequential test is a betting martingale: Shafer 2021, Testing by betting; its bound is Ville's inequality (1939).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from decodescope.core.checks.arguments import check_number, check_one_of
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.errors import ParameterError
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.resources.language import mark, tr

Distribution: TypeAlias = Sequence[float] | FloatArray
"""Probabilities [V]."""
ENSEMBLE_WEIGHT, TYPICAL_THRESHOLD, TYPICAL_FACTOR = 0.5, 0.09, 0.3
"""Weight of the model in the ensemble rule; ε and δ of typical acceptance, as in Medusa's code."""
_SUM_TOLERANCE = 1e-4


class VerificationRule(NamedTuple):
    """A rule for one drafted token."""

    name: str
    title: str
    """In English."""
    is_lossless: bool
    emit: Callable[[FloatArray, FloatArray], FloatArray]
    """(p [V], q [V]) → ν [V]."""
    accept: Callable[[FloatArray, FloatArray], float]
    """(p [V], q [V]) → probability that the draft is accepted."""


def _sampled(p: FloatArray, q: FloatArray) -> FloatArray:
    """Draft x ~ q, accepted with min(1, p/q); else the residual norm(max(0, p − q))."""
    return emitted_by_trials(p, [q])


def _likeliest_draft(p: FloatArray, q: FloatArray) -> FloatArray:
    """Draft argmax q, treated as a point mass: accepted with p(x); else p without x."""
    return emitted_by_trials(p, [_point(int(q.argmax()), len(q))])


def _mismatched(p: FloatArray, q: FloatArray) -> FloatArray:
    """Draft argmax q, but accepted with min(1, p/q) as if it had been drawn from q."""
    token = int(q.argmax())
    accepted = min(1.0, float(p[token] / q[token]))
    return accepted * _point(token, len(p)) + (1 - accepted) * _residual(p, q)


def _ensemble(p: FloatArray, q: FloatArray) -> FloatArray:
    """Draft x ~ q, accepted with min(1, 1 − w + w p/q), else the residual: ν = w p + (1 − w) q."""
    accepted: FloatArray = np.minimum(q, (1 - ENSEMBLE_WEIGHT) * q + ENSEMBLE_WEIGHT * p)
    return accepted + (1 - float(accepted.sum())) * _residual(p, q)


def _is_typical(p: FloatArray) -> FloatArray:
    entropy = -float(np.sum(p * np.log(np.where(p > 0, p, 1.0))))
    threshold = min(TYPICAL_THRESHOLD, TYPICAL_FACTOR * math.exp(-entropy))
    return np.where(p > threshold, 1.0, 0.0)


def _typical(p: FloatArray, q: FloatArray) -> FloatArray:
    """Draft x ~ q, accepted if p(x) > min(ε, δ e^−H); else a token drawn from p."""
    accepted: FloatArray = q * _is_typical(p)
    return accepted + (1 - float(accepted.sum())) * p


def _overlap(p: FloatArray, q: FloatArray) -> float:
    return float(np.minimum(p, q).sum())


RULES: Mapping[str, VerificationRule] = MappingProxyType({
    rule.name: rule
    for rule in (
        VerificationRule("sampled", mark("Rejection sampling"), True, _sampled, _overlap),
        VerificationRule("likeliest_draft", mark("Likeliest draft, as a certain one"), True, _likeliest_draft,
                         lambda p, q: float(p[q.argmax()])),
        VerificationRule("likeliest_as_sampled", mark("Likeliest draft, as if it were sampled"), False, _mismatched,
                         lambda p, q: min(1.0, float(p[q.argmax()] / q.max()))),
        VerificationRule("ensemble", mark("Ensemble weight 0.5"), False, _ensemble,
                         lambda p, q: float(np.minimum(q, (1 - ENSEMBLE_WEIGHT) * q + ENSEMBLE_WEIGHT * p).sum())),
        VerificationRule("typical", mark("Typical acceptance"), False, _typical,
                         lambda p, q: float((q * _is_typical(p)).sum())),
    )
})  # fmt: skip
"""The rules by name. This program uses the first two: `core.decoding.speculation.verification.verify_sampled` with a
draft's distribution, and without one.
"""


def emitted_by_trials(p: FloatArray, drafts: Sequence[FloatArray]) -> FloatArray:
    """Return ν [V] of multi-step speculative sampling: drafts with the distributions `drafts` are tried in order."""
    emitted, reach, left = np.zeros_like(p), 1.0, p
    for q in drafts:
        accepted = np.minimum(left, q)
        emitted = emitted + reach * accepted
        reach *= 1 - float(accepted.sum())
        left = _residual(left, q)
    return emitted + reach * left


def emitted_distribution(p: Distribution, q: Distribution, rule: str = "sampled") -> FloatArray:
    """Return the exact distribution ν [V] of the emitted token for distributions p and q [V].

    Raises ParameterError for unknown rules, and for values that are no distributions of the same tokens.
    """
    check_one_of("rule", rule, RULES.keys())
    return RULES[rule].emit(*_distributions(p, q))


def total_variation(one: FloatArray, other: FloatArray) -> float:
    """Return the total variation distance ½ Σ |one − other| of two distributions [V]."""
    return float(np.abs(one - other).sum() / 2)


def _distributions(p: Distribution, q: Distribution) -> tuple[FloatArray, FloatArray]:
    found = tuple(np.asarray(one, dtype=np.float64) for one in (p, q))
    for name, one in zip("pq", found, strict=True):
        if one.ndim != 1 or len(one) != len(found[0]) or not (one >= 0).all() or abs(one.sum() - 1) > _SUM_TOLERANCE:
            raise ParameterError(
                tr("{name} is no probability distribution of the same tokens.").format(name=name),
                tr("Pass two lists of equal length, each with sum 1."),
                name,
            )
    return found[0] / found[0].sum(), found[1] / found[1].sum()


def _residual(p: FloatArray, q: FloatArray) -> FloatArray:
    left = np.maximum(p - q, 0.0)
    total = float(left.sum())
    return left / total if total > 0 else p


def _point(token: int, size: int) -> FloatArray:
    found = np.zeros(size)
    found[token] = 1.0
    return found


class RuleEffect(NamedTuple):
    """The effect of a rule over the steps of a text."""

    rule: str
    title: str
    is_lossless: bool
    """Whether it is lossless for all p and q."""
    distance: float
    """Average total variation distance of the emitted distribution to the model's."""
    largest: float
    accepted: float
    """Average probability that a draft is accepted."""


class RuleEffects(ResultRows[RuleEffect]):
    """One row per rule; `distances` are those of each step, by rule."""

    bar = "distance"
    distances: Mapping[str, Sequence[float]]

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {
            "rule": [tr(row.title) for row in self], "lossless": [row.is_lossless for row in self],
            "distance": [row.distance for row in self], "largest": [row.largest for row in self],
            "accepted": [row.accepted for row in self],
        }  # fmt: skip


def rule_effects(steps: Iterable[tuple[Distribution, Distribution]]) -> RuleEffects:
    """Return the effect of every rule over steps with distributions (p, q) [V] each. Raises ParameterError."""
    pairs = [_distributions(p, q) for p, q in steps]
    if not pairs:
        raise ParameterError(tr("There are no steps."), tr("Pass the distributions of at least one step."), "steps")
    distances = {name: [total_variation(rule.emit(p, q), p) for p, q in pairs] for name, rule in RULES.items()}
    found = RuleEffects(
        RuleEffect(
            name, rule.title, rule.is_lossless, sum(distances[name]) / len(pairs), max(distances[name]),
            sum(rule.accept(p, q) for p, q in pairs) / len(pairs),
        )
        for name, rule in RULES.items()
    )  # fmt: skip
    found.distances = distances
    return found


def _is_among(places: Collection[int], count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return [count]: whether each place is among `places`."""
    found, known = np.zeros(count, bool), np.fromiter(places, int, len(places))
    found[known[known < count]] = True
    return found


_BET_TEMPERATURES = (0.5, 0.7, 0.85, 1.2, 1.5, 2.0)
"""Temperatures of the alternatives that are bet on; a sharper or flatter distribution is the most frequent fault."""
_BET_POWERS = 1 / np.array(_BET_TEMPERATURES)[:, None]


class SequentialTest:
    """Tests whether tokens come from given distributions, and may be stopped at any time.

    Each token is bet on: the wealth is multiplied by b(x) / p(x), where p is the distribution that is tested, and b a
    prediction made before the token was known. Half of the start is bet on the frequencies of the tokens before, mixed
    with p; the rest on p at other temperatures. If all tokens come from their p, the wealth is a martingale with start
    1, so it ever reaches 1/α with a probability of at most α (Ville). Then `is_rejected`.

    Half of each bet trusts that every token is reported, until `add_unreported` says otherwise; the other half does
    not.
    """

    def __init__(self, level: float = 0.05, prior: float = 20.0) -> None:
        """`level`: the probability α of a false alarm. `prior`: weight of p in the prediction, in tokens."""
        check_number("level", level, 1e-12, 1.0)
        check_number("prior", prior, 1e-6)
        self._level, self._prior = level, prior
        self._counts: dict[Hashable, dict[int, int]] = {}
        starts = np.array([0.5, *[0.5 / len(_BET_TEMPERATURES)] * len(_BET_TEMPERATURES)])
        self._log_wealths = np.log([starts / 2, starts / 2])
        """[2, bets]: of the bets that trust that all tokens are reported, and of those that do not."""
        self.count = 0
        self.log_wealth = 0.0
        """Natural logarithm of the wealth now."""
        self.highest = 0.0
        """Its maximum so far."""

    def add(
        self, token: int, p: Distribution, *, context: Hashable = None, unseen: Collection[int] = (),
        doubtful: Collection[int] = (), sizes: Distribution | None = None,
    ) -> bool:  # fmt: skip
        """Add a sample and the distribution [V] that it should have; return whether the hypothesis is rejected.

        `context`: what p depends on, such as the text before; frequencies are counted for each context. `unseen`:
        tokens that may be drawn without being reported, such as an end token. Nothing is bet on them. `doubtful`:
        outcomes that may include such tokens; report draws of these with `add_unreported`. `sizes` [V]: how many tokens
        of about equal probability each outcome stands for, by default 1; it changes the bets only. Raises
        ParameterError for values that are no distribution, and for tokens outside it.
        """
        tested, _ = _distributions(p, p)
        if not 0 <= token < len(tested):
            raise ParameterError(
                tr("Token {token} is outside the distribution.").format(token=token), tr("Pass its index."), "token"
            )
        counts = self._counts.setdefault(context, {})
        self.count += 1
        weights = np.ones_like(tested) if sizes is None else np.asarray(sizes)
        kept, in_doubt = (_is_among(places, len(tested)) for places in (unseen, doubtful))
        trusting = self._bets(tested, kept, counts, weights)
        careful = trusting
        if in_doubt.any():
            # a smaller bet would win if such a token were drawn without being reported
            avoiding = self._bets(tested, kept | in_doubt, counts, weights)
            has_less = (trusting[:, in_doubt] < tested[in_doubt]).any(axis=1, keepdims=True)
            careful = np.where(has_less, avoiding, trusting)
        if tested[token] <= 0 and not kept[token]:
            self._log_wealths[:] = math.inf
        elif not kept[token]:
            with np.errstate(divide="ignore"):
                self._log_wealths += np.log([trusting[:, token], careful[:, token]]) - math.log(tested[token])
        self._update_wealth()
        counts[token] = counts.get(token, 0) + 1
        return self.is_rejected

    def add_unreported(self) -> None:
        """Add a sample that was not reported. The bets that trusted that this never happens are lost."""
        self._log_wealths[0] = -math.inf
        self._update_wealth()

    def _bets(
        self, tested: FloatArray, kept: np.ndarray[Any, np.dtype[np.bool_]], counts: Mapping[int, int],
        sizes: FloatArray,
    ) -> FloatArray:  # fmt: skip
        """Return the bets [bets, V], each a distribution with the probabilities p on the tokens that are `kept`."""
        free = np.where(kept, 0.0, tested)
        mass = float(free.sum())
        if mass <= 0:
            return np.repeat(tested[None], 1 + len(_BET_TEMPERATURES), axis=0)
        drawn = np.zeros_like(tested)
        for one, number in counts.items():
            drawn[one] = 0 if kept[one] else number
        frequent = mass * (self._prior * free / mass + drawn) / (self._prior + drawn.sum())
        powers = sizes * (free / sizes / free.max()) ** _BET_POWERS
        return np.where(kept, tested, [frequent, *(mass * powers / powers.sum(axis=1, keepdims=True))])

    def _update_wealth(self) -> None:
        self.log_wealth = float(np.logaddexp.reduce(self._log_wealths, axis=None))
        self.highest = max(self.highest, self.log_wealth)

    @property
    def is_rejected(self) -> bool:
        """Whether the tokens do not come from the distributions, with a false alarm in at most α of all cases."""
        return self.highest >= -math.log(self._level)

    @property
    def p_value(self) -> float:
        """An upper bound on the probability of such wealth without a difference, valid at any time."""
        return min(1.0, math.exp(-self.highest))

    @property
    def likeliest_temperature(self) -> float | None:
        """The temperature whose bets won the most; None if bets on frequencies won more, or none has won."""
        wealths = np.logaddexp.reduce(self._log_wealths, axis=0)
        best = int(wealths.argmax())
        has_won = math.isfinite(self.log_wealth) and wealths[best] > 0
        return _BET_TEMPERATURES[best - 1] if best and has_won else None
