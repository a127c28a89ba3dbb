"""Statistics of a study. The unit is the prompt: its texts of several seeds are not independent of each other.

An interval is a cluster bootstrap (prompts are resampled, then the seeds of each one) with Efron's bias-corrected and
accelerated limits (BCa; Efron 1987). Resampling the seeds too makes it slightly wider than needed where prompts have
several seeds, never narrower. Fewer than `MIN_PROMPTS` prompts give a mean without an interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = Mapping[Hashable, Sequence[float]]
"""The values of a measure by prompt: one for each text."""
Array: TypeAlias = NDArray[np.float64]

MIN_PROMPTS = 8
"""Number of prompts from which an interval is given."""
RESAMPLES = 10_000
LEVEL = 0.95
_MAX_CELLS = 4_000_000
"""Numbers that are drawn at a time."""
_EXACT_FLIPS = 14
"""Number of prompts up to which all sign changes are enumerated."""
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over prompts, with its interval where there are enough prompts."""

    mean: float
    low: float | None
    """Lower limit of the 95 % interval; None with fewer than `MIN_PROMPTS` prompts."""
    high: float | None
    prompts: int
    texts: int
    deviation: float | None = None
    """Standard deviation of the prompts' means; None for a single prompt."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference to the baseline cell."""

    estimate: MeanEstimate
    p: float | None
    """Two-sided probability of a difference of this size if there is none (sign-flip test over prompts); None with
    fewer than `MIN_PROMPTS` prompts.
    """
    adjusted_p: float | None = None
    """The same by Holm's method for all cells of the study."""


def prompt_means(values: Values) -> Array:
    """Return the mean of each prompt that has values, in order."""
    return np.array([math.fsum(one) / len(one) for one in values.values() if len(one)], dtype=np.float64)


def estimate_mean(values: Values, resamples: int = RESAMPLES, seed: int = 0) -> MeanEstimate | None:
    """Return the mean over prompts and its interval; None without values. Equal arguments give equal intervals."""
    held = {prompt: list(one) for prompt, one in values.items() if len(one)}
    if not held:
        return None
    means = prompt_means(held)
    count, texts = len(means), sum(map(len, held.values()))
    mean = math.fsum(means) / count
    deviation = float(np.std(means, ddof=1)) if count > 1 else None
    if count < MIN_PROMPTS:
        return MeanEstimate(mean, None, None, count, texts, deviation)
    drawn = cluster_bootstrap(list(held.values()), resamples, seed)
    low, high = bca_limits(drawn, mean, leave_one_out(means))
    return MeanEstimate(mean, low, high, count, texts, deviation)


def cluster_bootstrap(clusters: Sequence[Sequence[float]], resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """Return means [resamples] of data sets in which clusters are drawn with replacement, then values inside each."""
    generator = np.random.default_rng(seed)
    sizes = np.array([len(one) for one in clusters])
    padded = np.zeros((len(clusters), int(sizes.max())))
    for row, one in zip(padded, clusters, strict=True):
        row[: len(one)] = one
    found = np.empty(resamples)
    step = max(1, _MAX_CELLS // padded.size)
    for begin in range(0, resamples, step):
        count = min(step, resamples - begin)
        rows = generator.integers(len(clusters), size=(count, len(clusters)))
        if padded.shape[1] == 1:
            found[begin : begin + count] = padded[rows, 0].mean(axis=1)
            continue
        drawn_sizes = sizes[rows][:, :, None]
        places = (generator.random((count, len(clusters), padded.shape[1])) * drawn_sizes).astype(np.int64)
        is_used = np.arange(padded.shape[1]) < drawn_sizes
        values = np.where(is_used, padded[rows[:, :, None], places], 0.0)
        found[begin : begin + count] = (values.sum(axis=2) / drawn_sizes[:, :, 0]).mean(axis=1)
    return found


def leave_one_out(means: Array) -> Array:
    """Return the means without each of the values."""
    left_out: Array = (means.sum() - means) / (len(means) - 1)
    return left_out


def bca_limits(drawn: Array, observed: float, without_one: Array, level: float = LEVEL) -> tuple[float, float]:
    """Return the bias-corrected and accelerated limits of bootstrap values `drawn`. `without_one` are the values of the
    statistic without each unit.
    """
    below = (np.count_nonzero(drawn < observed) + np.count_nonzero(drawn == observed) / 2) / len(drawn)
    spread = without_one.mean() - without_one
    scale = float((spread**2).sum()) ** 1.5
    acceleration = float((spread**3).sum()) / (6 * scale) if scale > 1e-300 else 0.0
    bias = _NORMAL.inv_cdf(min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn)))
    limits = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + _NORMAL.inv_cdf(tail)
        corrected = _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))
        limits.append(float(np.quantile(drawn, corrected)))
    return limits[0], limits[1]


def paired_differences(
    values: Mapping[Hashable, Mapping[Hashable, float]], baseline: Mapping[Hashable, Mapping[Hashable, float]]
) -> dict[Hashable, list[float]]:
    """Return the differences to the baseline by prompt. Both are values by prompt and seed.

    Texts are paired by seed. The one text of a cell without randomness is paired with each seed of the other cell. If a
    prompt has no common seed, its means are compared.
    """
    found: dict[Hashable, list[float]] = {}
    for prompt, own in values.items():
        theirs = baseline.get(prompt)
        if not own or not theirs:
            continue
        common = [seed for seed in own if seed in theirs]
        if len(own) == 1 or len(theirs) == 1:
            first = next(iter(own.values())) if len(own) == 1 else None
            other = next(iter(theirs.values())) if len(theirs) == 1 else None
            if first is not None and other is not None:
                found[prompt] = [first - other]
            elif first is not None:
                found[prompt] = [first - value for value in theirs.values()]
            else:
                assert other is not None
                found[prompt] = [value - other for value in own.values()]
        elif common:
            found[prompt] = [own[seed] - theirs[seed] for seed in common]
        else:
            found[prompt] = [math.fsum(own.values()) / len(own) - math.fsum(theirs.values()) / len(theirs)]
    return found


def difference(
    values: Mapping[Hashable, Mapping[Hashable, float]],
    baseline: Mapping[Hashable, Mapping[Hashable, float]],
    seed: int = 0,
) -> Difference | None:
    """Return the paired difference to the baseline; None without common prompts."""
    pairs = paired_differences(values, baseline)
    found = estimate_mean(pairs, seed=seed)
    if found is None:
        return None
    return Difference(found, sign_flip_p(prompt_means(pairs), seed) if found.prompts >= MIN_PROMPTS else None)


def sign_flip_p(differences: Array, seed: int = 0) -> float:
    """Return the two-sided p-value of the mean under random signs of the prompts' differences: exact for up to 14
    differences that are not 0, which have no sign; otherwise estimated from 100,000 draws, never 0.
    """
    held = np.asarray(differences, dtype=np.float64)
    held = held[held != 0]
    if not len(held):
        return 1.0
    observed = abs(held.sum()) * (1 - 1e-12)
    if len(held) <= _EXACT_FLIPS:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(held))[:, None] >> np.arange(len(held))) & 1)
        return float(np.mean(np.abs(signs @ held) >= observed))
    generator, hits, draws = np.random.default_rng(seed), 0, 100_000
    step = max(1, _MAX_CELLS // len(held))
    for begin in range(0, draws, step):
        signs = 1.0 - 2.0 * generator.integers(2, size=(min(step, draws - begin), len(held)))
        hits += int(np.count_nonzero(np.abs(signs @ held) >= observed))
    return (hits + 1) / (draws + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values adjusted by Holm (1979); None stays None and is not counted."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        found[place] = largest
    return found


def prompts_for_half_width(deviation: float, half_width: float, level: float = LEVEL) -> int:
    """Return how many prompts make the interval of a mean as narrow as ± `half_width`, by the normal approximation;
    at least `MIN_PROMPTS`. `deviation` is that of the prompts' means.
    """
    z = _NORMAL.inv_cdf((1 + level) / 2)
    return max(MIN_PROMPTS, math.ceil((z * deviation / half_width) ** 2 - 1e-9))


def pass_at_k(count: int, correct: int, k: int) -> float:
    """Return the probability that one of `k` different texts of `count` is right, `correct` being right (Chen et al.
    2021): 1 − C(n−c, k) / C(n, k). `k` is at most `count`.
    """
    return 1.0 - math.comb(count - correct, k) / math.comb(count, k)


def best_of_k(scores: Sequence[float], values: Sequence[float], k: int) -> float:
    """Return the expected value of the text with the best score among `k` different ones of all; texts with equal
    scores are chosen equally often.
    """
    order = sorted(range(len(scores)), key=lambda place: scores[place])
    whole, total, begin = math.comb(len(order), k), 0.0, 0
    while begin < len(order):
        end = begin
        while end < len(order) and scores[order[end]] == scores[order[begin]]:
            end += 1
        chosen = (math.comb(end, k) - math.comb(begin, k)) / whole
        total += chosen * math.fsum(values[place] for place in order[begin:end]) / (end - begin)
        begin = end
    return total


def curve(
    prompts: Mapping[Hashable, Sequence[float]], value_at: Callable[[Hashable, int], float], seed: int = 0
) -> list[tuple[int, MeanEstimate]]:
    """Return (k, mean over prompts) for k = 1 up to the number of texts that every prompt has. The interval resamples
    prompts.
    """
    if not prompts:
        return []
    largest = min(len(one) for one in prompts.values())
    found = []
    for k in range(1, largest + 1):
        mean = estimate_mean({prompt: [value_at(prompt, k)] for prompt in prompts}, seed=seed)
        assert mean is not None
        found.append((k, mean))
    return found


@dataclass(frozen=True, slots=True)
class Vote:
    """The majority of a prompt's extracted answers (self-consistency; Wang et al. 2022)."""

    answer: str | None
    """The most frequent answer, the first one of a tie; None if most texts have no answer that can be extracted."""
    share: float
    """Fraction of the texts that give it."""
    confidence: float
    """Probability that the leader, not the second answer, is the most likely one, under a uniform prior (Aggarwal et
    al. 2023).
    """
    correct: float | None
    """1 if it is right, 0 if not, a fraction in a tie; None without a right answer."""


def majority(answers: Sequence[str | None], right: Sequence[str] | None = None) -> Vote:
    """Return the majority of answers, of which there is at least one; None, no answer, is a class of its own."""
    counts = Counter(answers).most_common()
    leader, first = counts[0]
    second = counts[1][1] if len(counts) > 1 else 0
    tied = [answer for answer, count in counts if count == first]
    correct = None if right is None else sum(answer in right for answer in tied if answer is not None) / len(tied)
    return Vote(leader, first / len(answers), leader_confidence(first, second), correct)


def leader_confidence(first: int, second: int) -> float:
    """Return P(θ > 1/2) for θ ~ Beta(first + 1, second + 1): whether the leader of two answers is truly the more
    frequent one.
    """
    trials = first + second + 1
    ways: int = sum(math.comb(trials, wins) for wins in range(first + 1))
    return ways / 2.0**trials


def vote_accuracy(
    answers: Mapping[Hashable, Sequence[str | None]], right: Mapping[Hashable, Sequence[str]],
    resamples: int = RESAMPLES, seed: int = 0,
) -> MeanEstimate | None:  # fmt: skip
    """Return the fraction of prompts whose majority is right. The interval (percentiles) resamples prompts, and the
    texts of each, whose majority is determined again.
    """
    held = {prompt: list(given) for prompt, given in answers.items() if given and prompt in right}
    if not held:
        return None
    observed = np.array([majority(given, right[prompt]).correct for prompt, given in held.items()], dtype=np.float64)
    count, texts = len(held), sum(map(len, held.values()))
    mean = float(observed.mean())
    deviation = float(np.std(observed, ddof=1)) if count > 1 else None
    if count < MIN_PROMPTS:
        return MeanEstimate(mean, None, None, count, texts, deviation)
    generator = np.random.default_rng(seed)
    outcomes = np.empty((count, resamples))
    for row, (prompt, given) in zip(outcomes, held.items(), strict=True):
        counts = Counter(given)
        is_right = np.array([answer is not None and answer in right[prompt] for answer in counts])
        shares = np.array(list(counts.values())) / len(given)
        votes = generator.multinomial(len(given), shares, size=resamples)
        leads = votes == votes.max(axis=1, keepdims=True)
        row[:] = (leads & is_right).sum(axis=1) / leads.sum(axis=1)
    drawn = np.empty(resamples)
    step = max(1, _MAX_CELLS // count)
    for begin in range(0, resamples, step):
        columns = np.arange(begin, min(begin + step, resamples))
        rows = generator.integers(count, size=(count, len(columns)))
        drawn[columns] = outcomes[rows, columns].mean(axis=0)
    low, high = (float(limit) for limit in np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)))
    return MeanEstimate(mean, min(low, mean), max(high, mean), count, texts, deviation)
