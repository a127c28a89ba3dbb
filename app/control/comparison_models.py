"""Which models can read one text beside another, and why not. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.control.model_list import ENGINE, ModelList
from core import ModelEntry, catalog
from resources.language import tr


class ComparisonModelOption(NamedTuple):
    """A model that could read along; `reason`: why it cannot, judged by its files alone."""

    name: str
    title: str
    reason: str


def comparison_options(models: ModelList, name: str) -> Sequence[ComparisonModelOption]:
    """Every other model that is here, those that can first."""
    first = models.get(name)
    others = [entry for entry in models.entries if entry.name != name and entry.source != ENGINE]
    options = [
        ComparisonModelOption(entry.name, entry.title, _unsupported_reason(entry, first))
        for entry in others
        if first is not None
    ]
    return sorted(options, key=lambda second: bool(second.reason))


def _unsupported_reason(second: ModelEntry, first: ModelEntry) -> str:
    """The core looks closer when the text is read."""
    if second.problem:
        return second.problem
    if second.encoder_decoder != first.encoder_decoder:
        return tr("One of the two is an encoder–decoder.")
    if not catalog.same_tokenizer(second, first):
        return tr("It has another tokenizer: their tokens are not the same pieces of text.")
    return ""
