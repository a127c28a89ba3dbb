"""A text scored on another machine: the engine reads it back with what it holds of each token."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator

from core.errors import EngineRefusedError, PromptError
from core.events import Event, Finished, Metrics, Prefilled, PromptToken, RunStarted, SequenceFinished
from core.remote import engine_errors
from core.remote.event_builder import TokenEventBuilder
from core.remote.http_stream import CancelledError
from core.remote.remote_model import RemoteModel
from core.remote.responses import ResponseUsage, StreamedToken, as_mapping, choice_tokens
from core.request_fields import check_top_n
from resources.language import tr

SCORE = "score"


def score_stream(
    model: RemoteModel, text: object, top_n: int, given: object = None, cancel: threading.Event | None = None
) -> Iterator[Event]:
    """As `core.score_stream` of a text or its parts. Raises EngineErrors, PromptError, ParameterError."""
    check_top_n(top_n)
    if not model.kind.scores:
        raise EngineRefusedError(
            tr("{engine} does not tell what it holds of a text that is given.").format(engine=model.kind.title),
            tr("vLLM and SGLang do; so does every model in this machine's memory."),
        )
    before, whole = _text_of(model, given), _text_of(model, text)
    yield from _scoring_events(model, before, before + whole, top_n, cancel or threading.Event())


def _text_of(model: RemoteModel, text: object) -> str:
    if text is None:
        return ""
    parts = [text] if isinstance(text, str) else text
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, (str, int)) for part in parts):
        raise PromptError(
            tr("An engine scores texts, and this is none."), tr("Give a text, or texts and tokens that it has told.")
        )
    return model.spell(parts)


def _scoring_events(model: RemoteModel, before: str, text: str, top_n: int, cancel: threading.Event) -> Iterator[Event]:
    begun = time.perf_counter()
    count = max(1, min(top_n, model.kind.alternatives))
    body = {"model": model.name, "prompt": text, "max_tokens": 1, "temperature": 0.0, "echo": True, "logprobs": count}
    try:
        told, counts = _read_reply(model, model.client.post(f"{model.address.path}/completions", body, cancel), text)
    except CancelledError:
        told, counts = (), ResponseUsage()
    seconds = time.perf_counter() - begun
    known = _token_count(told, before)
    teller = TokenEventBuilder(model, count, frozenset(), "scored")
    yield _run_started(model, teller, told[:known], before or text)
    yield Prefilled(len(told), seconds)
    scored = told[known:]
    for step, token in enumerate(scored):
        yield teller.build(token, token.piece, step, 0, seconds / len(told))
    yield SequenceFinished(0, "given" if told else "stopped")
    yield Finished(
        "completed" if told else "stopped",
        (tuple(teller.token_id(token) for token in scored),),
        ("".join(token.piece for token in scored),),
        Metrics(counts.prompt or len(told), len(scored), seconds),
        order=(0,),
    )


def _read_reply(model: RemoteModel, reply: object, text: str) -> tuple[tuple[StreamedToken, ...], ResponseUsage]:
    """The tokens of the text itself: one more was written behind it, for not every engine writes none."""
    counts = ResponseUsage()
    with engine_errors.parsing_message(reply, model.place):
        message = as_mapping(reply)
        counts.update(message)
        found = tuple(choice_tokens(as_mapping(message["choices"][0])))
    if not found:
        raise EngineRefusedError(
            tr("{place} has not told what it holds of the text.").format(place=model.place),
            tr("Look whether the engine was started without log-probabilities."),
        )
    return found[: counts.prompt or _token_count(found, text)], counts


def _token_count(told: tuple[StreamedToken, ...], text: str) -> int:
    """How many tokens spell `text`; at least the first, of which no engine tells how likely it was."""
    length = 0
    for place, token in enumerate(told):
        if length >= len(text) and not math.isnan(token.log_probability):
            return place
        length += len(token.piece)
    return len(told)


def _run_started(
    model: RemoteModel, teller: TokenEventBuilder, told: tuple[StreamedToken, ...], text: str
) -> RunStarted:
    asked = tuple(PromptToken(teller.token_id(token), token.piece) for token in told)
    return RunStarted(
        strategy=SCORE, model=model.name, device=model.place, dtype="", cache="", seed=0,
        prompt=asked or (PromptToken(model.words.id_of(text), text),), settings=(), vocabulary=model.vocabulary,
        context=model.context, identity=model.identity, engine=model.kind.title,
    )  # fmt: skip
