"""Phrases that people typed where the core wants token ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.state.worker_messages import RunRequest
from core.errors import ParameterError
from resources.language import tr

if TYPE_CHECKING:
    import core

PHRASES = {"bad_words_ids"}
"""Settings that take several tokens in a row."""


def with_phrase_ids(model: core.LoadedModel, request: RunRequest) -> RunRequest:
    """The request with ids for phrases: the same object where it has none. Raises ParameterError."""
    ids = {name: _phrase_ids(name, value, model) for name, value in request.config.items() if value is not None}
    return request if ids == request.config else replace(request, config=ids)


def _phrase_ids(name: str, value: Any, model: core.LoadedModel) -> Any:
    """Phrases that people typed where the core wants token ids, as ids. Raises ParameterError."""
    typed = isinstance(value, list | tuple) and bool(value) and all(isinstance(item, str) for item in value)
    if name == "stop_strings" or not typed:
        return value
    if model.tokenizer is None:
        raise ParameterError(
            tr("{name} holds text, and {model} has no tokenizer.").format(name=name, model=model.name),
            tr("Write token ids."),
            name,
        )
    if name in PHRASES:  # a word inside a sentence begins with its space, at the start of a line without
        return _unique(ids for text in value for ids in model.spellings(text))
    pieces = [model.tokenizer.encode(text, add_special_tokens=False) for text in value]
    if long := [text for text, ids in zip(value, pieces, strict=True) if len(ids) != 1]:
        raise ParameterError(
            tr("{name} takes single tokens; “{text}” is {count} of them.").format(
                name=name, text=long[0], count=len(pieces[value.index(long[0])])
            ),
            tr("Write token ids, or text that is one token."), name,
        )  # fmt: skip
    return [ids[0] for ids in pieces]


def _unique(lists: Iterable[list[int]]) -> list[list[int]]:
    return [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in lists) if ids]
