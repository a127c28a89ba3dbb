"""Outcomes of claims as a table, and as one HTML page. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decodescope.core.claims.claim_measures import measure_of
from decodescope.core.claims.claim_outcome import (
    ClaimExample,
    ClaimOutcome,
    amount_text,
    interval_text,
    number,
    verdict_reason,
    verdict_title,
)
from decodescope.core.claims.claim_registry import ClaimEntry
from decodescope.core.common.csv_text import CsvRows
from decodescope.core.common.text import cut_short
from decodescope.core.studies.study_report import (
    escaped,
    fact_list,
    report_page,
    report_section,
    sortable_table,
    text_group,
)
from decodescope.resources.language import tr, trn

TestedClaim = tuple[ClaimEntry, ClaimOutcome]
"""A claim with the outcome of its test."""
_FIELDS = (
    "verdict", "baseline_mean", "tested_mean", "difference", "low", "high", "margin", "prompts", "texts",
    "max_new_tokens", "seconds", "is_stopped", "draft", "weights_hash", "date",
)  # fmt: skip
"""Fields of an outcome that are columns of the table, with their names."""
MAX_TEXT = 1200
"""Letters of a text on the page."""


def outcome_table(tested: Sequence[TestedClaim]) -> CsvRows:
    """Return a row for each outcome, after a row of names."""
    rows = [
        [entry.name, entry.entry, outcome.model, measure_of(entry.claim).name, entry.claim.expects,
         *(getattr(outcome, name) for name in _FIELDS), entry.claim.source]
        for entry, outcome in tested
    ]  # fmt: skip
    return [["claim", "about", "model", "measure", "expects", *_FIELDS, "source"], *rows]


def outcome_report(tested: Sequence[TestedClaim]) -> str:
    """Return one page with the outcomes as text in UTF-8. It needs no network and no other file."""
    models = ", ".join(dict.fromkeys(outcome.model for _, outcome in tested))
    count = trn("{count} claim, tested on {models}", "{count} claims, tested on {models}", len(tested))
    title = tr(tested[0][0].claim.title) if len(tested) == 1 else tr("Claim cards")
    return report_page(title, count.format(count=len(tested), models=models), "".join(_sections(tested)))


def _sections(tested: Sequence[TestedClaim]) -> Iterator[str]:
    if len(tested) > 1:
        yield report_section(tr("Results"), _overview(tested))
    for entry, outcome in tested:
        yield report_section(tr(entry.claim.title) if len(tested) > 1 else tr("Result"), _card(entry, outcome))


def _overview(tested: Sequence[TestedClaim]) -> str:
    rows = []
    for entry, outcome in tested:
        verdict, difference = verdict_title(outcome.verdict), interval_text(outcome, measure_of(entry.claim).digits)
        cells = [(tr(entry.claim.title), tr(entry.claim.title)), (verdict, verdict), (difference, outcome.difference)]
        rows.append(("", [(escaped(content), value) for content, value in cells]))
    return sortable_table([tr("claim"), tr("verdict"), tr("difference")], rows)


def _card(entry: ClaimEntry, outcome: ClaimOutcome) -> str:
    claim, measure = entry.claim, measure_of(entry.claim)
    facts = {
        tr("Verdict"): verdict_title(outcome.verdict),
        tr("Reason"): verdict_reason(outcome, claim, measure),
        tr("Measure"): tr("{measure}: {help}").format(measure=tr(measure.title), help=tr(measure.help)),
        tr(claim.baseline.title): number(outcome.baseline_mean, measure.digits),
        tr(claim.tested.title): number(outcome.tested_mean, measure.digits),
        tr("Difference"): interval_text(outcome, measure.digits),
        tr("Smallest difference that matters"): number(outcome.margin, measure.digits),
        tr("Test"): amount_text(outcome),
        tr("Model"): tr("{model}, {date}").format(model=outcome.model, date=outcome.date),
        tr("Source"): f"{claim.source}, {claim.address}",
    }
    statement = f"<p>{escaped(tr(claim.plain))}</p><p>{escaped(tr(claim.exact))}</p>"
    return statement + fact_list(facts) + "".join(_example(entry, one) for one in outcome.examples)


def _example(entry: ClaimEntry, example: ClaimExample) -> str:
    digits, columns = measure_of(entry.claim).digits, ""
    for cell, text, value in (
        (entry.claim.baseline, example.baseline_text, example.baseline_value),
        (entry.claim.tested, example.tested_text, example.tested_value),
    ):
        heading = f"<h3>{escaped(tr(cell.title))} · {escaped(number(value, digits))}</h3>"
        columns += f"<div>{heading}<p>{escaped(cut_short(text, MAX_TEXT))}</p></div>"
    about = tr("{prompt} · seed {seed}").format(prompt=cut_short(example.prompt, 160), seed=example.seed)
    return text_group(about, columns)
