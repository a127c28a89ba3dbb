"""Measure how far the scores of two runs differ: at the first differing token, and on the tokens before it.

All values are differences of natural logarithms of probabilities, in which a constant added to all scores cancels: the
margin of a choice is ln p(its token) − ln p(the other run's token). Imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from decodescope.core.differences.compared_run import ComparedRun
from decodescope.core.events import Alternative, TokenChosen

MAX_STEPS = 200
"""Number of common tokens, the last ones, whose scores are compared."""
_MIN_LOG_PROBABILITY = math.log(1e-4)
"""Tokens less likely than this in both runs are not compared: rounding shifts them further."""
_ROUNDING_LIMITS = {"float64": 1e-6, "float32": 1e-2, "float16": 0.25, "bfloat16": 1.0}
_OTHER_LIMIT = 4.0
_RMS_FACTOR, _MAXIMUM_FACTOR = 6.0, 3.0
_EQUAL = 1e-6
"""Largest difference of logarithms and probabilities that counts as none."""


def rounding_limit(*precisions: str) -> float:
    """Return the largest shift of a margin, in nats, that calculations in these number formats can cause.

    A generous bound, hundreds of times the relative error of a format times scores of a few dozen. Quantized weights
    and unknown formats have the largest one.
    """
    return max((_ROUNDING_LIMITS.get(name, _OTHER_LIMIT) for name in precisions), default=_OTHER_LIMIT)


class Spread(NamedTuple):
    """Differences of the margins of the same tokens after the same text, in two runs, before they first differ."""

    margins: int
    """Number of margins compared."""
    steps: int
    """Number of tokens whose margins were compared."""
    rms: float
    """Root mean square in nats."""
    maximum: float


class StepShift(NamedTuple):
    """The scores of both runs where their tokens first differ. Margins are of A's token against B's, in nats."""

    raw: tuple[float, float]
    """Margins before any setting, in A and in B; NaN if unknown."""
    final: tuple[float, float]
    """Margins after all settings. Positive where A's token is ahead."""
    is_bound: tuple[bool, bool]
    """Whether a run lists only its own token: then its margin is at least this large."""
    raw_difference: float
    """Largest difference of logarithms of raw probabilities among the likeliest tokens of both; NaN if unknown."""
    distance: float
    """Upper bound on the total variation distance of the final distributions; NaN if unknown."""

    @property
    def shift(self) -> float:
        """The shift of the raw margin from A to B, in nats; at least this much if a margin is a bound."""
        return abs(self.raw[0] - self.raw[1])

    @property
    def has_equal_raw(self) -> bool:
        """Whether the model gave the same scores in both runs."""
        return self.raw_difference <= _EQUAL

    @property
    def has_equal_final(self) -> bool:
        """Whether the final distributions are the same."""
        return self.distance <= _EQUAL

    @property
    def flip_probability(self) -> float:
        """Upper bound on the probability that equal random numbers choose other tokens: 2d / (1 + d) for distance d,
        the value of Gumbel noise.
        """
        return 2 * self.distance / (1 + self.distance)

    def flips_by_reading(self) -> bool | None:
        """Return whether B's raw scores with A's settings prefer B's token; None if unknown."""
        return _is_negative(self.raw[1] + (self.final[0] - self.raw[0]))

    def flips_by_settings(self) -> bool | None:
        """Return whether A's raw scores with B's settings prefer B's token; None if unknown."""
        return _is_negative(self.raw[0] + (self.final[1] - self.raw[1]))


def _is_negative(margin: float) -> bool | None:
    return None if math.isnan(margin) else margin <= 0


def is_within(shift: StepShift, spread: Spread | None, limit: float) -> bool | None:
    """Return whether rounding explains a shift: it is below `limit`, as is the spread on the common tokens, and no
    outlier of that spread. None if the margins are unknown.
    """
    if math.isnan(shift.shift):
        return None
    if spread is not None and spread.maximum > limit:
        return False
    if shift.shift > limit:
        return False
    if any(shift.is_bound):
        return None
    if spread is None:
        return True
    return shift.shift <= max(_RMS_FACTOR * spread.rms, _MAXIMUM_FACTOR * spread.maximum, limit / 100)


def step_shift(a: ComparedRun, b: ComparedRun, position: int, other_position: int) -> StepShift | None:
    """Return the scores where the tokens first differ; None without recorded alternatives."""
    if position >= len(a.tokens) or other_position >= len(b.tokens):
        return None
    ours, theirs = a.tokens[position], b.tokens[other_position]
    listed = _listed(ours), _listed(theirs)
    if not all(listed):
        return None
    raw = [_margin(table, ours, theirs, is_raw=True) for table in listed]
    final = [_margin(table, ours, theirs, is_raw=False) for table in listed]
    is_bound = (_key(theirs) not in listed[0], _key(ours) not in listed[1])
    return StepShift(
        (raw[0], raw[1]), (final[0], final[1]), is_bound, _raw_difference(*listed), _distance(*listed)
    )  # fmt: skip


def spread_before(a: ComparedRun, b: ComparedRun, position: int) -> Spread | None:
    """Return the spread on the tokens before `position`, which both runs wrote; None if no scores can be compared."""
    shifts: list[float] = []
    steps = 0
    for ours, theirs in list(zip(a.tokens[:position], b.tokens[:position], strict=False))[-MAX_STEPS:]:
        found = _margin_shifts(_listed(ours), _listed(theirs), _key(ours))
        shifts += found
        steps += bool(found)
    if not shifts:
        return None
    rms = math.sqrt(sum(shift * shift for shift in shifts) / len(shifts))
    return Spread(len(shifts), steps, rms, max(map(abs, shifts)))


def _margin_shifts(ours: dict[object, Alternative], theirs: dict[object, Alternative], chosen: object) -> list[float]:
    if chosen not in ours or chosen not in theirs:
        return []
    base = _log(ours[chosen]) - _log(theirs[chosen])
    shared = (key for key in ours if key in theirs and key != chosen)
    likely = (key for key in shared if max(_log(ours[key]), _log(theirs[key])) > _MIN_LOG_PROBABILITY)
    found = (_log(ours[key]) - _log(theirs[key]) - base for key in likely)
    return [shift for shift in found if math.isfinite(shift)]


def _log(one: Alternative) -> float:
    """Return the raw log-probability, or the final one where an engine reports only that."""
    return one.log_probability if math.isnan(one.raw_log_probability) else one.raw_log_probability


def _key(token: TokenChosen | Alternative) -> object:
    return token.id if token.id >= 0 else token.text


def _listed(token: TokenChosen) -> dict[object, Alternative]:
    return {_key(one): one for one in token.alternatives}


def _margin(table: dict[object, Alternative], ours: TokenChosen, theirs: TokenChosen, *, is_raw: bool) -> float:
    """Return ln p(A's token) − ln p(B's token); a token that is not listed counts like the least likely listed one."""
    values = {key: _log(one) if is_raw else one.log_probability for key, one in table.items()}
    known = [value for value in values.values() if not math.isnan(value)]
    if not known:
        return math.nan
    unlisted = min(known)
    first, second = values.get(_key(ours), unlisted), values.get(_key(theirs), unlisted)
    return math.nan if first == second == -math.inf else first - second


def _raw_difference(ours: dict[object, Alternative], theirs: dict[object, Alternative]) -> float:
    found = [
        abs(_log(ours[key]) - _log(theirs[key]))
        for key in ours
        if key in theirs and max(_log(ours[key]), _log(theirs[key])) > _MIN_LOG_PROBABILITY
    ]
    finite = [value for value in found if math.isfinite(value)]
    return max(finite) if finite else math.nan


def _distance(ours: dict[object, Alternative], theirs: dict[object, Alternative]) -> float:
    """Return the distance of the listed tokens, and of the rest as if it had nothing in common unless all of the
    distribution is listed.
    """
    pairs = [(ours[key].probability, theirs[key].probability) for key in ours if key in theirs]
    if not pairs or any(math.isnan(value) for pair in pairs for value in pair):
        return math.nan
    listed = sum(abs(one - other) for one, other in pairs) / 2
    if ours.keys() == theirs.keys() and listed <= _EQUAL:
        return listed
    rest = max(1 - sum(one for one, _ in pairs), 1 - sum(other for _, other in pairs), 0.0)
    return min(1.0, listed + rest)


def pairs_of_margins(a: ComparedRun, b: ComparedRun, position: int) -> Sequence[tuple[int, float]]:
    """Return (step, largest absolute shift of a margin in nats) of the common tokens, for a diagram."""
    found = []
    for step, (ours, theirs) in enumerate(zip(a.tokens[:position], b.tokens[:position], strict=False)):
        shifts = _margin_shifts(_listed(ours), _listed(theirs), _key(ours))
        if shifts:
            found.append((step, max(map(abs, shifts))))
    return found[-MAX_STEPS:]
