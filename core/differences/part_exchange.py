"""Repeat a run with single parts of another one: the part that alone gives the other run's token is the cause."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from decodescope.core.differences.compared_run import ComparedRun
from decodescope.core.differences.differing_parts import Subject
from decodescope.core.errors import DecodescopeError
from decodescope.core.events import Finished, TokenChosen
from decodescope.core.explain.call_facts import missing_facts
from decodescope.core.generation.running import stream
from decodescope.core.models.loaded_model import LoadedModel

if TYPE_CHECKING:
    from decodescope.core.request import Request

_WITH_MODEL: tuple[Subject, ...] = ("model", "precision")
_MAX_SAMPLES = 4096
"""Numbers compared of each tensor."""


def can_repeat(a: ComparedRun, b: ComparedRun) -> bool:
    """Return whether both models are on this computer, and both runs can be repeated."""
    return all(isinstance(run.model, LoadedModel) and _is_complete(run.request_to_repeat()) for run in (a, b))


def _is_complete(request: Request | None) -> bool:
    return request is not None and not missing_facts(tuple(request.call_facts))


class PartExchange:
    """Repeats A up to the first differing token, with parts of B."""

    def __init__(self, a: ComparedRun, b: ComparedRun, position: int, cancel: threading.Event) -> None:
        self._a, self._b, self._count, self._cancel = a, b, position + 1, cancel
        requests = a.request_to_repeat(), b.request_to_repeat()
        assert requests[0] is not None
        assert requests[1] is not None
        self._requests = requests[0], requests[1]

    def repeats(self) -> bool:
        """Return whether A gives its own token again."""
        return self._written(self._model_of(self._a), self._requests[0]) == self._a.ids[: self._count]

    def can_exchange(self, subject: Subject) -> bool:
        """Return whether a part can be exchanged alone; program and device cannot."""
        return subject != "program" or self._a.started.strategy != self._b.started.strategy

    def gives_other_token(self, subject: Subject) -> bool:
        """Return whether A with this part of B gives B's text up to and including the first differing token."""
        ours, theirs = self._requests
        model, request = self._model_of(self._a), ours
        match subject:
            case "prompt":
                request = replace(
                    ours, prompt=[token.id for token in self._b.started.prompt],
                    beginning=tuple(token.id for token in self._b.started.beginning), media=theirs.media,
                )  # fmt: skip
            case "model" | "precision":
                model, request = self._model_of(self._b), replace(ours, adapters=theirs.adapters)
            case "cache":
                request = replace(ours, cache=theirs.cache, cache_options=theirs.cache_options)
            case "settings":
                request = replace(
                    ours, config=theirs.config, options=theirs.options, strategy=theirs.strategy,
                    negative_prompt=theirs.negative_prompt, drafters=theirs.drafters,
                )  # fmt: skip
            case "program":
                request = replace(ours, strategy=theirs.strategy, drafters=theirs.drafters)
            case "random_numbers":
                request = replace(ours, seed=theirs.seed, generator_state=theirs.generator_state)
        return self._written(model, request) == self._b.ids[: self._count]

    def _model_of(self, run: ComparedRun) -> LoadedModel:
        assert isinstance(run.model, LoadedModel)
        return run.model

    def _written(self, model: LoadedModel, request: Request) -> tuple[int, ...]:
        """Return the first tokens of a run; fewer if it ends or cannot run."""
        try:
            return tuple(self._tokens(model, request))[: self._count]
        except DecodescopeError:
            return ()

    def _tokens(self, model: LoadedModel, request: Request) -> Iterator[int]:
        done = threading.Event()
        count = 0
        events = stream(model, request, done)
        ids: tuple[int, ...] = ()
        for event in events:
            if isinstance(event, TokenChosen) and event.sequence == 0:
                count += 1
                ids = (*ids, event.id)
            elif isinstance(event, Finished) and event.sequences and not count:
                ids = event.sequences[0]
            if count >= self._count or self._cancel.is_set():
                done.set()
        return iter(ids)

    def relation_of_weights(self) -> str | None:
        """Return whether the weights of both models are the `same`, equal up to the rounding of their number formats
        (`rounded`), or `other`; None if their tensors cannot be compared.
        """
        return relation_of_weights(self._model_of(self._a), self._model_of(self._b))


@torch.inference_mode()
def relation_of_weights(first: LoadedModel, second: LoadedModel) -> str | None:
    """Return the relation of the weights of two models, as `PartExchange.relation_of_weights`."""
    if first is second or first.model is second.model:
        return "same"
    ours, theirs = (dict(model.model.named_parameters()) for model in (first, second))
    if ours.keys() != theirs.keys():
        return None
    relation = "same"
    for name, weight in ours.items():
        other = theirs[name]
        if weight.shape != other.shape or not (weight.is_floating_point() and other.is_floating_point()):
            return None
        step = max(1, weight.numel() // _MAX_SAMPLES)
        one, two = (tensor.detach().reshape(-1)[::step].double().cpu() for tensor in (weight, other))
        if torch.equal(one, two):
            continue
        precision = max(torch.finfo(weight.dtype).eps, torch.finfo(other.dtype).eps)
        tiny = max(torch.finfo(weight.dtype).tiny, torch.finfo(other.dtype).tiny)
        if bool(((one - two).abs() > precision * torch.maximum(one.abs(), two.abs()) + tiny).any()):
            return "other"
        relation = "rounded"
    return relation
