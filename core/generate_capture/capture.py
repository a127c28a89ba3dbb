"""Capture every `generate` of a transformers model as runs, without changing what it returns."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from decodescope.core.checks.arguments import check_path
from decodescope.core.errors import ParameterError
from decodescope.core.events import Event, Finished, Metrics, RunStarted
from decodescope.core.explain.call_facts import why_not_repeated
from decodescope.core.generate_capture.captured_request import captured_request
from decodescope.core.generate_capture.live_sender import LiveRun
from decodescope.core.generate_recording.generate_hooks import (
    GenerateHooks,
    IncompleteRecordingError,
    generating_module,
    generating_modules,
    warn_incomplete,
    warn_not_recorded,
)
from decodescope.core.generation.running import Result, result_repr
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.parameter import short_repr
from decodescope.core.request import Request
from decodescope.core.settings import check_top_n
from decodescope.core.trace import LiveAddress, Recorder, failure_of
from decodescope.core.trace.page.html_page import PageRun, page, runs_page
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from decodescope.core.generate_recording.call_recorder import CallRecorder, RunDescription


@dataclass(frozen=True, slots=True)
class CapturedRun(Result):
    """One prompt's run of a captured `generate` call. A call that raised ends without `Finished`."""

    request: Request = field(default_factory=lambda: Request([]))
    """The request that describes the call."""
    failure: BaseException | None = None
    """The exception that ended the call."""
    number: int = 0
    """Its position in `Capture.runs`."""
    parent: int | None = None
    """The position of the run inside whose `generate` it was called; None for an outer one."""
    id: str = ""
    """Distinguishes the run, also in recordings."""
    parent_id: str = ""

    @property
    def why_not_repeated(self) -> str:
        """Reasons why a run of `request` may give other ids, in sentences; empty if it gives the same, on the same
        device and with the same versions and weights.
        """
        return why_not_repeated(tuple(self.request.call_facts))

    def __repr__(self) -> str:
        name = next((event.model for event in self.events if isinstance(event, RunStarted)), "")
        return result_repr(self, name)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the run as a recording and return its path. Raises TraceError."""
        check_path("path", path)
        recorder = Recorder(path, self.request, _header_extra(self.id, self.parent_id))
        for event in self.events:
            recorder.write(event)
        recorder.close(failure_of(self.failure))
        if recorder.trouble is not None:
            raise recorder.trouble
        return Path(path)

    def to_html(self, path: str | PathLike[str], title: str = "") -> Path:
        """Write the run as one HTML page and return its path. Raises FileNotWrittenError."""
        check_path("path", path)
        return page(self.events, Path(path), title=title)

    def _repr_html_(self) -> str:
        """Return the interactive page of the run for notebooks, with the error of a call that failed."""
        from decodescope.core.notebook.inline_page import inline_runs

        return inline_runs([self._shown()])

    def _shown(self) -> PageRun:
        failure = f"{type(self.failure).__name__}: {self.failure}" if self.failure is not None else ""
        return PageRun(self.events, failure)


class _OpenRun:
    """A run while its events arrive."""

    def __init__(self, request: Request, live: LiveRun | None, id: str, parent: _OpenRun | None) -> None:
        self.request, self.live = request, live
        self.id, self.parent = id, parent
        self.number = 0
        self.events: list[Event] = []
        self.failure: BaseException | None = None
        self.is_over = False

    def receive(self, event: Event) -> None:
        """Append an event, and send it to an open window."""
        self.events.append(event)
        if self.live is not None:
            self.live.write(event)

    def close(self, failure: BaseException | None) -> None:
        """End the run."""
        self.is_over, self.failure = True, failure
        if self.live is not None:
            self.live.close(failure_of(failure))

    def to_run(self) -> CapturedRun:
        """Return the run so far."""
        last = self.events[-1] if self.events else None
        done = last if isinstance(last, Finished) else Finished("stopped", *_texts_so_far(self.events), Metrics())
        return CapturedRun(
            sequences=[list(ids) for ids in done.sequences], texts=list(done.texts),
            scores=list(done.scores) if done.scores is not None else None, events=self.events, metrics=done.metrics,
            reason=done.reason, request=self.request, failure=self.failure, number=self.number,
            parent=None if self.parent is None else self.parent.number, id=self.id,
            parent_id="" if self.parent is None else self.parent.id,
        )  # fmt: skip


def _texts_so_far(events: Sequence[Event]) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    from decodescope.core.events import TokenChosen

    started = next((event for event in events if isinstance(event, RunStarted)), None)
    count = started.sequences if started is not None else 0
    ids: list[list[int]] = [[] for _ in range(count)]
    texts = [""] * count
    for event in events:
        if isinstance(event, TokenChosen):
            ids[event.sequence].append(event.id)
            texts[event.sequence] += event.text
    return tuple(map(tuple, ids)), tuple(texts)


def _header_extra(id: str, parent_id: str) -> dict[str, object]:
    """Return what a recording's header says about a run besides its request."""
    return {"captured": {"id": id, "parent": parent_id}}


class CapturedRunList:
    """Runs in the order in which they began. They do not keep their models alive.

    `releases`: whether a run is emptied once a window has received it.
    """

    def __init__(self, releases: bool = False) -> None:
        self._runs: list[_OpenRun] = []
        self._releases = releases
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, request: Request, window: LiveAddress | None, parent: _OpenRun | None) -> _OpenRun:
        """Append a new run and return it; it is sent to `window`, if there is one."""
        id = uuid.uuid4().hex
        extra = _header_extra(id, "" if parent is None else parent.id)
        live = LiveRun(window, request, extra) if window is not None else None
        run = _OpenRun(request, live, id, parent)
        if live is not None and self._releases:
            live.on_sent = run.events.clear
        with self._lock:
            run.number = len(self._runs)
            self._runs.append(run)
        return run

    def latest(self) -> CapturedRun | None:
        """Return the run that began last; None without any."""
        with self._lock:
            return self._runs[-1].to_run() if self._runs else None

    def captured(self) -> list[CapturedRun]:
        """Return the runs so far."""
        with self._lock:
            return [run.to_run() for run in self._runs]

    def unsent(self) -> list[CapturedRun]:
        """Return the runs that no window has received completely."""
        with self._lock:
            return [run.to_run() for run in self._runs if run.live is None or not run.live.is_sent]


class Capture:
    """The `generate` calls of one model while the block runs; afterwards their runs."""

    def __init__(
        self, module: torch.nn.Module, loaded: LoadedModel, top_n: int, window: LiveAddress | None,
        runs: CapturedRunList | None = None,
    ) -> None:  # fmt: skip
        """Append the runs to `runs`, which several captures may share."""
        self.loaded, self.top_n = loaded, top_n
        self.troubles: list[Exception] = []
        """Errors because of which a call was not recorded completely."""
        self._module, self._window = module, window
        self._runs = CapturedRunList() if runs is None else runs
        self._open: dict[CallRecorder, list[_OpenRun]] = {}
        """Runs of the decoding loops in progress."""
        self._recorded = 0
        """Number of runs that this capture began."""
        self._inner: dict[torch.nn.Module, LoadedModel] = {}
        """The models inside the captured one that have a `generate` of their own, while the block runs."""
        self._lock = threading.Lock()

    @property
    def is_live(self) -> bool:
        """Whether the runs are sent to an open window."""
        return self._window is not None

    @property
    def runs(self) -> list[CapturedRun]:
        """All runs, in the order in which they began; a batch is one run per prompt."""
        return self._runs.captured()

    @property
    def run(self) -> CapturedRun:
        """The latest run. Raises ParameterError if there is none."""
        if (found := self._runs.latest()) is not None:
            return found
        raise ParameterError(
            tr("No generate call was captured."),
            tr("Call generate of the captured model inside the block."),
        )

    def __enter__(self) -> Self:
        name, tokenizer = self.loaded.name, self.loaded.tokenizer
        inner: list[Any] = [module for module in generating_modules(self._module) if module is not self._module]
        self._inner = {module: LoadedModel(module, tokenizer, name) for module in inner}
        for module in (self._module, *self._inner):
            GenerateHooks.attach(module, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        passes = GenerateHooks.passes_outside(self._module)
        for module in (self._module, *self._inner):
            GenerateHooks.detach(module, self)
        self._inner = {}
        if error is None and not self._recorded and not self.troubles:
            self.note_incomplete(_why_nothing_recorded(passes))

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[CapturedRun]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.loaded.name}, {len(self._runs)} runs>"

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write every run as a recording: one to `path`, several to `name-1`, `name-2` … Return the paths. Raises
        TraceError.
        """
        check_path("path", path)
        target, runs = Path(path), self.runs or [self.run]
        if len(runs) == 1:
            return [runs[0].save(target)]
        names = (target.with_name(f"{target.stem}-{number}{target.suffix}") for number in range(1, len(runs) + 1))
        return [run.save(name) for run, name in zip(runs, names, strict=True)]

    def to_html(self, path: str | PathLike[str]) -> list[Path]:
        """Write all runs as one HTML page with a selector; return its path, in a list as `save` does. Raises
        FileNotWrittenError, and ParameterError without a run.
        """
        check_path("path", path)
        return [runs_page([run._shown() for run in self.runs or [self.run]], Path(path))]

    def to_dataframe(self) -> pd.DataFrame:
        """Return the tokens of all runs as a table with a column `run`. Raises OptionalPackageError without pandas."""
        from decodescope.core.notebook.tables import runs_table

        return runs_table(self.runs)

    def _repr_html_(self) -> str:
        """Return one page of all runs with a selector, for notebooks."""
        from decodescope.core.notebook.inline_page import inline_runs, no_runs

        return inline_runs([run._shown() for run in self.runs]) if len(self._runs) else no_runs()

    # What the hooks call

    def loaded_for(self, module: torch.nn.Module) -> LoadedModel:
        """Return the captured model, or the one inside it whose `generate` is called."""
        return self._inner.get(module, self.loaded)

    def new_run(self, described: RunDescription) -> Callable[[Event], None]:
        """Start a run of a decoding loop; return the function that receives its events."""
        request = captured_request(self.loaded, described, self.top_n)
        outer = described.inputs.parent
        with self._lock:
            parents = self._open.get(outer, []) if outer is not None else []
        run = self._runs.add(request, self._window, parents[0] if parents else None)
        with self._lock:
            self._open.setdefault(described.loop, []).append(run)
            self._recorded += 1
        return run.receive

    def end_loop(self, loop: CallRecorder, failure: BaseException | None) -> None:
        """End the runs of a decoding loop."""
        with self._lock:
            ended = self._open.pop(loop, [])
        for run in ended:
            run.close(failure)

    def note_trouble(self, error: Exception) -> None:
        """Keep the error because of which a call is not recorded further, and issue a warning."""
        self.troubles.append(error)
        warn_not_recorded(error)

    def note_incomplete(self, reason: str) -> None:
        """Keep why what was recorded is not what was returned, and issue a warning."""
        self.troubles.append(IncompleteRecordingError(reason))
        warn_incomplete(reason)


def _why_nothing_recorded(passes: int) -> str:
    """Return why a block has no run; `passes`: how often the model was called without `generate`."""
    if passes:
        return trn(
            "the model was called {count:,} time without generate. Record such a loop with decodescope.record_loop.",
            "the model was called {count:,} times without generate. Record such a loop with decodescope.record_loop.",
            passes,
        ).format(count=passes)
    return tr(
        "generate of this model was not called. Calls of another model, or of another instance, are not captured."
    )


def capture(
    model: LoadedModel | torch.nn.Module,
    tokenizer: object = None,
    *,
    top_n: int = 10,
    live: bool = False,
    name: str | None = None,
    runs: CapturedRunList | None = None,
) -> Capture:
    """Capture every `generate` of `model` inside a `with` block.

    `model` is any transformers model that generates text, also inside an adapter or compiled, or a LoadedModel;
    `tokenizer` spells its tokens (without one, runs contain ids). `top_n`: alternatives per token. `live` sends the
    runs to an open window while they happen; without a window they are recorded only. `runs`: a list that several
    captures share.

        with decodescope.capture(model, tokenizer) as captured:
            model.generate(**inputs, max_new_tokens=50)
        captured.run.texts

    `generate` returns exactly what it returns without. A call from a thread with captures of its own is recorded by
    those only, a call from another thread by all. Raises ParameterError for a model without `generate`.
    """
    check_top_n(top_n)
    loaded = load_for_capture(model, tokenizer, name)
    module = generating_module(model)
    assert module is not None  # checked just now
    return Capture(module, loaded, top_n, live_address(live), runs)


def load_for_capture(
    model: LoadedModel | torch.nn.Module, tokenizer: object = None, name: str | None = None
) -> LoadedModel:
    """Return the model as it is recorded. Raises ParameterError for one without `generate`."""
    module = generating_module(model)
    if module is None:
        raise ParameterError(
            tr("{model} has no generate of transformers.").format(model=short_repr(model)),
            tr("Pass a model that AutoModelForCausalLM or AutoModelForSeq2SeqLM loads."),
            "model",
        )
    if isinstance(model, LoadedModel):
        return model
    network: Any = module
    return LoadedModel(network, tokenizer, name or _name_of(module))


def live_address(live: bool) -> LiveAddress | None:
    """Return the open window that receives a run; None without one, or if it is not to be sent."""
    return LiveAddress.find() if live else None


def _name_of(module: torch.nn.Module) -> str:
    config = getattr(module, "config", None)
    path = str(getattr(config, "_name_or_path", "") or getattr(config, "model_type", "") or type(module).__name__)
    return Path(path).name
