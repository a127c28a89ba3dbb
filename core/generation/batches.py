"""Run many requests, and score many texts, with the same results as one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch

from decodescope.core import caches
from decodescope.core.checks.arguments import cancel_event_or_new, check_cancel
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.text_scoring import (
    MAX_PASS_LOGITS,
    MAX_STATS_LOGITS,
    SCORING_CACHE,
    GivenText,
    prepare_given_text,
    supports_full_pass,
)
from decodescope.core.errors import ParameterError
from decodescope.core.events import Event, TokenChosen
from decodescope.core.generation.running import Result, run
from decodescope.core.generation.scoring import ScoredTokens, TextScorer, build_start_event, score
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.parameter import short_repr
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.remote.responses import TokenTable
from decodescope.core.request import Request, check_request
from decodescope.core.settings import check_top_n
from decodescope.resources.language import tr

T = TypeVar("T")
R = TypeVar("R")

IN_FLIGHT = 4
"""Requests that an engine answers at a time."""
MAX_BATCH_TOKENS = 2048
"""Tokens of a batch of texts, with padding: longer texts keep the processor busy alone."""


def run_many(
    model: LoadedModel | RemoteModel,
    requests: Iterable[Request],
    *,
    in_flight: int = IN_FLIGHT,
    cancel: threading.Event | None = None,
    drafters: Sequence[LoadedModel] | None = None,
    progress: bool = False,
) -> list[Result]:
    """Run requests and return their results in order; the same as `run` for each.

    An engine gets `in_flight` requests at a time, which it batches itself. A local model runs them one after another:
    rows of different prompts would change the last bits of scores, and with them texts. After `cancel` is set, the
    results are those of the requests that had begun. `progress`: show a bar. Raises the errors of `stream`; results
    until then are lost. `decodescope.Study` keeps them.
    """
    kept = _as_list("requests", requests)
    for request in kept:
        check_request(request)
    check_cancel(cancel)
    _check_in_flight(in_flight)
    cancel = cancel_event_or_new(cancel)
    if isinstance(model, RemoteModel):

        def run_one(own: RemoteModel, request: Request) -> Result:
            return run(own, request, cancel)

        return _with_bar(_run_in_flight(model, kept, run_one, in_flight, cancel), len(kept), progress)
    check_model(model)

    def run_in_order() -> Iterator[Result]:
        for request in kept:
            if cancel.is_set():
                return
            yield run(model, request, cancel, drafters=drafters)

    return _with_bar(run_in_order(), len(kept), progress)


def score_many(
    model: LoadedModel | RemoteModel,
    texts: Iterable[object],
    top_n: int = 10,
    *,
    given: Iterable[object] | None = None,
    in_flight: int = IN_FLIGHT,
    cancel: threading.Event | None = None,
    progress: bool = False,
) -> list[ScoredTokens]:
    """Score texts and return the tokens of each, in order; the same values as `score` within rounding.

    `given`: what precedes each text, a list of equal length; None in it for a text without. Short texts are read
    together by decoder models: later positions do not affect earlier ones, so padding behind a text changes nothing.
    Metrics in the events are those of the batch. `in_flight`: requests that an engine answers at a time. Texts after
    `cancel` are left out. Raises the errors of `score`.
    """
    kept = [to_plain_value(text) for text in _as_list("texts", texts)]
    before = [None] * len(kept) if given is None else [to_plain_value(one) for one in _as_list("given", given)]
    if len(before) != len(kept):
        raise ParameterError(
            tr("There are {count} texts, and {given} given beginnings.").format(count=len(kept), given=len(before)),
            tr("Pass a list of the same length, with None for a text without."), "given",
        )  # fmt: skip
    check_cancel(cancel)
    _check_in_flight(in_flight)
    check_top_n(top_n)
    cancel = cancel_event_or_new(cancel)
    pairs = list(zip(kept, before, strict=True))
    if isinstance(model, RemoteModel):

        def score_one(own: RemoteModel, pair: tuple[object, object]) -> ScoredTokens:
            return score(own, pair[0], top_n, given=pair[1])

        return _with_bar(_run_in_flight(model, pairs, score_one, in_flight, cancel), len(pairs), progress)
    check_model(model)
    if len(pairs) < 2 or model.is_encoder_decoder or model.modalities.needs or not supports_full_pass(model):
        single = (score(model, text, top_n, given=one) for text, one in pairs if not cancel.is_set())
        return _with_bar(single, len(pairs), progress)
    return _score_batches(model, pairs, top_n, cancel, progress)


def _score_batches(
    model: LoadedModel, pairs: Sequence[tuple[object, object]], top_n: int, cancel: threading.Event, progress: bool
) -> list[ScoredTokens]:
    """Score texts of similar length together; return them in order."""
    prepared = [prepare_given_text(model, text, before) for text, before in pairs]
    order = sorted(range(len(pairs)), key=lambda place: len(prepared[place].decoder_ids))
    found: dict[int, ScoredTokens] = {}

    def scored() -> Iterator[ScoredTokens]:
        for batch in _batches(model, [(place, prepared[place]) for place in order]):
            if cancel.is_set():
                return
            if len(batch) == 1:
                place, _given = batch[0]
                found[place] = score(model, pairs[place][0], top_n, given=pairs[place][1])
                yield found[place]
                continue
            events = translate_iterator_errors(model, partial(_batch_events, model, [one for _, one in batch], top_n))
            own: list[list[Event]] = [[] for _ in batch]
            for row, event in events:
                own[row].append(event)
            for (place, _given), one in zip(batch, own, strict=True):
                found[place] = ScoredTokens(event for event in one if isinstance(event, TokenChosen))
                found[place].events = tuple(one)
                yield found[place]

    _with_bar(scored(), len(pairs), progress)
    return [found[place] for place in sorted(found)]


def _batches(model: LoadedModel, ordered: Sequence[tuple[int, GivenText]]) -> Iterator[list[tuple[int, GivenText]]]:
    """Divide texts, ordered by length, into batches whose numbers fit into memory."""
    most = min(MAX_BATCH_TOKENS, max(1, MAX_PASS_LOGITS // model.vocabulary))
    batch: list[tuple[int, GivenText]] = []
    for place, one in ordered:
        length = max(1, len(one.decoder_ids))
        if batch and length * (len(batch) + 1) > most:
            yield batch
            batch = []
        batch.append((place, one))
    if batch:
        yield batch


@torch.inference_mode()
def _read_batch(model: LoadedModel, batch: Sequence[GivenText]) -> tuple[Forward, torch.Tensor]:
    """Return the pass and float32 logits [B, L, V] of texts that are filled up behind their ends."""
    longest = max(len(one.decoder_ids) for one in batch)
    rows = [one.decoder_ids + one.decoder_ids[-1:] * (longest - len(one.decoder_ids)) for one in batch]
    forward = Forward(model, caches.registry[SCORING_CACHE].build(model, longest, {}))
    return forward, forward(torch.tensor(rows, device=model.device), keep=0).logits


def _batch_events(model: LoadedModel, batch: Sequence[GivenText], top_n: int) -> Iterator[tuple[int, Event]]:
    """Yield row and event of all texts of a batch."""
    forward, logits = _read_batch(model, batch)
    for row, given in enumerate(batch):
        yield row, build_start_event(model, given, "")
        begin = len(given.start) - 1
        own = logits[row, begin : begin + len(given.tokens)]
        for event in _RowScorer(model, given, top_n, forward, own).events(threading.Event()):
            yield row, event


class _RowScorer(TextScorer):
    """Scores a row of a batch that has been read."""

    def __init__(
        self, model: LoadedModel, given_text: GivenText, top_n: int, forward: Forward, rows: torch.Tensor
    ) -> None:
        super().__init__(model, given_text, top_n, None, {})
        self._text.forward = forward
        self._rows = rows

    def _logits(self, cancel: threading.Event) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        size = max(1, MAX_STATS_LOGITS // self._rows.shape[-1])
        return ((self._rows[begin : begin + size], None) for begin in range(0, len(self._rows), size))


def _run_in_flight(
    model: RemoteModel, items: Sequence[T], run_one: Callable[[RemoteModel, T], R], in_flight: int,
    cancel: threading.Event,
) -> Iterator[R]:  # fmt: skip
    """Yield results in order while the engine works on several. Each thread has its own table of tokens."""
    local, has_failed = threading.local(), threading.Event()

    def work(item: T) -> R | None:
        if cancel.is_set() or has_failed.is_set():
            return None
        if not hasattr(local, "model"):
            local.model = replace(model, words=TokenTable())
        try:
            return run_one(local.model, item)
        except BaseException:
            has_failed.set()
            raise

    with ThreadPoolExecutor(in_flight, "engine") as pool:
        for future in [pool.submit(work, item) for item in items]:
            result = future.result()
            if result is not None:
                yield result


def _with_bar(results: Iterable[R], total: int, progress: bool) -> list[R]:
    if not progress:
        return list(results)
    from tqdm.auto import tqdm

    return list(tqdm(results, total=total))


def _as_list(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Request) or not isinstance(values, Iterable):
        raise ParameterError(
            tr("The argument {name} is {value}, not a list.").format(name=name, value=short_repr(values)),
            tr("Pass a list."), name,
        )  # fmt: skip
    return list(values)


def _check_in_flight(in_flight: object) -> None:
    if isinstance(in_flight, bool) or not isinstance(in_flight, int) or not 1 <= in_flight <= 256:
        raise ParameterError(
            tr("The number of requests in flight is {value}.").format(value=short_repr(in_flight)),
            tr("Pass a whole number from 1 to 256."), "in_flight",
        )  # fmt: skip
