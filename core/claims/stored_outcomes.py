"""Outcomes of the claims on the bundled storyteller, measured once and stored. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from decodescope import resources
from decodescope.core.claims.claim_measures import measure_of
from decodescope.core.claims.claim_outcome import ClaimOutcome, interval_text, outcome_from_json, verdict_title
from decodescope.core.common.claim import Claim
from decodescope.resources.language import tr

FILE = "claims/storyteller.jsonl"
"""A line for each claim, as `decodescope claim all --json` writes it. Claims that need what the model lacks have none.
"""


@cache
def bundled_outcomes() -> Mapping[str, ClaimOutcome]:
    """Return the stored outcomes on the bundled model by claim."""
    lines = resources.path(FILE).read_text(encoding="utf-8").splitlines()
    found = (outcome_from_json(json.loads(line)) for line in lines if line.strip())
    return MappingProxyType({one.claim: one for one in found})


def bundled_outcome(name: str) -> ClaimOutcome | None:
    """Return the stored outcome of a claim on the bundled model; None if it was not tested."""
    return bundled_outcomes().get(name)


def bundled_text(outcome: ClaimOutcome, claim: Claim) -> str:
    """Return a stored outcome as a sentence."""
    sentence = tr("On the bundled {model}, measured on {date}: {verdict}. Difference {difference}, {prompts} prompts.")
    return sentence.format(
        model=outcome.model, date=outcome.date, verdict=verdict_title(outcome.verdict),
        difference=interval_text(outcome, measure_of(claim).digits), prompts=outcome.prompts,
    )  # fmt: skip
