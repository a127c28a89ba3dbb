"""Reads a finished text once more and keeps the model's scores at each token."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from decodescope.core.checks.arguments import cancel_event_or_new, check_integer, check_progress
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.score_cache import ScoreCache, StepLogits, detach_storage
from decodescope.core.decoding.step_replayer import StepReplayer
from decodescope.core.errors import StrategyError
from decodescope.core.interpretability.step_query import token_ids
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.plugins.guarded_thread import iterate_guarded
from decodescope.core.plugins.installation import used_plugins
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.resources.language import tr

_MAX_BYTES = 2**30
"""Maximum size of the scores; those of the first tokens are dropped beyond."""


def iterate_logits(decoding: DecodingRun, ids: Sequence[int]) -> Iterator[torch.Tensor]:
    """Yield the logits [1, V] before each of the new tokens `ids`."""
    output, _ = decoding.prefill()
    for step, token in enumerate(ids):
        yield output.last
        if step < len(ids) - 1 and not decoding.is_cancelled():
            output = decoding.forward(torch.tensor([[token]], device=decoding.device))


def read_scores(
    model: LoadedModel, request: Request, ids: Sequence[int], *, sequence: int = 0,
    progress: Callable[[int], object] | None = None, cancel: threading.Event | None = None,
) -> ScoreCache:  # fmt: skip
    """Read a text of the request, its new tokens `ids`, and return the scores for `setting_effects`.

    For a run whose scores were not stored, such as a recording. `sequence` is the text's number in its run. One forward
    pass per token; `progress` is called with the number of tokens after each, and `cancel` checked before: the result
    then covers the tokens read so far. The scores of at most 1 GiB are kept, those of the last tokens. Raises
    StrategyError for strategies that change the scores in a way of their own, ParameterError, and the errors of
    `stream`.
    """
    check_model(model)
    check_request(request)
    check_integer("sequence", sequence, 0, 10**6)
    check_progress(progress)
    given, cancel = token_ids(model, ids), cancel_event_or_new(cancel)
    read = partial(_read, model, request, given, sequence, progress, cancel)
    make_iterator = partial(translate_iterator_errors, model, read)
    (found,) = iterate_guarded(make_iterator, cancel) if used_plugins(request) else make_iterator()
    return found


def _read(
    model: LoadedModel, request: Request, ids: list[int], sequence: int, progress: Callable[[int], object] | None,
    cancel: threading.Event,
) -> Iterator[ScoreCache]:  # fmt: skip
    with model.adapters.using(request.adapters):
        strategy, settings = resolve_settings(model, request.with_settings({"num_return_sequences": 1}))
        decoding = DecodingRun(model, request, strategy, settings, cancel)
        has_own_input = type(strategy.make_replayer(decoding)).pipeline_input is not StepReplayer.pipeline_input
        if decoding.beams > 1 or strategy.speculates or has_own_input:
            raise StrategyError(
                tr("{strategy} does not choose from the model's own scores, token by token.").format(
                    strategy=tr(strategy.title)
                ),
                tr("Use greedy decoding or sampling."),
            )
        rows = sequence + 1
        found = ScoreCache(_MAX_BYTES * rows)
        found.start_run(decoding.start_ids)
        try:
            for step, logits in enumerate(iterate_logits(decoding, ids)):
                if cancel.is_set():
                    break
                found.add(step, StepLogits(detach_storage(logits).expand(rows, -1)), [ids[step]] * rows)
                if progress is not None:
                    progress(step + 1)
            yield found
        finally:
            decoding.forward.release_storages()
