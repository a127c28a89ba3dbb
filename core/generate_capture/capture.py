"""Capture every `generate` of a transformers model as runs, without changing what it returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from decodescope.core import strategies
from decodescope.core.checks.arguments import check_path
from decodescope.core.errors import ParameterError
from decodescope.core.events import Event, Finished, Metrics, RunStarted
from decodescope.core.generate_capture.live_sender import LiveRun
from decodescope.core.generate_recording.generate_hooks import GenerateHooks, generating_module, warn_not_recorded
from decodescope.core.generate_recording.run_writer import CapturedPrompt, plain_settings
from decodescope.core.generation.running import Result
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.parameter import short_repr
from decodescope.core.request import Request
from decodescope.core.settings import check_top_n
from decodescope.core.trace import LiveAddress, Recorder, failure_of
from decodescope.core.trace.page.html_page import page
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd
    from transformers import GenerationConfig


@dataclass(frozen=True, slots=True)
class CapturedRun(Result):
    """One prompt's run of a captured `generate` call. A call that raised ends without `Finished`."""

    request: Request = field(default_factory=lambda: Request([]))
    """The request that describes the call."""
    failure: BaseException | None = None
    """The exception that ended the call."""

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the run as a recording and return its path. Raises TraceError."""
        check_path("path", path)
        recorder = Recorder(path, self.request)
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
        from decodescope.core.notebook.inline_page import inline_page

        failure = f"{type(self.failure).__name__}: {self.failure}" if self.failure is not None else ""
        return inline_page(self.events, failure=failure)


class _OpenRun:
    """A run while its events arrive."""

    def __init__(self, request: Request, live: LiveRun | None) -> None:
        self.request, self.live = request, live
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
            reason=done.reason, request=self.request, failure=self.failure,
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


class RunList:
    """Runs in the order in which they began. They do not keep their models alive.

    `releases`: whether a run is emptied once a window has received it.
    """

    def __init__(self, releases: bool = False) -> None:
        self._runs: list[_OpenRun] = []
        self._releases = releases
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, request: Request, live: LiveRun | None) -> _OpenRun:
        """Append a new run and return it."""
        run = _OpenRun(request, live)
        if live is not None and self._releases:
            live.on_sent = run.events.clear
        with self._lock:
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
        runs: RunList | None = None,
    ) -> None:  # fmt: skip
        """Append the runs to `runs`, which several captures may share."""
        self.loaded, self.top_n = loaded, top_n
        self.troubles: list[Exception] = []
        """Errors because of which a call was not recorded completely."""
        self._module, self._window = module, window
        self._runs = RunList() if runs is None else runs
        self._open: dict[int, list[_OpenRun]] = {}
        """Runs of the calls in progress, by thread."""
        self._lock = threading.Lock()
        self._depth = 0

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
        GenerateHooks.attach(self._module, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        GenerateHooks.detach(self._module, self)

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
        return self._write_each(path, CapturedRun.save)

    def to_html(self, path: str | PathLike[str]) -> list[Path]:
        """Write every run as an HTML page, with paths as in `save`. Raises FileNotWrittenError."""
        return self._write_each(path, CapturedRun.to_html)

    def to_dataframe(self) -> pd.DataFrame:
        """Return the tokens of all runs as a table with a column `run`. Raises OptionalPackageError without pandas."""
        from decodescope.core.notebook.tables import runs_table

        return runs_table(self.runs)

    def _repr_html_(self) -> str:
        """Return the pages of all runs, one below the other, for notebooks."""
        from decodescope.core.notebook.inline_page import no_runs

        return "".join(run._repr_html_() for run in self.runs) or no_runs()

    def _write_each(self, path: str | PathLike[str], write: Callable[[CapturedRun, Path], Path]) -> list[Path]:
        check_path("path", path)
        target, runs = Path(path), self.runs or [self.run]
        if len(runs) == 1:
            return [write(runs[0], target)]
        names = (target.with_name(f"{target.stem}-{number}{target.suffix}") for number in range(1, len(runs) + 1))
        return [write(run, name) for run, name in zip(runs, names, strict=True)]

    # What the hooks call

    def new_run(self, prompt: CapturedPrompt, config: GenerationConfig, strategy: str) -> Callable[[Event], None]:
        """Start a run of the current thread's call; return the function that receives its events."""
        request = self._request(prompt, config, strategy)
        live = LiveRun(self._window, request) if self._window is not None else None
        run = self._runs.add(request, live)
        with self._lock:
            self._open.setdefault(threading.get_ident(), []).append(run)
        return run.receive

    def end_call(self, recorder: object, failure: BaseException | None) -> None:
        """End the runs of the current thread's call."""
        with self._lock:
            ended = self._open.pop(threading.get_ident(), [])
        for run in ended:
            run.close(failure)

    def note_trouble(self, error: Exception) -> None:
        """Keep the error because of which a call is not recorded further, and issue a warning."""
        self.troubles.append(error)
        warn_not_recorded(error)

    def _request(self, prompt: CapturedPrompt, config: GenerationConfig, strategy: str) -> Request:
        text = "".join(self.loaded.pieces.texts(prompt.prompt)) if self.loaded.tokenizer is not None else ""
        settings = {name: value for name, value in plain_settings(config).items() if name != "custom_generate"}
        if "max_new_tokens" not in settings and config.max_length:
            settings["max_new_tokens"] = max(int(config.max_length) - len(prompt.start), 0)
        return Request(
            text or list(prompt.prompt), settings, strategy=strategy if strategy in strategies.registry else None,
            top_n=self.top_n,
        )  # fmt: skip


def capture(
    model: LoadedModel | torch.nn.Module,
    tokenizer: object = None,
    *,
    top_n: int = 10,
    live: bool = False,
    name: str | None = None,
    runs: RunList | None = None,
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
    module = generating_module(model)
    if module is None:
        raise ParameterError(
            tr("{model} has no generate of transformers.").format(model=short_repr(model)),
            tr("Pass a model that AutoModelForCausalLM or AutoModelForSeq2SeqLM loads."),
            "model",
        )
    if isinstance(model, LoadedModel):
        loaded = model
    else:
        network: Any = module
        loaded = LoadedModel(network, tokenizer, name or _name_of(module))
    return Capture(module, loaded, top_n, LiveAddress.find() if live else None, runs)


def _name_of(module: torch.nn.Module) -> str:
    config = getattr(module, "config", None)
    path = str(getattr(config, "_name_or_path", "") or getattr(config, "model_type", "") or type(module).__name__)
    return Path(path).name
