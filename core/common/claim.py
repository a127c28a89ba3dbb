"""A claim of a paper about a strategy, processor or cache, with the comparison that tests it. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from decodescope.core.common.lightweight_dataclass import plain
from decodescope.resources.language import mark, tr

Expectation = Literal["higher", "lower", "equal"]
"""What the claim says of the measure: higher or lower than with the baseline by at least the margin, or equal within
the margin."""
Fields: TypeAlias = Mapping[str, Any]
"""Named values of a JSON object."""
PromptSet = Literal["stories", "repetitive", "facts"]
"""Which prompts are used: beginnings of stories, texts that repeat themselves, questions with a known answer."""


class ClaimRun(NamedTuple):
    """One run of a cell, as the measure of a claim receives it."""

    texts: Sequence[Fields]
    """The run's texts, best first: `text`, `ids` (tokens without special ones), `tokens`, `finish`, `log_probability`
    (mean natural log-probability per token under the unfiltered model), `entropy`."""
    metrics: Fields
    """Fields of `core.events.Metrics`."""
    answers: Sequence[str] = ()
    """Right answers, for prompts that have them."""
    target: float | None = None
    """`Claim.target`."""
    baseline: ClaimRun | None = None
    """The baseline's run with the same prompt and seed; None for the baseline's own run."""
    reading: float | None = None
    """Mean natural log-probability of a given text's tokens, read through the cell's cache; only for measures that
    read."""


@plain(frozen=True)
class ClaimMeasure:
    """A number by which the two cells of a claim are compared."""

    name: str
    title: str
    help: str
    """Its exact meaning, as a sentence."""
    compute: Callable[[ClaimRun], float | None]
    digits: int = 2
    minimum: float | None = None
    """Smallest possible value. A claim of lower values is not tested where the baseline is already this low."""
    maximum: float | None = None
    reads: bool = False
    """Whether a text that the model has written is read through the cell's cache instead of a run."""


@plain(frozen=True)
class ClaimCell:
    """One of the two settings that a claim compares."""

    title: str
    settings: Mapping[str, object] = field(default_factory=dict)
    strategy: str | None = None
    cache: str = "dynamic"
    cache_settings: Mapping[str, object] = field(default_factory=dict)
    uses_draft: bool = False
    """Whether a draft model is needed."""


@plain(frozen=True)
class Claim:
    """A published claim, and how it is tested: the tested cell against the baseline, prompt by prompt.

    The sentences are marked for translation. A strategy, processor or cache lists its claims in `claims`.
    """

    name: str
    """Unique, for the command line: lower-case words joined by hyphens."""
    title: str
    plain: str
    """The claim in words that need no knowledge of the field."""
    exact: str
    """The claim in exact terms, with what is compared."""
    source: str
    """Authors, year, title."""
    address: str
    """URL of the source, https."""
    baseline: ClaimCell
    tested: ClaimCell
    measure: str | ClaimMeasure
    """Name of a measure (`core.claims.claim_measures`), or one of a plug-in's own."""
    expects: Expectation
    margin: float
    """Smallest difference that matters in practice, in units of the measure; above 0."""
    max_new_tokens: int = 96
    seeds: int = 1
    """Runs per prompt and cell; cells without randomness run once."""
    prompts: PromptSet = "stories"
    target: float | None = None
    """A value that the measure needs, such as the surprise at which a text is held."""
    baseline_at_least: float | None = None
    """Smallest mean of the baseline with which the claim can be tested: a model that answers no question says nothing
    about answers."""


PURE_SAMPLING: Mapping[str, object] = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
"""Sampling from the model's own distribution, whatever the model's defaults are."""
GREEDY_CELL = ClaimCell(mark("Greedy"), {"do_sample": False}, "greedy")
SAMPLING_CELL = ClaimCell(mark("Sampling"), PURE_SAMPLING, "sampling")


def sampling_cell(title: str, **settings: object) -> ClaimCell:
    """Return sampling with settings in addition to temperature 1 without cuts."""
    return ClaimCell(title, {**PURE_SAMPLING, **settings}, "sampling")


def greedy_cell(title: str, **settings: object) -> ClaimCell:
    """Return greedy decoding with settings."""
    return ClaimCell(title, {"do_sample": False, **settings}, "greedy")


def claim_problem(claim: object) -> str:
    """Return why a value cannot be a claim of an entry; empty if it can."""
    if not isinstance(claim, Claim):
        return tr("{name} is not an instance of {wanted}").format(name=type(claim).__name__, wanted=Claim.__name__)
    texts: tuple[object, ...] = (claim.name, claim.title, claim.plain, claim.exact, claim.source, claim.address)
    if not all(isinstance(one, str) and one for one in texts):
        return tr("its claim lacks a name, a title, a statement, a source or an address")
    if not all(isinstance(one, ClaimCell) for one in (claim.baseline, claim.tested)):
        return tr("the two settings of its claim {claim} are not of the class ClaimCell").format(claim=claim.name)
    if claim.expects not in get_args(Expectation) or claim.prompts not in get_args(PromptSet):
        return tr("its claim {claim} expects “{expects}” with prompts “{prompts}”, which do not exist").format(
            claim=claim.name, expects=claim.expects, prompts=claim.prompts
        )
    numbers: tuple[object, ...] = (claim.margin, claim.max_new_tokens, claim.seeds)
    if not all(isinstance(one, int | float) and one > 0 for one in numbers):
        return tr("the margin, the length or the number of seeds of its claim {claim} is not a number above 0").format(
            claim=claim.name
        )
    return ""
