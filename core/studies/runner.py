"""Run the jobs of a study: on a local model one after another, on engines several at a time. Results are appended to a
file as they come, by key, so that a killed study continues where it stopped.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decodescope.core import measures
from decodescope.core import remote as remote_models
from decodescope.core.common.program_name import RUN_SUFFIX
from decodescope.core.errors import (
    DecodescopeError,
    EngineBusyError,
    EngineCutError,
    EngineReplyError,
    EngineUnreachableError,
    StudyError,
)
from decodescope.core.events import Event, Finished, RunStarted, SequenceFinished, TokenChosen
from decodescope.core.remote.client import EngineClient
from decodescope.core.request import Request
from decodescope.core.studies.study_file import StudyJob, StudyModel
from decodescope.core.system.file_writing import HeldElsewhereError, HeldLock, acquire_file, atomic_write
from decodescope.core.system.system_errors import system_error_reason
from decodescope.core.trace.recorder import record
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.remote.remote_model import RemoteModel

RESULTS, JUDGED, RUNS, REPLIES = "results.jsonl", "judged.jsonl", "runs", "replies"
"""Files in a study's folder: a line per run, a line per text and judge, recordings, replies of engines as received."""
LOCK = ".study.lock"
_LOST = (EngineUnreachableError, EngineCutError, EngineBusyError, EngineReplyError)
"""Errors after which a job is given to another engine. Others are the job's own: every engine would refuse it."""
_MAX_LOSSES = 4
"""Attempts in a row after which an engine counts as lost, unless others still work and it may come back."""
_RECENT = 40
"""Number of runs from which the time left is estimated."""
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before an engine is tried again."""


class StudyProgress(NamedTuple):
    """The state of a study."""

    done: int
    """Finished runs, also those of earlier starts and those that did not need to run."""
    total: int
    failed: int
    seconds_left: float | None
    """Estimated from the runs of this start; None before the first one has finished."""
    notice: str = ""
    """A message about an engine; empty in other reports."""
    key: str = ""
    """Key of the run that finished."""


Report = Callable[[StudyProgress], None]


def append_line(path: Path, entry: Mapping[str, Any]) -> None:
    """Append an object as a line; it is on the disk when this returns. Raises OSError."""
    line = json.dumps(entry, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
    with path.open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of lines; the last line of a killed process may be incomplete and is skipped."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            with suppress(ValueError, RecursionError):
                found = json.loads(line)
                if isinstance(found, dict) and isinstance(found.get("key"), str):
                    yield found


class StudyStore:
    """The folder of a study's results. `results` are the runs by key."""

    def __init__(self, folder: Path, writes: bool = True) -> None:
        """Read the results; with `writes`, lock the folder against other processes and remove an incomplete last line.
        Raises StudyError.
        """
        self.folder = folder
        self.results: dict[str, dict[str, Any]] = {}
        self.judged: dict[str, dict[tuple[int, str], float | None]] = {}
        """Values under other models, by key of the run, then by number of the text and name of the model."""
        self._lock: HeldLock | None = None
        self._mutex = threading.Lock()
        try:
            if writes:
                folder.mkdir(parents=True, exist_ok=True)
                self._lock = acquire_file(folder / LOCK)
                _end_last_line(folder / RESULTS)
                _end_last_line(folder / JUDGED)
            self.read()
        except HeldElsewhereError:
            raise StudyError(
                tr("Another process is writing to {folder}.").format(folder=folder),
                tr("Wait until it has ended, or choose another folder."),
            ) from None
        except OSError as error:
            self.close()
            raise self.write_error(error) from None

    def read(self) -> None:
        """Read the results again, as another process may have added some. Raises OSError."""
        self.results = {one["key"]: one for one in read_lines(self.folder / RESULTS)}
        for one in read_lines(self.folder / JUDGED):
            self._keep_judged(one["key"], one.get("text", 0), one.get("judge", ""), one.get("value"))

    def write_error(self, error: OSError) -> StudyError:
        """Return the error for a folder that cannot be written."""
        return StudyError(
            tr("The results cannot be written to {folder}: {reason}.").format(
                folder=self.folder, reason=system_error_reason(error)
            ),
            tr("Free up space or choose another folder, and start again to continue: finished runs are kept."),
        )

    def close(self) -> None:
        """Let other processes write to the folder."""
        if self._lock is not None:
            self._lock.release()
            with suppress(OSError):
                self._lock.path.unlink(missing_ok=True)
            self._lock = None

    def is_done(self, job: StudyJob) -> bool:
        """Return whether a run is finished without an error."""
        found = self.results.get(job.key)
        return found is not None and not found.get("error")

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append a run. Raises StudyError if it cannot be written."""
        with self._mutex:
            try:
                append_line(self.folder / RESULTS, entry)
            except OSError as error:
                raise self.write_error(error) from None
            self.results[entry["key"]] = dict(entry)

    def add_judged(self, key: str, text: int, judge: str, value: float | None, error: str = "") -> None:
        """Append the value of a text under another model. Raises StudyError."""
        entry = {"key": key, "text": text, "judge": judge, "value": value, **({"error": error} if error else {})}
        try:
            append_line(self.folder / JUDGED, entry)
        except OSError as problem:
            raise self.write_error(problem) from None
        self._keep_judged(key, text, judge, value)

    def _keep_judged(self, key: str, text: int, judge: str, value: float | None) -> None:
        self.judged.setdefault(key, {})[text, judge] = value


def _end_last_line(path: Path) -> None:
    """Remove an incomplete last line, so that the next one does not continue it. Raises OSError."""
    if not path.exists():
        return
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        with atomic_write(path) as part:
            part.write_bytes(content[: content.rfind(b"\n") + 1])


class JobQueue:
    """The jobs of one model. Of a cell and prompt, the first seed runs alone: if it used no random numbers, the other
    seeds are dropped.
    """

    def __init__(self, jobs: Sequence[StudyJob], store: StudyStore) -> None:
        self._jobs = deque[StudyJob]()
        self._known: dict[str, bool] = {}
        self._starting = set[str]()
        self._changed = threading.Condition()
        self._in_flight = 0
        self.is_stopped = False
        self.done = self.failed = 0
        for job in jobs:
            if store.is_done(job):
                self._known[job.group] = bool(store.results[job.key].get("uses_seed", True))
        for job in jobs:
            if store.is_done(job) or self._known.get(job.group) is False:
                self.done += 1
            else:
                self._jobs.append(job)
        self.total = len(jobs)

    def take(self) -> StudyJob | None:
        """Return the next job, waiting for one if necessary; None at the end."""
        with self._changed:
            while not self.is_stopped:
                for _ in range(len(self._jobs)):
                    job = self._jobs.popleft()
                    if self._known.get(job.group) is False:
                        self.done += 1
                        continue
                    if job.group in self._known or job.group not in self._starting:
                        if job.group not in self._known:
                            self._starting.add(job.group)
                        self._in_flight += 1
                        return job
                    self._jobs.append(job)
                if not self._in_flight:
                    return None
                self._changed.wait()
            return None

    def finish(self, job: StudyJob, uses_seed: bool, is_failed: bool) -> None:
        """Note that a job has ended."""
        with self._changed:
            self._in_flight -= 1
            self.done += 1
            self.failed += is_failed
            self._starting.discard(job.group)
            if not is_failed:
                self._known[job.group] = uses_seed
                if not uses_seed:
                    kept = deque(one for one in self._jobs if one.group != job.group)
                    self.done += len(self._jobs) - len(kept)
                    self._jobs = kept
            self._changed.notify_all()

    def give_back(self, job: StudyJob) -> None:
        """Put a job back at the front, for another worker."""
        with self._changed:
            self._in_flight -= 1
            self._starting.discard(job.group)
            self._jobs.appendleft(job)
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no further job start."""
        with self._changed:
            self.is_stopped = True
            self._changed.notify_all()

    @property
    def left(self) -> int:
        """Number of jobs that have not ended."""
        with self._changed:
            return len(self._jobs) + self._in_flight


def describe_result(events: Sequence[Event]) -> tuple[dict[str, Any], list[str]]:
    """Return what a study stores about a run, and the errors of measures. `ids` are the tokens of a text without
    special tokens.
    """
    found, errors = measures.describe_run(events)
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    last = events[-1] if events and isinstance(events[-1], Finished) else None
    chosen = [event for event in events if isinstance(event, TokenChosen)]
    eos_ended = {event.sequence for event in events if isinstance(event, SequenceFinished) and event.reason == "eos"}
    for place, text in enumerate(found["texts"]):
        if last is None:
            continue
        sequence = last.order[place] if place < len(last.order) else place
        tokens = [token for token in chosen if token.sequence == sequence]
        text["log_probability"] = text.pop("mean_log_probability")
        text["entropy"] = measures.mean_entropy(tokens)
        ids = list(last.sequences[place])
        is_ended = text["finish"] == "eos" or (not tokens and sequence in eos_ended)
        text["ids"] = [token.id for token in tokens if not token.special] if tokens else ids[: len(ids) - is_ended]
    found.pop("text", None)
    if started is not None:
        samples = bool(dict(started.settings).get("do_sample"))
        found["uses_seed"] = samples
        found["vocabulary"] = started.vocabulary
        found["model_name"], found["device"], found["weights"] = started.model, started.device, started.dtype
        if started.identity is not None:
            found["identity"] = {k: v for k, v in asdict(started.identity).items() if v and k != "memory_hash"}
        if started.engine:
            found["engine"] = f"{started.engine}, {started.device}"
    return found, [str(error) for error in errors]


def make_request(job: StudyJob) -> Request:
    """Return the request of a job."""
    cell = job.cell
    return Request(
        job.content, dict(cell.settings), strategy=cell.strategy, cache=cell.cache.name,
        cache_options=dict(cell.cache.settings), top_n=job.top_n, seed=job.seed,
    )  # fmt: skip


@dataclass
class StudyRunner:
    """Runs jobs and stores their results. `load` loads a local model; `records`: whether to keep recordings."""

    store: StudyStore
    load: Callable[..., Any]
    records: bool = True
    report: Report = lambda progress: None
    cancel: threading.Event = field(default_factory=threading.Event)
    uses_plugins: bool = False
    """Whether plug-ins are loaded, which may draw random numbers in any strategy."""

    def __post_init__(self) -> None:
        self._start = time.perf_counter()
        """When the first run of the model began."""
        self._ends = deque[float](maxlen=_RECENT)
        self._queues: list[JobQueue] = []
        self._mutex = threading.Lock()

    def run(self, jobs: Sequence[StudyJob]) -> None:
        """Run all jobs that are not finished, model by model. Raises StudyError if no engine is left, or the errors of
        a model that cannot be loaded; everything finished until then is kept.
        """
        by_model: dict[str, list[StudyJob]] = {}
        for job in jobs:
            by_model.setdefault(job.cell.model.name, []).append(job)
        self._queues = [JobQueue(own, self.store) for own in by_model.values()]
        self._report()
        for queue, own in zip(self._queues, by_model.values(), strict=True):
            if queue.left and not self.cancel.is_set():
                model = own[0].cell.model
                (self._run_on_engines if model.engines else self._run_local)(model, queue)

    def _report(self, notice: str = "", key: str = "") -> None:
        with self._mutex:
            done = sum(queue.done for queue in self._queues)
            left = sum(queue.left for queue in self._queues)
            seconds = self._seconds_per_run() * left if self._ends else None
            total, failed = sum(queue.total for queue in self._queues), sum(queue.failed for queue in self._queues)
            self.report(StudyProgress(min(done, total), total, failed, seconds, notice, key))

    def _start_clock(self) -> None:
        """Measure runs from here: loading a model is not part of their time."""
        self._start = time.perf_counter()
        self._ends.clear()

    def _seconds_per_run(self) -> float:
        """Return the mean of the last runs; the very first one also warms up the model."""
        if len(self._ends) > 1:
            return (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        return self._ends[0] - self._start

    # --- a local model

    def _run_local(self, chosen: StudyModel, queue: JobQueue) -> None:
        model, drafters = self._load_local(chosen)
        self._check_identity(chosen, model.identity)
        self._start_clock()
        from decodescope.core.generation.running import stream

        while not self.cancel.is_set() and (job := queue.take()) is not None:
            request = make_request(job)
            events = stream(model, request, self.cancel, drafters=drafters or None)
            try:
                entry = self._run_job(job, request, events)
            except DecodescopeError as error:
                entry = {"error": str(error)}
            except BaseException:
                queue.give_back(job)
                raise
            if entry is None:
                queue.give_back(job)
                break
            self._finish(queue, job, entry)

    def _load_local(self, chosen: StudyModel) -> tuple[Any, list[Any]]:
        options = {"device": chosen.device, "weights": chosen.weights}
        adapters = {"adapters": chosen.adapters} if chosen.adapters else {}
        return self.load(chosen.source, **options, **adapters), [self.load(name, **options) for name in chosen.drafts]

    def _check_identity(self, chosen: StudyModel, identity: Any) -> None:
        """Raise StudyError if earlier results are those of another model of this name."""
        own = {name: value for name, value in asdict(identity).items() if value and name != "memory_hash"}
        for one in self.store.results.values():
            earlier = one.get("identity")
            if one.get("model") == chosen.name and earlier and not one.get("engine") and earlier != own:
                raise StudyError(
                    tr("{model} is no longer the model of the results in {folder}.").format(
                        model=chosen.name, folder=self.store.folder
                    ),
                    tr("Choose another folder for the results, or give the model another name."),
                )

    def _run_job(self, job: StudyJob, request: Request, stream: Iterator[Event]) -> dict[str, Any] | None:
        """Return the result of a run; None if it was stopped. Raises DecodescopeError."""
        part: Path | None = None
        name = f"{job.key}{RUN_SUFFIX}"
        if self.records:
            part = self.store.folder / RUNS / f".{name}.part"
            part.parent.mkdir(parents=True, exist_ok=True)
            stream = record(part, stream, request, extra={"study": {"cell": job.cell.label, "prompt": job.prompt.id}})
        try:
            events = list(stream)
            last = events[-1] if events else None
            if not isinstance(last, Finished) or last.reason != "completed":
                return None
            if part is not None:
                os.replace(part, part.with_name(name))
        except OSError as error:
            raise self.store.write_error(error) from None
        finally:
            if part is not None:
                with suppress(OSError):  # nothing is left of a run that failed or was stopped
                    part.unlink(missing_ok=True)
        found, problems = describe_result(events)
        if self.uses_plugins:
            found["uses_seed"] = True
        if problems:
            found["measure_errors"] = problems
        return {**found, "recording": f"{RUNS}/{name}" if self.records else None}

    def _finish(self, queue: JobQueue, job: StudyJob, entry: dict[str, Any]) -> None:
        facts = {
            "key": job.key, "group": job.group, "cell": dict(job.cell.factors), "model": job.cell.model.name,
            "cache_choice": job.cell.cache.label, "prompt_id": job.prompt.id, "prompt": job.content, "seed": job.seed,
            "variables": dict(job.prompt.variables),
        }  # fmt: skip
        self.store.add({**facts, **entry})
        with self._mutex:
            self._ends.append(time.perf_counter())
        queue.finish(job, bool(entry.get("uses_seed", True)), "error" in entry)
        self._report(key=job.key)

    # --- engines

    def _run_on_engines(self, chosen: StudyModel, queue: JobQueue) -> None:
        """Keep `in_flight` requests on every engine until all jobs are done. Raises StudyError if no engine is left."""
        self._start_clock()
        engines = [_SharedEngine(address) for address in chosen.engines]
        failures: list[BaseException] = []

        def work(engine: _SharedEngine) -> None:
            try:
                self._work(engine, engines, queue)
            except BaseException as error:
                failures.append(error)
                queue.stop()

        threads = [
            threading.Thread(target=work, args=(engine,), name=f"study {engine.address} {number}", daemon=True)
            for engine in engines
            for number in range(chosen.in_flight)
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(0.1)
                    if self.cancel.is_set():
                        queue.stop()
        except BaseException:  # an interrupt: requests in flight are given up, and are repeated at the next start
            self.cancel.set()
            queue.stop()
            raise
        if failures:
            raise failures[0]
        if queue.left and not self.cancel.is_set():
            reasons = "; ".join(f"{engine.address}: {engine.reason}" for engine in engines if engine.reason)
            raise StudyError(
                tr("No engine is left, and {count} runs are missing. {reasons}").format(
                    count=queue.left, reasons=reasons
                ),
                tr("Start the engines, and start the study again: it continues with what is missing."),
            )

    def _work(self, engine: _SharedEngine, engines: Sequence[_SharedEngine], queue: JobQueue) -> None:
        model: RemoteModel | None = None
        while not self.cancel.is_set() and not queue.is_stopped:
            if engine.wait_seconds() > 0:
                if all(one.losses >= _MAX_LOSSES for one in engines):
                    queue.stop()
                    return
                if not queue.left or self.cancel.wait(min(engine.wait_seconds(), 0.2)):
                    if not queue.left:
                        return
                continue
            try:
                model = model or engine.connect()
            except DecodescopeError as error:
                self._note_loss(engine, error)
                continue
            job = queue.take()
            if job is None:
                return
            assert isinstance(model.client, RecordingClient)
            model.client.messages.clear()
            try:
                entry = self._run_remote(job, model)
            except _LOST as error:
                queue.give_back(job)
                model = None
                self._note_loss(engine, error)
                continue
            except DecodescopeError as error:
                entry = {"error": str(error)}
            except BaseException:
                queue.give_back(job)
                raise
            if entry is None:
                queue.give_back(job)
                return
            engine.losses, engine.reason = 0, ""
            self._finish(queue, job, {**entry, "address": engine.address})

    def _run_remote(self, job: StudyJob, model: RemoteModel) -> dict[str, Any] | None:
        assert isinstance(model.client, RecordingClient)
        request = make_request(job)
        entry = self._run_job(job, request, remote_models.stream(model, request, self.cancel))
        if entry is None:
            return None
        path = self.store.folder / REPLIES / f"{job.key}.jsonl"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as part:
                lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in model.client.messages)
                part.write_text("".join(lines), encoding="utf-8", errors="replace")
        except OSError as error:
            raise self.store.write_error(error) from None
        return {**entry, "reply": f"{REPLIES}/{path.name}"}

    def _note_loss(self, engine: _SharedEngine, error: DecodescopeError) -> None:
        if engine.note_loss(error):
            message = tr("{engine} does not answer; its requests go to the others. {reason}")
            self._report(message.format(engine=engine.address, reason=error.cause))


class RecordingClient(EngineClient):
    """A client that keeps the messages of streamed replies as they were received."""

    messages: list[dict[str, object]]

    def stream(self, *arguments: Any, **more: Any) -> Iterator[dict[str, object]]:
        """Yield the messages and keep them."""
        self.messages.clear()  # a trial request, or one without probabilities, came before
        for message in super().stream(*arguments, **more):
            self.messages.append(message)
            yield message


class _SharedEngine:
    """One address, shared by its workers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.losses = 0
        """Failed attempts since the last reply."""
        self.reason = ""
        self._retry_at = 0.0
        self._mutex = threading.Lock()

    def connect(self) -> RemoteModel:
        """Return a connection for one worker. Raises EngineError, ModelNotFoundError."""
        model = remote_models.connect(self.address)
        client = RecordingClient(model.client.address, model.client.timeouts)
        client.messages = []
        return replace(model, client=client)

    def wait_seconds(self) -> float:
        """Return the seconds until the engine may be tried again."""
        return self._retry_at - time.monotonic()

    def note_loss(self, error: DecodescopeError) -> bool:
        """Note a failed attempt; return whether it is the first one after a reply. Attempts that fail together count as
        one.
        """
        with self._mutex:
            if self.wait_seconds() > 0:
                return False
            self.losses += 1
            self.reason = error.cause
            self._retry_at = time.monotonic() + _PAUSES[min(self.losses, len(_PAUSES)) - 1]
            return self.losses == 1
