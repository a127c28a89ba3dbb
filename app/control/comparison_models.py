"""Which models can read one text beside another, and why not. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.control.model_list import ENGINE, ModelList
from core import ModelEntry, catalog
from resources.language import tr


class Second(NamedTuple):
    """A model that could read along; `reason`: why it cannot, judged by its files alone."""

    name: str
    title: str
    reason: str


def seconds_for(models: ModelList, name: str) -> Sequence[Second]:
    """Every other model that is here, those that can first."""
    first = models.get(name)
    others = [entry for entry in models.entries if entry.name != name and entry.source != ENGINE]
    found = [Second(entry.name, entry.title, _why_not(entry, first)) for entry in others if first is not None]
    return sorted(found, key=lambda second: bool(second.reason))


def _why_not(second: ModelEntry, first: ModelEntry) -> str:
    """The core looks closer when the text is read."""
    if second.problem:
        return second.problem
    if second.encoder_decoder != first.encoder_decoder:
        return tr("One of the two is an encoder–decoder.")
    if not catalog.same_tokenizer(second, first):
        return tr("It has another tokenizer: their tokens are not the same pieces of text.")
    return ""
