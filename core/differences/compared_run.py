"""One of two runs that are compared: its events, and its model and request where they are known. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from decodescope.core.errors import ComparisonError, DecodescopeError, ParameterError
from decodescope.core.events import Event, Finished, PromptToken, RunStarted, SequenceFinished, TokenChosen
from decodescope.core.events.run import HasEvents
from decodescope.core.parameter import short_repr
from decodescope.core.request import Request
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.remote.remote_model import RemoteModel

    Model: TypeAlias = LoadedModel | RemoteModel


RunLike: TypeAlias = "HasEvents | Iterable[Event] | str | PathLike[str] | tuple[Model, Request]"
"""A result, a captured run, events, the path of a recording, or a model and a request, which is run."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """The recorded values of one text of a run."""

    started: RunStarted
    ids: tuple[int, ...]
    """New tokens. Negative for tokens whose ids an engine does not report."""
    pieces: tuple[str, ...]
    """Text that each token adds; () where the run recorded no tokens, as for beams."""
    text: str
    tokens: tuple[TokenChosen, ...]
    """Events of the tokens; () where the run recorded none."""
    end: SequenceFinished | None
    """Why the text ended; None if the run failed or was killed."""
    request: Request | None = None
    model: Model | None = None
    failure: str = ""
    """The error that ended the run."""

    @property
    def settings(self) -> dict[str, object]:
        """Settings that differ from the defaults, with those that `RunStarted` does not contain."""
        own = dict(self.started.settings)
        if self.request is not None:
            own |= {name: value for name, value in self.request.options.items() if value is not None}
        return own

    @property
    def is_sampled(self) -> bool:
        """Whether random numbers chose the tokens."""
        if self.tokens:
            return any("sampled" in token.method for token in self.tokens)
        return bool(dict(self.started.settings).get("do_sample"))

    def request_to_repeat(self) -> Request | None:
        """Return the request of the run, or one with its recorded values; None if they do not suffice."""
        if self.request is not None:
            return self.request
        started = self.started
        known = [token.id for token in (*started.prompt, *started.beginning)]
        if started.engine or started.generator or started.call_facts or started.media or min(known, default=0) < 0:
            return None
        return Request(
            [token.id for token in started.prompt], dict(started.settings), strategy=started.strategy,
            cache=started.cache, seed=started.seed, beginning=tuple(token.id for token in started.beginning),
        )  # fmt: skip


def read_run(run: object, model: Model | None = None, sequence: int = 0) -> ComparedRun:
    """Return a run for comparison. A pair of a model and a request is run first.

    Raises ParameterError for other values, ComparisonError for runs without a text, TraceError, and the errors of
    `stream`.
    """
    request: Request | None = None
    failure = ""
    if isinstance(run, ComparedRun):
        return run
    if isinstance(run, tuple) and len(run) == 2 and isinstance(run[1], Request):
        from decodescope.core.generation.running import run as generate

        model, request = run
        try:
            events = list(generate(model, request).events)
        except DecodescopeError as error:
            error.add_note(tr("This run was to be compared."))
            raise
    elif isinstance(run, str | PathLike):
        from decodescope.core.trace.trace_file import read

        trace = read(Path(run))
        events, request = trace.events, _request_of(trace.header.request)
        failure = join_sentences(trace.failure.cause, trace.failure.remedy) if trace.failure is not None else ""
    elif isinstance(run, HasEvents):
        events, request = list(run.events), getattr(run, "request", None)
        raised = getattr(run, "failure", None)
        failure = f"{type(raised).__name__}: {raised}" if raised is not None else ""
    elif isinstance(run, Iterable):
        events = list(run)
    else:
        raise _run_error(run)
    if not all(isinstance(event, Event) for event in events):
        raise _run_error(run)
    return _compared_run(events, request if isinstance(request, Request) else None, model, failure, sequence)


def _run_error(run: object) -> ParameterError:
    return ParameterError(
        tr("A run to compare is {value}.").format(value=short_repr(run)),
        tr("Pass a result, a captured run, the path of a recording, events, or a pair of a model and a request."),
        "run",
    )


def _compared_run(
    events: Sequence[Event], request: Request | None, model: Model | None, failure: str, sequence: int
) -> ComparedRun:
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is None:
        raise ComparisonError(
            tr("A run to compare has not started: {failure}").format(failure=failure)
            if failure
            else tr("A run to compare has no events."),
            tr("Compare runs that wrote at least one token."),
        )
    finished = next((event for event in reversed(events) if isinstance(event, Finished)), None)
    if finished is not None and finished.sequences and sequence >= len(finished.sequences):
        raise ParameterError(
            tr("Text {number} was requested, but a run has {count}.").format(
                number=sequence + 1, count=len(finished.sequences)
            ),
            tr("Choose a text that both runs have."),
            "sequence",
        )
    number = finished.order[sequence] if finished is not None and sequence < len(finished.order) else sequence
    tokens = tuple(event for event in events if isinstance(event, TokenChosen) and event.sequence == number)
    end = next((one for one in events if isinstance(one, SequenceFinished) and one.sequence == number), None)
    pieces = [token.text for token in tokens]
    if pieces and end is not None:
        pieces[-1] += end.tail
    if finished is not None and finished.sequences:
        ids, text = finished.sequences[sequence], finished.texts[sequence]
        if tuple(token.id for token in tokens) != ids:
            tokens, pieces = (), []
    else:
        ids, text = tuple(token.id for token in tokens), "".join(pieces)
    return ComparedRun(started, ids, tuple(pieces), text, tokens, end, request, model, failure)


def _request_of(header: Mapping[str, object]) -> Request | None:
    """Return the request in the header of a recording; None if this version cannot read it."""
    names = {field.name for field in fields(Request)} - {"drafters"}
    values = {name: value for name, value in header.items() if name in names}
    for name in ("beginning", "call_facts", "media"):
        if isinstance(items := values.get(name), list):
            values[name] = tuple(tuple(one) if isinstance(one, list) else one for one in items)
    if header.get("drafters") or "prompt" not in values:
        return None  # draft models are recorded by name only
    make_request: Callable[..., Request] = Request  # the header has no types
    try:
        return make_request(**values)
    except (TypeError, ValueError, DecodescopeError):
        return None


def piece_of(token: PromptToken) -> str:
    """Return the text of a prompt token, of parts of characters their bytes."""
    return token.piece or token.text
