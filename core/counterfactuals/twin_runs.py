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

from decodescope.core.checks.arguments import cancel_event_or_new, check_kind, check_progress
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.counterfactuals.setting_atlas import check_no_step_back, check_sampling, first_difference
from decodescope.core.counterfactuals.text_scores import iterate_logits
from decodescope.core.decoding.keyed_noise import FloatArray, KeyedNoise, same_choice_probability, token_keys
from decodescope.core.decoding.prefill import PrefillStoppedError
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.token_loop import KeyedPicker, TextKeyedPicker, decode_single
from decodescope.core.errors import ParameterError
from decodescope.core.generation.running import run
from decodescope.core.interpretability.step_query import token_ids
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.parameter import short_repr
from decodescope.core.plugins.guarded_thread import iterate_guarded
from decodescope.core.plugins.installation import used_plugins
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.resources.language import join_names, tr

Side = Request | tuple[LoadedModel, Request]
"""A request, or a model and a request."""


MIN_REJOINED = 3
"""Tokens of an equal part that count as running together again; a single full stop does not."""


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
    """Equal and differing parts of both texts, in order."""
    is_realigned: bool
    """Whether the noise is keyed by the text before each token, not by position."""

    @property
    def rejoins(self) -> list[TextAlignment]:
        """The equal parts of at least three tokens after a difference: there both texts run together again."""
        return [part for part in self.alignment[1:] if part.is_equal and part.stop - part.start >= MIN_REJOINED]

    @property
    def common(self) -> float:
        """Share of the tokens of the longer text that both have in common, in order; 1 for equal texts."""
        longest = max(map(len, self.ids), default=0)
        return sum(part.stop - part.start for part in self.alignment if part.is_equal) / longest if longest else 1.0

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
    a: Side, b: Side, *, model: LoadedModel | None = None, ids: Sequence[int] | None = None, realign: bool = False,
    progress: Callable[[int], object] | None = None, cancel: threading.Event | None = None,
) -> Twin:  # fmt: skip
    """Run two requests that differ in one thing with the same noise, and compare them token by token.

    `a` and `b` are requests for `model`, or pairs of a model and a request. Both use sampling with the seed of their
    request and noise keyed by position and token bytes (`keyed_noise`), so equal requests give equal texts, and each
    alone is plain sampling. After an inserted word, positions no longer agree. With `realign`, the noise is therefore
    keyed by the last twelve bytes of the answer (and how often they have occurred) in place of the position: where both
    texts have written the same, they share their noise again.

    The second side also reads the first text: a token flips if it would have been chosen otherwise there. With `ids`,
    the tokens of a recorded text of `a`, nothing is drawn, and only the probabilities of flips are known. `progress` is
    called with the number of compared tokens after each; `cancel` ends the comparison, which then contains the tokens
    so far. Raises ParameterError for requests that differ in several things or in their seed, StrategyError for
    strategies other than sampling, and the errors of `stream`.
    """
    check_progress(progress)
    check_kind("realign", realign, bool, tr("Pass True or False."))
    (first, request), (second, changed) = _side("a", a, model), _side("b", b, model)
    difference = _difference(first, request, second, changed)
    request, changed = check_sampling(first, request), check_sampling(second, changed)
    cancel = cancel_event_or_new(cancel)
    has_same_tokens = np.array_equal(token_keys(first), token_keys(second))
    sides = (_Side(first, request, realign), _Side(second, changed, realign))
    results = [side.write(cancel) if ids is None else None for side in sides]
    written = _written(first, ids, results)
    rows = _compare(sides, written[0], cancel, progress, draws=ids is None) if has_same_tokens else []
    found = Twin(rows)
    found.difference, found.ids, found.is_realigned = difference, written, realign
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


class _WrittenText(NamedTuple):
    """A text that a side has drawn."""

    ids: list[int]
    text: str


def _written(model: LoadedModel, ids: object, results: Sequence[_WrittenText | None]) -> tuple[list[int], list[int]]:
    if ids is not None:
        return token_ids(model, ids), []
    first, second = (one.ids if one is not None else [] for one in results)
    return first, second


def _text(model: LoadedModel, ids: list[int], result: _WrittenText | None) -> str:
    return result.text if result is not None else "".join(model.pieces.texts(ids))


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
    """One side of the comparison. `realigns`: whether its noise is keyed by the text before each token."""

    model: LoadedModel
    request: Request
    realigns: bool

    def write(self, cancel: threading.Event) -> _WrittenText:
        """Draw the text of the side."""
        if not self.realigns:
            result = run(self.model, self.request, cancel)
            return _WrittenText(
                list(result.sequences[0]) if result.sequences else [], result.texts[0] if result.texts else ""
            )
        write = partial(translate_iterator_errors, self.model, partial(self._write_realigned, cancel))
        (found,) = iterate_guarded(write, cancel) if used_plugins(self.request) else write()
        return found

    def _write_realigned(self, cancel: threading.Event) -> Iterator[_WrittenText]:
        with self.model.adapters.using(self.request.adapters):
            decoding = self._decoding(cancel)
            picker = TextKeyedPicker(decoding, self.request.seed)
            decoding.rng = picker.uniform
            try:
                if not decoding.is_cancelled():
                    for _event in decode_single(decoding, picker):
                        pass
            except PrefillStoppedError:
                decoding.store_partial_prompt()
            finally:
                decoding.forward.release_storages()
            ids, text = (decoding.results[0].ids, decoding.results[0].text) if decoding.results else ((), "")
            yield _WrittenText(list(ids), text)

    def _decoding(self, cancel: threading.Event) -> DecodingRun:
        strategy, settings = resolve_settings(self.model, self.request)
        decoding = DecodingRun(self.model, self.request, strategy, settings, cancel)
        if self.realigns:
            check_no_step_back(decoding)
        return decoding

    def final_scores(self, ids: Sequence[int], cancel: threading.Event) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the processed scores [V] before each of `ids`, and the noise [V] of that step."""
        return translate_iterator_errors(self.model, partial(self._read, ids, cancel))

    def _read(self, ids: Sequence[int], cancel: threading.Event) -> Iterator[tuple[FloatArray, FloatArray]]:
        with self.model.adapters.using(self.request.adapters):
            decoding, seed = self._decoding(cancel), self.request.seed
            picker = TextKeyedPicker(decoding, seed) if self.realigns else KeyedPicker(decoding, [seed])
            decoding.rng = picker.uniform
            noise = KeyedNoise(seed, token_keys(self.model))
            for step, logits in enumerate(iterate_logits(decoding, ids)):
                position = picker.first_position + step
                if isinstance(picker, TextKeyedPicker):
                    noise, position = picker.step_noise, 0
                else:
                    picker.move_to(position)
                text = torch.tensor([[*decoding.start_ids, *ids[:step]]], device=decoding.device)
                trace = decoding.pipeline.trace(text, decoding.replace_invalid(logits))
                decoding.check_scores(trace[-1], trace[0], step, trace)
                yield trace[-1][0].double().cpu().numpy(), noise.gumbel(position)
                if isinstance(picker, TextKeyedPicker):
                    picker.add(ids[step])
            decoding.forward.release_storages()


def _compare(
    sides: tuple[_Side, _Side], ids: Sequence[int], cancel: threading.Event,
    progress: Callable[[int], object] | None, *, draws: bool,
) -> list[TwinToken]:  # fmt: skip
    model = sides[0].model
    texts, rows = model.pieces.texts(ids), list[TwinToken]()
    both = zip(*(side.final_scores(ids, cancel) for side in sides), strict=True)
    for step, ((ours, noise), (theirs, _)) in enumerate(both):
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
        other = int((theirs + noise).argmax()) if draws else None
        probability = 1.0 - same_choice_probability(before, after, token)
        other_text = model.pieces[other] if other is not None else ""
        flips = other != token if other is not None else None
        rows.append(TwinToken(step, token, texts[step], other, other_text, flips, probability))
        if progress is not None:
            progress(len(rows))
        if cancel.is_set():
            break
    return rows
