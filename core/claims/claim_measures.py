"""The measures by which claims compare two cells, by name. Imports no torch."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

from decodescope.core.common.claim import Claim, ClaimMeasure, ClaimRun
from decodescope.core.errors import StudyError
from decodescope.core.measures import distinct
from decodescope.core.parameter import short_repr
from decodescope.core.studies.text_measures import extract_answer
from decodescope.resources.language import join_names, mark, tr

_NAT = math.log(2)
REPEATED_TOKENS = 4
"""Length of the passages that count as repeated."""


def _repetition(run: ClaimRun) -> float | None:
    share = distinct(run.texts[0]["ids"], REPEATED_TOKENS)
    return None if share is None else 1.0 - share


def _log_probability(run: ClaimRun) -> float | None:
    value = run.texts[0].get("log_probability")
    return None if value is None else float(value)


def _text_log_probability(run: ClaimRun) -> float | None:
    mean = _log_probability(run)
    return None if mean is None else mean * run.texts[0]["tokens"]


def _surprise_distance(run: ClaimRun) -> float | None:
    mean = _log_probability(run)
    return None if mean is None or run.target is None else abs(-mean / _NAT - run.target)


def _group_distinct(run: ClaimRun) -> float | None:
    """Return the share of distinct pairs of tokens in all texts of a run together."""
    pairs = [pair for text in run.texts for pair in zip(text["ids"], text["ids"][1:], strict=False)]
    return len(set(pairs)) / len(pairs) if pairs else None


def _same_text(run: ClaimRun) -> float | None:
    return 1.0 if run.baseline is None else float(list(run.texts[0]["ids"]) == list(run.baseline.texts[0]["ids"]))


def _cache_share(run: ClaimRun) -> float | None:
    own, other = run.metrics.get("cache_peak_bytes"), (run.baseline or run).metrics.get("cache_peak_bytes")
    return None if not own or not other else own / other


def _has_answer(text: str, answers: tuple[str, ...]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.IGNORECASE) for answer in answers)


def _right_answer(run: ClaimRun) -> float | None:
    return float(_has_answer(run.texts[0]["text"], tuple(run.answers))) if run.answers else None


def _majority_right(run: ClaimRun) -> float | None:
    """Return whether the most frequent first word of the texts is a right answer (self-consistency)."""
    if not run.answers:
        return None
    words = [extract_answer(text["text"], r"(?s)^\W*([\w-]+)") for text in run.texts]
    counts = Counter(word.casefold() for word in words if word)
    if not counts:
        return 0.0
    best = max(counts.values())
    leaders = [word for word, count in counts.items() if count == best]
    right = {answer.casefold() for answer in run.answers}
    return sum(word in right for word in leaders) / len(leaders)


def _metric(name: str) -> Callable[[ClaimRun], float | None]:
    def compute(run: ClaimRun) -> float | None:
        value = run.metrics.get(name)
        return None if value is None else float(value)

    return compute


_ALL = (
    ClaimMeasure(
        "repetition", mark("Repetition"),
        mark("Fraction of the passages of 4 tokens that occurred earlier in the text."),
        _repetition, 3, 0.0, 1.0,
    ),
    ClaimMeasure(
        "log_probability", mark("Log-probability per token"),
        mark("Mean natural log-probability per token under the model alone, before any setting."),
        _log_probability, 2, None, 0.0,
    ),
    ClaimMeasure(
        "text_log_probability", mark("Log-probability of the text"),
        mark("Sum of the natural log-probabilities of the text's tokens under the model alone."),
        _text_log_probability, 2, None, 0.0,
    ),
    ClaimMeasure("length", mark("Length"), mark("New tokens."), lambda run: float(run.texts[0]["tokens"]), 1, 0.0),
    ClaimMeasure(
        "distinct_2", mark("Distinct pairs"), mark("Distinct pairs of tokens ÷ pairs, in all texts of a run together."),
        _group_distinct, 3, 0.0, 1.0,
    ),
    ClaimMeasure(
        "tokens_per_pass", mark("Tokens per pass"), mark("Tokens of the text ÷ passes of the model."),
        _metric("tokens_per_target_pass"), 2, 0.0,
    ),
    ClaimMeasure(
        "same_text", mark("Same text"), mark("1 if the tokens are those of the baseline's text, otherwise 0."),
        _same_text, 3, 0.0, 1.0,
    ),
    ClaimMeasure(
        "cache_share", mark("Cache size"), mark("Largest size of the key–value cache ÷ that of the baseline."),
        _cache_share, 2, 0.0,
    ),
    ClaimMeasure(
        "surprise_distance", mark("Distance to the target surprise"),
        mark("Distance of the text's mean surprise, −log₂ p under the model alone, "
            "from the target, in bits per token."),
        _surprise_distance, 2, 0.0,
    ),
    ClaimMeasure(
        "right_answer", mark("Right answers"), mark("1 if the text contains a right answer, otherwise 0."),
        _right_answer, 2, 0.0, 1.0,
    ),
    ClaimMeasure(
        "majority_right", mark("Right majority"),
        mark("1 if the most frequent first word of the run's texts is a right answer, otherwise 0."),
        _majority_right, 2, 0.0, 1.0,
    ),
    ClaimMeasure(
        "read_log_probability", mark("Log-probability of a read text"),
        mark("Mean natural log-probability of the tokens of a long text that the model wrote, read token by token "
             "through the cache; the first tokens, up to the size of the window, are left out."),
        lambda run: run.reading, 2, None, 0.0, True,
    ),
)  # fmt: skip
MEASURES: Mapping[str, ClaimMeasure] = {one.name: one for one in _ALL}


def measure_of(claim: Claim) -> ClaimMeasure:
    """Return the measure of a claim. Raises StudyError for an unknown name."""
    if isinstance(claim.measure, ClaimMeasure):
        return claim.measure
    if claim.measure in MEASURES:
        return MEASURES[claim.measure]
    raise StudyError(
        tr("The claim {claim} has the measure {measure}, which does not exist.").format(
            claim=claim.name, measure=short_repr(claim.measure)
        ),
        tr("Available: {names}.").format(names=join_names(MEASURES)), key="measure",
    )  # fmt: skip
