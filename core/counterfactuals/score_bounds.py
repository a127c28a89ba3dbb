"""The token that fixed noise chooses, as an exact function of one setting.

With Gumbel noise g, a step chooses argmax(score + g). If the setting θ scales the scores (temperature) or moves them
along a line (guidance, a bias), the perturbed scores of all tokens are lines in θ, and the choice follows their upper
envelope. Cuts remove tokens depending on θ: on an interval of θ, every token is certainly kept, certainly removed, or
undecided, by bounds on the scores. An interval is halved as long as an undecided token could be chosen; otherwise the
envelope of the certain tokens is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.errors import InsideError
from decodescope.core.processors.base import ScoreRule
from decodescope.resources.language import tr

BoolArray: TypeAlias = npt.NDArray[np.bool_]
TokenFunction: TypeAlias = Callable[[FloatArray], FloatArray]
"""Scores [V] → scores [V], token by token."""
_TOLERANCE = 1e-11
"""Relative width below which an interval is a point: a setting is a float32 number in a run."""
_MAX_INTERVALS = 3_000
"""Maximum number of intervals examined in one step."""


class FollowingStage(NamedTuple):
    """A stage that acts after the scores depend on the setting."""

    name: str
    rule: ScoreRule
    value: float | None
    """Its own setting; None if it is the one that varies."""
    process: TokenFunction | None = None
    """For the rule `token`: its function."""


class Segment(NamedTuple):
    """The token chosen for low < θ ≤ high."""

    low: float
    high: float
    token: int


@dataclass(frozen=True, slots=True)
class ScoreFamily:
    """Scores of all tokens as a function of θ: intercepts + θ · slopes, or with `divides` intercepts ÷ θ."""

    intercepts: FloatArray
    """[V]; −∞ for tokens that are banned whatever θ is."""
    slopes: FloatArray
    divides: bool = False

    def at(self, value: float) -> FloatArray:
        """Return the scores [V] for one value."""
        return self.intercepts / value if self.divides else self.intercepts + value * self.slopes


class _SplitError(Exception):
    """The interval has to be split at these values first."""

    def __init__(self, points: Sequence[float]) -> None:
        super().__init__(points)
        self.points = points


@dataclass(slots=True)
class _ScoreBounds:
    """Bounds on scores and order for low < θ ≤ high, and which tokens are left."""

    lower: FloatArray
    upper: FloatArray
    """Scores [V] minus a common offset."""
    order_lower: FloatArray
    order_upper: FloatArray
    """Values [V] that order the tokens like their scores and keep ties."""
    rank_lower: FloatArray
    rank_upper: FloatArray
    """The same; where the order is the same for all θ, ties are decided as in a stable sort."""
    certain: BoolArray
    possible: BoolArray
    scale_ends: tuple[FloatArray, FloatArray] | None
    """The scores [V] at both ends, if dividing by θ is all that changes them."""
    critical: FloatArray
    """[V]: the value of θ from which on, or up to which, a token is kept; NaN if unknown."""
    lines: tuple[float, float, FloatArray, FloatArray] | None = None
    """The ends of the interval and the scores [V] there, if they are lines of different slopes."""

    def restrict(self, certain: BoolArray, possible: BoolArray) -> None:
        """Remove all but these tokens."""
        self.certain, self.possible = self.certain & certain, self.possible & possible

    def divide(self, value: float) -> None:
        """Divide all scores."""
        self.lower, self.upper = self.lower / value, self.upper / value
        if self.scale_ends is not None:
            self.scale_ends = self.scale_ends[0] / value, self.scale_ends[1] / value


def solve_step(
    family: ScoreFamily, following: Sequence[FollowingStage], noise: FloatArray, low: float, high: float,
    whole_numbers: bool = False,
) -> list[Segment]:  # fmt: skip
    """Return the chosen token for all low < θ ≤ high, as adjacent segments with different tokens.

    `noise` [V] is Gumbel noise. With `whole_numbers` only whole θ count. Raises InsideError if the step needs too many
    intervals.
    """
    solver = _StepSolver(family, following, noise, whole_numbers)
    found: list[Segment] = []
    waiting = [(float(low), float(high))]
    while waiting:
        start, end = waiting.pop()
        answer = solver.solve(start, end)
        if isinstance(answer, float):
            waiting += [(answer, end), (start, answer)]
            continue
        for segment in answer:
            if found and found[-1].token == segment.token:
                found[-1] = found[-1]._replace(high=segment.high)
            else:
                found.append(segment)
    return found


class _StepSolver:
    """Solves one step on one interval after another."""

    def __init__(
        self, family: ScoreFamily, following: Sequence[FollowingStage], noise: FloatArray, whole_numbers: bool
    ) -> None:
        self._family, self._following, self._noise, self._whole = family, following, noise, whole_numbers
        self._count = 0
        self._ranks = _stable_ranks(family.intercepts) if family.divides or not family.slopes.any() else None

    def solve(self, low: float, high: float) -> list[Segment] | float:
        """Return the segments of an interval, or where to split it first."""
        self._count += 1
        if self._count > _MAX_INTERVALS:
            names = ", ".join(stage.name for stage in self._following if stage.rule in CUT_RULES)
            raise InsideError(
                tr("These stages depend on the setting in too many ways to follow all its values: {names}.").format(
                    names=names
                ),
                tr("Turn them off, or choose a smaller interval."),
            )
        is_point = high - low <= 1 if self._whole else high - low <= _TOLERANCE * max(1.0, abs(high))
        begin, end = (high, high) if is_point else (low, high)
        try:
            family, bounds = self._bounds(begin, end, exclusive=not is_point)
        except _SplitError as split:
            return self._choose_split(low, high, split.points)
        intercepts, slopes = self._lines(family)
        kept = np.flatnonzero(bounds.certain)
        undecided = np.flatnonzero(bounds.possible & ~bounds.certain)
        if is_point:
            kept = kept if len(kept) else undecided
            heights = intercepts[kept] + end * slopes[kept]
            return [Segment(low, high, int(kept[heights.argmax()]))]
        if not len(kept):
            return self._choose_split(low, high, ())
        envelope = upper_envelope(kept, intercepts, slopes, low, high)
        if len(undecided):
            reaches = np.zeros(len(undecided), dtype=bool)
            for segment in envelope:
                for value in (segment.low, segment.high):
                    best = intercepts[segment.token] + value * slopes[segment.token]
                    reaches |= intercepts[undecided] + value * slopes[undecided] > best
            if reaches.any():
                return self._choose_split(low, high, bounds.critical[undecided[reaches]].tolist())
        return envelope

    def _choose_split(self, low: float, high: float, points: Sequence[float]) -> float:
        inside = sorted(point for point in points if low < point < high)  # NaN is not
        middle = inside[len(inside) // 2] if inside else (low + high) / 2
        return float(min(max(round(middle), low + 1), high - 1)) if self._whole else float(middle)

    def _lines(self, family: ScoreFamily) -> tuple[FloatArray, FloatArray]:
        """Return intercepts and slopes [V] of the perturbed scores; for a temperature, those of θ times them."""
        if family.divides:
            return family.intercepts, self._noise
        return family.intercepts + self._noise, family.slopes

    def _bounds(self, low: float, high: float, *, exclusive: bool) -> tuple[ScoreFamily, _ScoreBounds]:
        """Return the family after all stages and the bounds for low < θ ≤ high; for θ = high if not `exclusive`."""
        family, bounds = self._family, None
        for stage in self._following:
            if stage.rule in CUT_RULES:
                bounds = self._new_bounds(family, low, high) if bounds is None else bounds
                limits = (low, high) if stage.value is None else (stage.value, stage.value)
                _CUTS[stage.rule](bounds, limits, exclusive and stage.value is None)
            elif stage.rule == "division":
                assert stage.value is not None
                family = ScoreFamily(family.intercepts / stage.value, family.slopes / stage.value, family.divides)
                if bounds is not None:
                    bounds.divide(stage.value)
            elif stage.rule == "token":
                assert stage.process is not None
                if bounds is None:
                    family = _apply_by_token(family, stage.process, low, high)
                else:  # only bans are allowed here
                    left = ~np.isneginf(stage.process(family.at(high)))
                    bounds.restrict(left, left)
        return family, self._new_bounds(family, low, high) if bounds is None else bounds

    def _new_bounds(self, family: ScoreFamily, low: float, high: float) -> _ScoreBounds:
        return _score_bounds(family, low, high, self._ranks if family is self._family else None)


def upper_envelope(
    tokens: npt.NDArray[np.intp], intercepts: FloatArray, slopes: FloatArray, low: float, high: float
) -> list[Segment]:
    """Return which of the lines of `tokens` is the highest for low < θ ≤ high."""
    constant, rise = intercepts[tokens], slopes[tokens]
    start = constant + low * rise
    first = np.flatnonzero(start == start.max())
    place, value = int(first[rise[first].argmax()]), low
    found: list[Segment] = []
    while True:
        steeper = np.flatnonzero(rise > rise[place])
        crossings = (constant[place] - constant[steeper]) / (rise[steeper] - rise[place])
        end = max(value, float(crossings.min())) if len(steeper) else high
        end = min(end, high)
        if end > value:
            found.append(Segment(value, end, int(tokens[place])))
        if end >= high:
            return found
        next_places = steeper[crossings <= end]
        place, value = int(next_places[rise[next_places].argmax()]), end


def _stable_ranks(scores: FloatArray) -> FloatArray:
    """Return the position [V] of each score in a stable ascending sort, as torch sorts on a CPU."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return ranks


def _score_bounds(family: ScoreFamily, low: float, high: float, ranks: FloatArray | None) -> _ScoreBounds:
    constant = family.intercepts
    left = np.isfinite(constant)
    ends: tuple[FloatArray, FloatArray] | None = None
    if family.divides:
        below = constant - constant[left].max()
        with np.errstate(divide="ignore", invalid="ignore"):
            lower, upper = np.where(below < 0, below / low, 0.0), below / high
        ends = (lower, upper)
        order = (constant, constant)
    else:
        first, second = family.at(low), family.at(high)
        offset = max(first[left].max(), second[left].max())
        lower, upper = np.minimum(first, second) - offset, np.maximum(first, second) - offset
        order = (lower, upper)
        is_fixed = low == high or not family.slopes[left].any()
        ranks = (ranks if ranks is not None else _stable_ranks(upper)) if is_fixed else None
        if is_fixed:
            lower = upper
            order, ends = (upper, upper), (upper, upper)
    if family.divides and ranks is None:
        ranks = _stable_ranks(constant)
    rank_bounds = order if ranks is None else (ranks, ranks)
    lines = None if family.divides or ends is not None else (low, high, first, second)
    critical = np.full(len(left), math.nan)
    return _ScoreBounds(lower, upper, *order, *rank_bounds, left.copy(), left.copy(), ends, critical, lines)


def _apply_by_token(family: ScoreFamily, process: TokenFunction, low: float, high: float) -> ScoreFamily:
    """Return the family after a stage that is linear in each token's own score on either side of zero.

    Raises _SplitError at values where the score of a token that the stage bends is zero.
    """
    if family.divides:  # only bans are allowed here
        after = process(family.at(high))
        return ScoreFamily(np.where(np.isneginf(after), -math.inf, family.intercepts), family.slopes, True)
    if not family.slopes.any() or low == high:
        after = process(family.at(high))
        banned = np.isneginf(after)
        slopes = np.where(banned, 0.0, family.slopes)
        return ScoreFamily(np.where(banned, after, after - high * slopes), slopes)
    middle = (low + high) / 2
    first, half, last = (process(family.at(value)) for value in (low, middle, high))
    left = np.isfinite(first) & np.isfinite(last)
    slopes, intercepts = np.zeros_like(first), np.full_like(first, -math.inf)
    slopes[left] = (last[left] - first[left]) / (high - low)
    intercepts[left] = last[left] - high * slopes[left]
    off = np.abs(half[left] - (first[left] + last[left]) / 2) > 1e-9 * (1 + np.abs(half[left]))
    if off.any():
        bent = np.flatnonzero(left)[off]
        with np.errstate(divide="ignore", invalid="ignore"):
            roots = -family.intercepts[bent] / family.slopes[bent]
        inside = [root for root in roots.tolist() if low < root < high]
        if inside and high - low > _TOLERANCE * max(1.0, abs(high)):
            raise _SplitError(inside)
    return ScoreFamily(intercepts, slopes)


# Cuts. Each restricts the bounds to the tokens that it certainly and possibly keeps.


def _cut_count(bounds: _ScoreBounds, limits: tuple[float, float], varies: bool) -> None:
    """Keep scores that are not below the k-th largest."""
    smallest, largest = (math.floor(limits[0]) + 1 if varies else int(limits[0])), int(limits[1])
    certain = bounds.order_lower >= _kth_largest(bounds.order_upper[bounds.possible], smallest)
    possible = bounds.order_upper >= _kth_largest(bounds.order_lower[bounds.certain], largest)
    lines, left = bounds.lines, bounds.possible
    is_first = bool((bounds.certain == left).all())
    bounds.restrict(certain, possible)
    if lines is not None and is_first and smallest == largest:
        _refine_ranks(bounds, lines, left, largest)


def _refine_ranks(
    bounds: _ScoreBounds, lines: tuple[float, float, FloatArray, FloatArray], left: BoolArray, count: int
) -> None:
    """Decide undecided tokens by the exact number of lines above theirs, or note where that number crosses `count`.

    Bounds on each score alone overlap near every crossing, however short the interval is.
    """
    low, high, first, second = lines
    for token in np.flatnonzero(bounds.possible & ~bounds.certain)[:_MAX_REFINED]:
        before, after = first[left] - first[token], second[left] - second[token]
        tie = _TIE * (1.0 + abs(first[token]) + abs(second[token]))
        # A line that crosses at an end counts as it does inside of the interval.
        above_low = (before > tie) | ((before >= -tie) & (after > tie))
        above_high = (after > tie) | ((after >= -tie) & (before > tie))
        if (above_low | above_high).sum() < count:
            bounds.certain[token] = True
        elif (above_low & above_high).sum() >= count:
            bounds.possible[token] = False
        else:
            crossing = above_low != above_high
            share = before[crossing] / (before[crossing] - after[crossing])
            order = np.argsort(share)
            above = above_low.sum() + np.cumsum(np.where(above_high[crossing][order], 1, -1))
            changes = np.flatnonzero((above < count) != (above_low.sum() < count))
            if len(changes):
                bounds.critical[token] = low + float(share[order][changes[0]]) * (high - low)


_MAX_REFINED = 64
"""Tokens of an interval that are compared with all others."""
_TIE = 1e-12
"""Relative difference below which two scores are equal."""


def _kth_largest(values: FloatArray, count: int) -> float:
    if count > len(values):
        return -math.inf
    return float(np.partition(values, len(values) - max(count, 1))[len(values) - max(count, 1)])


def _cut_mass(bounds: _ScoreBounds, limits: tuple[float, float], varies: bool) -> None:
    """Keep tokens with less than this probability before them."""
    lower, upper = _mass_before(bounds, bounds.rank_lower, bounds.rank_upper)
    _keep_by_mass(bounds, lower, upper, limits, varies)


def _keep_by_mass(
    bounds: _ScoreBounds, lower: FloatArray, upper: FloatArray, limits: tuple[float, float], varies: bool
) -> None:
    if varies:
        _note_critical(bounds, lower, upper)
        certain = upper <= limits[0]
    else:
        certain = (upper < limits[0]) | (upper <= 0)
    bounds.restrict(certain, (lower < limits[1]) | (lower <= 0))


def _note_critical(bounds: _ScoreBounds, lower: FloatArray, upper: FloatArray) -> None:
    """Remember where a token begins or ceases to be kept, if that is known exactly."""
    bounds.critical = np.where(lower == upper, upper, math.nan)


def _mass_before(
    bounds: _ScoreBounds, order_lower: FloatArray, order_upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds [V] on the probability, among the tokens left, of those that are larger in the given order."""
    is_settled = bool((bounds.certain == bounds.possible).all())
    if is_settled and bounds.scale_ends is not None and order_lower is order_upper:
        # The probability of the n best tokens falls as the temperature rises.
        first, second = (_exact_mass_before(scores, order_upper, bounds.possible) for scores in bounds.scale_ends)
        return np.minimum(first, second), np.maximum(first, second)
    certain, possible = bounds.certain, bounds.possible
    least, most = np.exp(bounds.lower), np.exp(bounds.upper)
    own_above = possible & (order_upper > order_lower)
    above_most = _sum_above(order_upper, np.where(possible, most, 0.0), order_lower) - np.where(own_above, most, 0.0)
    above_least = _sum_above(order_lower, np.where(certain, least, 0.0), order_upper)
    in_least, in_most = np.where(certain, least, 0.0), np.where(possible, most, 0.0)
    own_counted = certain & (order_upper <= order_lower)
    rest_least = in_least.sum() - _sum_above(order_upper, in_least, order_lower) + np.where(own_counted, 0.0, least)
    rest_most = in_most.sum() - _sum_above(order_lower, in_most, order_upper)
    above_most, rest_most = np.maximum(above_most, 0.0), np.maximum(rest_most, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        upper = above_most / (above_most + np.maximum(rest_least, least))
        lower = above_least / (above_least + rest_most)
    return np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=1.0)


def _exact_mass_before(scores: FloatArray, order: FloatArray, kept: BoolArray) -> FloatArray:
    shares = np.where(kept, np.exp(scores), 0.0)
    found: FloatArray = _sum_above(order, shares, order) / shares.sum()
    return found


def _sum_above(order: FloatArray, values: FloatArray, limits: FloatArray) -> FloatArray:
    """Return for each of `limits` [V] the sum of the `values` [V] whose order is above it."""
    places = np.argsort(-order, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(values[places])])
    found: FloatArray = sums[np.searchsorted(-order[places], -limits, side="left")]
    return found


def _cut_ratio(bounds: _ScoreBounds, limits: tuple[float, float], varies: bool) -> None:
    """Keep tokens of at least this fraction of the highest probability."""
    best = _best_bounds(bounds)
    with np.errstate(divide="ignore"):
        low, high = np.log(limits[0]), np.log(limits[1])
    if varies:
        lower, upper = np.exp(bounds.lower - best[1]), np.exp(bounds.upper - best[0])
        _note_critical(bounds, lower, upper)
        bounds.restrict(lower >= limits[1], upper > limits[0])
    else:
        is_best = bounds.upper >= best[0]
        bounds.restrict(bounds.lower >= best[1] + high, (bounds.upper >= best[0] + low) | is_best)


def _best_bounds(bounds: _ScoreBounds) -> tuple[float, float]:
    """Return bounds on the highest score of the tokens left."""
    least = bounds.lower[bounds.certain].max() if bounds.certain.any() else -math.inf
    return float(least), float(bounds.upper[bounds.possible].max())


def _probability_bounds(bounds: _ScoreBounds) -> tuple[FloatArray, FloatArray]:
    """Return bounds [V] on the probability of each token among those left, if it is."""
    least, most = np.exp(bounds.lower), np.exp(bounds.upper)
    in_least, in_most = np.where(bounds.certain, least, 0.0), np.where(bounds.possible, most, 0.0)
    others_least, others_most = np.maximum(in_least.sum() - in_least, 0.0), np.maximum(in_most.sum() - in_most, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        lower, upper = least / (least + others_most), most / (most + others_least)
    return np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=1.0)


def _keep_probable(bounds: _ScoreBounds, limits: tuple[float, float], varies: bool) -> None:
    """Keep tokens of at least this probability, and the best one."""
    lower, upper = _probability_bounds(bounds)
    best_certain, best_possible = _is_best(bounds)
    if varies:
        _note_critical(bounds, lower, upper)
        bounds.restrict((lower >= limits[1]) | best_certain, (upper > limits[0]) | best_possible)
    else:
        bounds.restrict((lower >= limits[1]) | best_certain, (upper >= limits[0]) | best_possible)


def _is_best(bounds: _ScoreBounds) -> tuple[BoolArray, BoolArray]:
    """Return which tokens certainly and possibly have the highest score."""
    least = bounds.order_lower[bounds.certain].max() if bounds.certain.any() else -math.inf
    possible = bounds.possible & (bounds.order_upper >= least)
    others = np.sort(bounds.order_upper[bounds.possible])[-2:]
    second = others[0] if len(others) > 1 else -math.inf
    certain = bounds.certain & (bounds.order_lower >= second) & (bounds.order_upper >= others[-1])
    return certain, possible


def _entropy_bounds(bounds: _ScoreBounds) -> tuple[float, float]:
    """Return bounds on the entropy of the tokens left, in nats."""
    lower, upper = _probability_bounds(bounds)
    lower = np.where(bounds.certain, lower, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (np.nan_to_num(-share * np.log(share), nan=0.0) for share in (lower, upper))
    peak = math.exp(-1)
    most = np.where((lower <= peak) & (peak <= upper), peak, np.maximum(first, second))
    found = [np.where(bounds.possible, values, 0.0).sum() for values in (np.minimum(first, second), most)]
    return max(float(found[0]), 0.0), min(float(found[1]), math.log(max(int(bounds.possible.sum()), 1)))


def _cut_entropy(bounds: _ScoreBounds, limits: tuple[float, float], varies: bool) -> None:
    """Keep tokens of at least the probability min(ε, √ε · exp(−entropy)), and the best one."""
    entropy = _entropy_bounds(bounds)
    low, high = (min(limits[n], math.sqrt(limits[n]) * math.exp(-entropy[1 - n])) for n in (0, 1))
    _keep_probable(bounds, (low, high), False)


def _cut_typical(bounds: _ScoreBounds, limits: tuple[float, float], varies: bool) -> None:
    """Keep the tokens whose surprise is closest to the entropy, with less than this probability before them."""
    entropy, (lower, upper) = _entropy_bounds(bounds), _probability_bounds(bounds)
    with np.errstate(divide="ignore", invalid="ignore"):
        least, most = -np.log(upper) - entropy[1], -np.log(lower) - entropy[0]
    nearest = np.where((least <= 0) & (most >= 0), 0.0, np.minimum(np.abs(least), np.abs(most)))
    farthest = np.maximum(np.abs(least), np.abs(most))
    is_point = bounds.lower is bounds.upper and bool((bounds.certain == bounds.possible).all())
    order = (-farthest, -farthest) if is_point else (-farthest, -nearest)
    _keep_by_mass(bounds, *_mass_before(bounds, *order), limits, varies)


def _cut_deviation(bounds: _ScoreBounds, limits: tuple[float, float], varies: bool) -> None:
    """Keep scores within this many standard deviations of the highest one."""
    lower, upper = bounds.order_lower, bounds.order_upper
    kept = bounds.possible
    if not (bounds.certain == kept).all():
        _, best = _is_best(bounds)
        bounds.restrict(best & False, kept)
        return
    mean_low, mean_high = lower[kept].mean(), upper[kept].mean()
    least = np.maximum(np.maximum(lower[kept] - mean_high, mean_low - upper[kept]), 0.0)
    most = np.maximum(mean_high - lower[kept], upper[kept] - mean_low)
    deviation_low, deviation_high = (float(np.sqrt((part**2).mean())) for part in (least, most))
    best_low, best_high = lower[kept].max(), upper[kept].max()
    if varies:
        first = (best_low - upper) / deviation_high if deviation_high else np.zeros_like(upper)
        second = (best_high - lower) / deviation_low if deviation_low else np.full_like(upper, math.inf)
        _note_critical(bounds, first, second)
    certain = lower >= best_high - limits[0] * deviation_low
    bounds.restrict(certain, upper >= best_low - limits[1] * deviation_high)


_CUTS: dict[str, Callable[[_ScoreBounds, tuple[float, float], bool], None]] = {
    "count": _cut_count, "mass": _cut_mass, "ratio": _cut_ratio, "probability": _keep_probable,
    "entropy": _cut_entropy, "typical": _cut_typical, "deviation": _cut_deviation,
}  # fmt: skip
CUT_RULES = frozenset(_CUTS)
