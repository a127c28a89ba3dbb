"""Outcome of the trial of a claim: verdict, interval, examples. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal, TypeAlias

from decodescope.core.claims.claim_measures import measure_of
from decodescope.core.common.claim import PURE_SAMPLING, Claim, ClaimMeasure, Fields
from decodescope.core.errors import StudyError
from decodescope.core.strategies import select
from decodescope.core.studies.statistics import LEVEL, MIN_PROMPTS, MeanEstimate, estimate_mean, paired_differences
from decodescope.resources.language import mark, tr, trn

Verdict = Literal["holds", "does_not_hold", "cannot_be_told"]
Reason = Literal["", "few_prompts", "no_room", "low_baseline", "wide", "small", "opposite", "different"]
"""Why: too few prompts in the time, a baseline that leaves no room for the difference, a baseline too low for a test,
an interval that contains the margin, a difference below the margin, one in the other direction, values that differ."""
CellValues: TypeAlias = Mapping[Hashable, Mapping[Hashable, float]]
"""Values of a measure by prompt and seed."""
VERDICTS: Mapping[Verdict, str] = {
    "holds": mark("Holds here"),
    "does_not_hold": mark("Does not hold here"),
    "cannot_be_told": mark("Cannot be told"),
}


@dataclass(frozen=True, slots=True)
class ClaimExample:
    """Both texts of a prompt and seed."""

    prompt: str
    seed: int
    baseline_text: str
    tested_text: str
    baseline_value: float
    tested_value: float


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """The result of a trial."""

    claim: str
    """Name of the claim."""
    model: str
    verdict: Verdict
    reason: Reason
    baseline_mean: float | None
    tested_mean: float | None
    difference: float | None
    """Mean over prompts of the paired differences, tested − baseline; None without a finished prompt."""
    low: float | None
    """Lower limit of the 95 % interval; None with fewer than eight prompts."""
    high: float | None
    prompts: int
    texts: int
    """Number of pairs."""
    seconds: float
    max_new_tokens: int
    """Length limit; smaller than the claim's own on a slow model."""
    margin: float
    planned_prompts: int = 0
    is_stopped: bool = False
    examples: tuple[ClaimExample, ...] = ()
    weights_hash: str = ""
    """Digest of the model's weights."""
    draft: str = ""
    """Name of the draft model."""
    date: str = ""
    """Day of the trial, ISO 8601."""

    def to_json(self) -> Fields:
        """Return the outcome as plain data."""
        return asdict(self)


def outcome_from_json(data: Fields) -> ClaimOutcome:
    """Return the outcome of plain data. Raises StudyError if it is not one."""
    try:
        known = {one.name for one in fields(ClaimOutcome)}
        given = {name: value for name, value in data.items() if name in known}
        given["examples"] = tuple(ClaimExample(**one) for one in data.get("examples", ()))
        outcome = ClaimOutcome(**given)
        numbers = (outcome.difference, outcome.low, outcome.high, outcome.seconds, outcome.margin)
        is_valid = outcome.verdict in VERDICTS and all(one is None or math.isfinite(one) for one in numbers)
    except (TypeError, ValueError, AttributeError):
        is_valid = False
    if not is_valid:
        raise StudyError(tr("The stored result of a claim cannot be read."), tr("Try the claim again."))
    return outcome


def compare(baseline: CellValues, tested: CellValues, seed: int = 0) -> MeanEstimate | None:
    """Return the mean paired difference, tested − baseline, with its interval: a cluster bootstrap over prompts, then
    seeds. None without a common prompt.
    """
    return estimate_mean(paired_differences(tested, baseline), seed=seed)


def verdict_of(
    claim: Claim, measure: ClaimMeasure, baseline_mean: float | None, found: MeanEstimate | None
) -> tuple[Verdict, Reason]:
    """Return the verdict, and why.

    The claim holds if the whole 95 % interval of the difference is beyond the margin in the claimed direction (for
    “equal”: within the margin on both sides). It does not hold if the whole interval is on the other side of the
    margin. In all other cases it is undecided. A wrong “holds” is therefore as rare as the interval's one-sided error
    even where the true difference is the margin, and rarer where there is none.
    """
    if found is None or found.low is None or found.high is None or baseline_mean is None:
        return "cannot_be_told", "few_prompts"
    if claim.baseline_at_least is not None and baseline_mean < claim.baseline_at_least:
        return "cannot_be_told", "low_baseline"
    if _leaves_no_room(claim, measure, baseline_mean):
        return "cannot_be_told", "no_room"
    if claim.expects == "equal":
        if -claim.margin < found.low and found.high < claim.margin:
            return "holds", ""
        is_apart = found.low > claim.margin or found.high < -claim.margin
        return ("does_not_hold", "different") if is_apart else ("cannot_be_told", "wide")
    sign = 1.0 if claim.expects == "higher" else -1.0
    low, high = sorted((sign * found.low, sign * found.high))
    if low >= claim.margin:
        return "holds", ""
    if high < claim.margin:
        return "does_not_hold", "opposite" if high < 0 else "small"
    return "cannot_be_told", "wide"


def _leaves_no_room(claim: Claim, measure: ClaimMeasure, mean: float) -> bool:
    """Return whether no difference of the margin is possible, because the baseline is at the measure's limit."""
    if claim.expects == "lower":
        return measure.minimum is not None and mean - measure.minimum < claim.margin
    return claim.expects == "higher" and measure.maximum is not None and measure.maximum - mean < claim.margin


def means(values: CellValues) -> float | None:
    """Return the mean over prompts of the prompts' means; None without values."""
    own = [math.fsum(one.values()) / len(one) for one in values.values() if one]
    return math.fsum(own) / len(own) if own else None


def verdict_title(verdict: Verdict) -> str:
    """Return a verdict in words, in the current language."""
    return tr(VERDICTS[verdict])


def number(value: float | None, digits: int) -> str:
    """Return a value with a true minus sign, but zero without one; “–” for None."""
    return "–" if value is None else f"{value:z,.{digits}f}".replace("-", "−")


def interval_text(outcome: ClaimOutcome, digits: int) -> str:
    """Return the difference with its interval: `−0.21 (−0.30 to −0.12)`."""
    mean = number(outcome.difference, digits)
    if outcome.low is None:
        return mean
    return tr("{mean} ({low} to {high})").format(
        mean=mean, low=number(outcome.low, digits), high=number(outcome.high, digits)
    )


def verdict_reason(outcome: ClaimOutcome, claim: Claim, measure: ClaimMeasure) -> str:
    """Return why the verdict is what it is, in one or two sentences of the current language."""
    digits = measure.digits
    margin = number(outcome.margin, digits)
    if outcome.reason == "few_prompts":
        return trn(
            "{count} prompt was finished; an interval needs {least}.",
            "{count} prompts were finished; an interval needs {least}.",
            outcome.prompts,
        ).format(count=outcome.prompts, least=MIN_PROMPTS)
    if outcome.reason == "no_room":
        return tr(
            "With “{baseline}” the value is {value}, so it cannot change by {margin} in the claimed direction."
        ).format(baseline=tr(claim.baseline.title), value=number(outcome.baseline_mean, digits), margin=margin)
    if outcome.reason == "low_baseline":
        return tr("With “{baseline}” the value is {value}; the claim can be tested from {least}.").format(
            baseline=tr(claim.baseline.title), value=number(outcome.baseline_mean, digits),
            least=number(claim.baseline_at_least, digits),
        )  # fmt: skip
    if outcome.reason == "wide":
        margin = {"higher": "", "lower": "−", "equal": "± "}[claim.expects] + margin
    sentence = tr(_REASONS[outcome.reason if outcome.reason else f"holds_{claim.expects}"]).format(margin=margin)
    if outcome.low is not None and outcome.low == outcome.high:
        sentence += " " + tr(
            "All {count} prompts gave the same difference; up to {share:.0f} % of such prompts may still differ."
        ).format(count=outcome.prompts, share=100 * unseen_share(outcome.prompts))
    return sentence


_REASONS: Mapping[str, str] = {
    "wide": mark("The interval contains {margin}, the smallest difference that matters: more prompts would be needed."),
    "small": mark(
        "A difference of {margin} in the claimed direction, the smallest one that matters, is outside the interval."
    ),
    "opposite": mark("The difference has the opposite direction."),
    "different": mark("The values differ by more than {margin}."),
    "holds_higher": mark("The whole interval is above {margin}, the smallest difference that matters."),
    "holds_lower": mark("The whole interval is below −{margin}, the smallest difference that matters."),
    "holds_equal": mark("The whole interval is within ± {margin}, the smallest difference that matters."),
}


def unseen_share(count: int) -> float:
    """Return the largest share of prompts that may behave otherwise although none of `count` did, at 95 % (exact
    binomial limit; about 3 ÷ count).
    """
    return float(1.0 - (1.0 - LEVEL) ** (1.0 / count)) if count else 1.0


def outcome_text(outcome: ClaimOutcome, claim: Claim, measure: ClaimMeasure) -> str:
    """Return the outcome as a few lines of text, in the current language."""
    lines = [
        f"{verdict_title(outcome.verdict)} · {outcome.model}",
        verdict_reason(outcome, claim, measure),
        values_text(outcome, claim, measure),
        amount_text(outcome),
    ]  # fmt: skip
    return "\n".join(lines)


def values_text(outcome: ClaimOutcome, claim: Claim, measure: ClaimMeasure) -> str:
    """Return the means of both cells, and the difference with its interval."""
    digits = measure.digits
    return tr("{measure}: {baseline} {first}, {tested} {second}; difference {difference}").format(
        measure=tr(measure.title), baseline=tr(claim.baseline.title), first=number(outcome.baseline_mean, digits),
        tested=tr(claim.tested.title), second=number(outcome.tested_mean, digits),
        difference=interval_text(outcome, digits),
    )  # fmt: skip


def amount_text(outcome: ClaimOutcome) -> str:
    """Return how much the verdict rests on."""
    text = trn(
        "{prompts} prompt, {texts} × 2 texts of up to {tokens} tokens, {seconds:.0f} s",
        "{prompts} prompts, {texts} × 2 texts of up to {tokens} tokens, {seconds:.0f} s",
        outcome.prompts,
    ).format(prompts=outcome.prompts, texts=outcome.texts, tokens=outcome.max_new_tokens, seconds=outcome.seconds)
    if outcome.draft:
        text += tr("; draft model {draft}").format(draft=outcome.draft)
    return text + (tr("; stopped") if outcome.is_stopped else "")


def example_request(claim: Claim, example: ClaimExample, is_tested: bool, max_new_tokens: int) -> Fields:
    """Return the run of an example: prompt, settings, strategy, cache, cache settings, seed, and whether it uses the
    draft model. For a measure that reads, it is the run that writes the text, with the cell's cache.
    """
    cell = claim.tested if is_tested else claim.baseline
    settings: dict[str, object] = {**cell.settings, "max_new_tokens": max_new_tokens}
    strategy = cell.strategy
    if measure_of(claim).reads:
        settings |= {**PURE_SAMPLING, "min_new_tokens": max_new_tokens}
        strategy = "sampling"
    return {
        "prompt": example.prompt, "strategy": strategy or select(None, settings, cell.uses_draft).name,
        "settings": settings, "cache": cell.cache, "cache_settings": dict(cell.cache_settings), "seed": example.seed,
        "uses_draft": cell.uses_draft,
    }  # fmt: skip


def select_examples(examples: Sequence[ClaimExample], count: int = 6) -> tuple[ClaimExample, ...]:
    """Return the first example of each prompt, at most `count`: chosen by order, not by their values."""
    found = list({example.prompt: example for example in reversed(examples)}.values())
    return tuple(reversed(found))[:count]
