"""Claims of papers, tested on a model by a short study. Importing this package imports no torch."""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.claims.claim_measures import MEASURES, measure_of
    from decodescope.core.claims.claim_outcome import (
        VERDICTS,
        ClaimExample,
        ClaimOutcome,
        amount_text,
        example_request,
        interval_text,
        number,
        outcome_from_json,
        outcome_text,
        values_text,
        verdict_of,
        verdict_reason,
        verdict_title,
    )
    from decodescope.core.claims.claim_registry import ClaimEntry, all_claims, claims_about, claims_of, named_claim
    from decodescope.core.claims.claim_report import TestedClaim, outcome_report, outcome_table
    from decodescope.core.claims.claim_trial import ClaimProgress, find_draft, try_claim
    from decodescope.core.claims.prompt_sets import ClaimPrompt, claim_prompts
    from decodescope.core.claims.stored_outcomes import bundled_outcome, bundled_outcomes, bundled_text
    from decodescope.core.common.claim import Claim, ClaimCell, ClaimMeasure, ClaimRun

__all__ = sorted(_PUBLIC_NAMES)
