"""Two runs that differ in one thing and share their noise: which tokens the difference caused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from decodescope.core.checks.arguments import cancel_event_or_new, check_progress
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.counterfactuals.setting_atlas import check_sampling, first_difference
from decodescope.core.counterfactuals.text_scores import iterate_logits
from decodescope.core.decoding.keyed_noise import FloatArray, KeyedNoise, same_choice_probability, token_keys
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.token_loop import KeyedPicker
from decodescope.core.errors import ParameterError
from decodescope.core.generation.running import Result, run
from decodescope.core.interpretability.step_query import token_ids
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.parameter import short_repr
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.resources.language import join_names, tr

Side = Request | tuple[LoadedModel, Request]
"""A request, or a model and a request."""


class TwinToken(NamedTuple):
    """A token of the first text, and the choice of the second side after the same text."""

    position: int
    id: int
    text: str
    other_id: int | None
    """What the second side chooses here with the same noise; None for a recorded text, whose noise is unknown."""
    other_text: str
    flips: bool | None
    """Whether the two differ: then the difference of the final distributions caused it."""
    flip_probability: float
    """Probability that they differ, given the token, over all Gumbel noise that explains it."""


class TextAlignment(NamedTuple):
    """A part of both texts, as ranges [start, stop) of their tokens."""

    is_equal: bool
    start: int
    stop: int
    other_start: int
    other_stop: int


class Twin(ResultRows[TwinToken]):
    """The tokens of the first text. Empty if the sides have other tokens: then only the texts can be compared."""

    bar = "flip_probability"
    difference: str
    """The one thing in which the requests differ; empty if they are equal."""
    ids: tuple[list[int], list[int]]
    """New tokens of both runs; the second is empty if the first is a recorded text."""
    written: tuple[str, str]
    """Both texts."""
    first_difference: int | None
    """Index of the first token that differs; None for equal texts."""
    alignment: tuple[TextAlignment, ...]

    @property
    def caused(self) -> float | None:
        """Share of tokens of the first text that the difference caused, each after the same text; None if unknown. It
        is a statement about the final distributions, not about single scores of the model.
        """
        known = [token.flips for token in self if token.flips is not None]
        return sum(known) / len(known) if known else None

    @property
    def expected(self) -> float | None:
        """The same share, averaged over all noise that explains the text."""
        return sum(token.flip_probability for token in self) / len(self) if len(self) else None

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {name: [getattr(token, name) for token in self] for name in TwinToken._fields}


def twin(
    a: Side, b: Side, *, model: LoadedModel | None = None, ids: Sequence[int] | None = None,
    progress: Callable[[int], object] | None = None, cancel: threading.Event | None = None,
) -> Twin:  # fmt: skip
    """Run two requests that differ in one thing with the same noise, and compare them token by token.

    `a` and `b` are requests for `model`, or pairs of a model and a request. Both use sampling with the seed of their
    request and noise keyed by position and token bytes (`keyed_noise`), so equal requests give equal texts, and each
    alone is plain sampling. The second side also reads the first text: a token flips if it would have been chosen
    otherwise there. With `ids`, the tokens of a recorded text of `a`, nothing is drawn, and only the probabilities of
    flips are known. `progress` is called with the number of compared tokens after each; `cancel` ends the comparison,
    which then contains the tokens so far. Raises ParameterError for requests that differ in several things or in their
    seed, StrategyError for strategies other than sampling, and the errors of `stream`.
    """
    check_progress(progress)
    (first, request), (second, changed) = _side("a", a, model), _side("b", b, model)
    difference = _difference(first, request, second, changed)
    request, changed = check_sampling(first, request), check_sampling(second, changed)
    cancel = cancel_event_or_new(cancel)
    has_same_tokens = np.array_equal(token_keys(first), token_keys(second))
    results = [None, None] if ids is not None else [run(first, request, cancel), run(second, changed, cancel)]
    written = _written(first, request, ids, results)
    rows: list[TwinToken] = []
    if has_same_tokens:
        sides = (_Side(first, request), _Side(second, changed))
        rows = _compare(sides, written[0], cancel, progress, draws=ids is None)
    found = Twin(rows)
    found.difference, found.ids = difference, written
    found.written = (_text(first, written[0], results[0]), _text(second, written[1], results[1]))
    spelled = [_spellings(*side) for side in zip((first, second), written, strict=True)]
    found.first_difference = None if ids is not None else first_difference(*_numbered(spelled))
    found.alignment = _align(*spelled)
    return found


def _side(name: str, side: object, model: LoadedModel | None) -> tuple[LoadedModel, Request]:
    found = side if isinstance(side, tuple) and len(side) == 2 else (model, side)
    if found[0] is None:
        raise ParameterError(
            tr("{name} has no model.").format(name=name),
            tr("Pass model=, or pairs of a model and a request."),
            "model",
        )
    check_model(found[0])
    check_request(found[1])
    assert isinstance(found[0], LoadedModel)
    assert isinstance(found[1], Request)
    return found[0], found[1]


_COMPARED_ELSEWHERE = frozenset({"config", "options", "top_n"})


def _difference(first: LoadedModel, a: Request, second: LoadedModel, b: Request) -> str:
    """Return the name of the one thing that differs. Raises ParameterError for several, and for the seed."""
    found = ["model"] if first is not second else []
    found += [
        one.name
        for one in fields(Request)
        if one.name not in _COMPARED_ELSEWHERE
        and to_plain_value(getattr(a, one.name)) != to_plain_value(getattr(b, one.name))
    ]
    ours, theirs = a.settings, b.settings
    found += [name for name in dict.fromkeys([*ours, *theirs]) if ours.get(name) != theirs.get(name)]
    if "seed" in found or "generator_state" in found:
        raise ParameterError(
            tr("The two sides have different random numbers."), tr("Use the same seed for both."), "seed"
        )
    if len(found) > 1:
        raise ParameterError(
            tr("The two sides differ in several things: {names}. What caused a token is unknown.").format(
                names=join_names(found)
            ),
            tr("Change one of them at a time."),
            found[1],
        )
    return found[0] if found else ""


def _written(
    model: LoadedModel, request: Request, ids: object, results: Sequence[Result | None]
) -> tuple[list[int], list[int]]:
    if ids is not None:
        return token_ids(model, ids), []
    first, second = (list(one.sequences[0]) if one is not None and one.sequences else [] for one in results)
    return first, second


def _text(model: LoadedModel, ids: list[int], result: Result | None) -> str:
    if result is not None:
        return result.texts[0] if result.texts else ""
    return "".join(model.pieces.texts(ids))


def _spellings(model: LoadedModel, ids: Sequence[int]) -> list[object]:
    """Return what distinguishes tokens of different vocabularies: their bytes, or their names or ids."""
    known = model.token_bytes
    return [model.pieces[token] if known is None or known[token] is None else known[token] for token in ids]


def _numbered(texts: Sequence[Sequence[object]]) -> list[list[int]]:
    numbers: dict[object, int] = {}
    return [[numbers.setdefault(item, len(numbers)) for item in text] for text in texts]


def _align(first: Sequence[object], second: Sequence[object]) -> tuple[TextAlignment, ...]:
    one, other = _numbered([first, second])
    steps = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return tuple(TextAlignment(tag == "equal", *place) for tag, *place in steps)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of the comparison."""

    model: LoadedModel
    request: Request

    def final_scores(self, ids: Sequence[int], cancel: threading.Event) -> Iterator[FloatArray]:
        """Yield the processed scores [V] before each of `ids`."""
        return translate_iterator_errors(self.model, partial(self._read, ids, cancel))

    def _read(self, ids: Sequence[int], cancel: threading.Event) -> Iterator[FloatArray]:
        with self.model.adapters.using(self.request.adapters):
            strategy, settings = resolve_settings(self.model, self.request)
            decoding = DecodingRun(self.model, self.request, strategy, settings, cancel)
            picker = KeyedPicker(decoding, [self.request.seed])
            decoding.rng = picker.uniform
            for step, logits in enumerate(iterate_logits(decoding, ids)):
                picker.move_to(picker.first_position + step)
                text = torch.tensor([[*decoding.start_ids, *ids[:step]]], device=decoding.device)
                trace = decoding.pipeline.trace(text, decoding.replace_invalid(logits))
                decoding.check_scores(trace[-1], trace[0], step, trace)
                yield trace[-1][0].double().cpu().numpy()
            decoding.forward.release_storages()


def _compare(
    sides: tuple[_Side, _Side], ids: Sequence[int], cancel: threading.Event,
    progress: Callable[[int], object] | None, *, draws: bool,
) -> list[TwinToken]:  # fmt: skip
    model, request = sides[0].model, sides[0].request
    noise = KeyedNoise(request.seed, token_keys(model))
    first = _beginning_length(model, request)
    texts, rows = model.pieces.texts(ids), list[TwinToken]()
    both = zip(*(side.final_scores(ids, cancel) for side in sides), strict=True)
    for step, (ours, theirs) in enumerate(both):
        token = ids[step]
        before, after = (one - np.logaddexp.reduce(one) for one in (ours, theirs))
        if not np.isfinite(before[token]):
            raise ParameterError(
                tr("Token {number} of the text, {id}, cannot be written with the first request.").format(
                    number=step + 1, id=short_repr(token)
                ),
                tr("Pass the tokens of a run of this request."),
                "ids",
            )
        other = int((theirs + noise.gumbel(first + step)).argmax()) if draws else None
        probability = 1.0 - same_choice_probability(before, after, token)
        other_text = model.pieces[other] if other is not None else ""
        flips = other != token if other is not None else None
        rows.append(TwinToken(step, token, texts[step], other, other_text, flips, probability))
        if progress is not None:
            progress(len(rows))
        if cancel.is_set():
            break
    return rows


def _beginning_length(model: LoadedModel, request: Request) -> int:
    """Return the number of tokens of the answer that the request gives."""
    strategy, settings = resolve_settings(model, request)
    return len(DecodingRun(model, request, strategy, settings, threading.Event()).inputs.beginning)
