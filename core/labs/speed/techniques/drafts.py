"""Speculative decoding: tokens are drafted and verified together in one pass of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from decodescope.core.errors import StrategyError
from decodescope.core.labs.speed.events import Row, RowMeasurement
from decodescope.core.labs.speed.measured_model import MeasuredModel
from decodescope.core.strategies import registry
from decodescope.resources.language import tr

PLAIN = "plain"
WITH_MODEL = ("assisted", "token_tree")
ROWS = (PLAIN, "assisted", "token_tree", "prompt_lookup", "early_exit")


def measure(subject: MeasuredModel, row: Row, _done: Mapping[str, RowMeasurement]) -> RowMeasurement:
    """Measure the strategy that the row is named after. Raises DecodescopeError, MeasurementCancelled."""
    base, plain = subject.base, subject.baseline
    if row.name == PLAIN:
        return subject.to_measured(row, plain, base)
    request = subject.build_request(row.name)
    if row.name in WITH_MODEL:
        if subject.draft is None:
            raise no_draft_error(base.name)
        request = replace(request, drafters=(subject.draft,))
    if reason := registry[row.name].unsupported_reason(base, request):
        raise StrategyError(reason)
    timed, against = subject.time_against_baseline(request)
    found = subject.to_measured(row, timed, base, median(against))
    return replace(found, same=timed.last.sequences == plain.last.sequences, against=against)


def no_draft_error(name: str) -> StrategyError:
    """Return the error for a model without a draft model on this disk."""
    return StrategyError(tr("This disk has no smaller model with the tokenizer of {model}.").format(model=name))
