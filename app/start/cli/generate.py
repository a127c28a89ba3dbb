"""`decodescope generate`: run a list of requests, one JSON object per line, and continue where a killed run stopped."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from decodescope.app.start.cli.commands import DONE, FAILED, INTERRUPTED, INVALID
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.app.start.cli.progress_line import progress_bar
from decodescope.app.start.cli.values import output_folder
from decodescope.app.state.text_formats import to_csv
from decodescope.core.common.program_name import RUN_SUFFIX
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import DecodescopeError
from decodescope.core.system.file_writing import (
    HeldElsewhereError,
    HeldLock,
    acquire_file,
    atomic_write,
)
from decodescope.core.system.system_errors import DISK_FULL_ERRORS, system_error_reason
from decodescope.resources.language import join_names, mark, tr, trn

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.core.events import Event

RESULTS, TABLE, RUNS = "results.jsonl", "results.csv", "runs"
"""Files in the output folder: one line per run, a table with a row per text, and the folder of recordings."""
LOCK = ".generate.lock"
"""File in the output folder that is locked while a process writes there."""
FIELDS = (
    "id",
    "prompt",
    "model",
    "strategy",
    "settings",
    "seed",
    "seeds",
    "cache",
    "cache_settings",
    "drafts",
    "top_n",
)
_TYPES = {
    "model": str, "strategy": str | None, "cache": str, "settings": dict, "cache_settings": dict, "drafts": list,
    "seeds": list,
}  # fmt: skip
"""Types of the values that are needed to find a model, a strategy and a cache; the core checks the others."""
MAX_LINE_BYTES = 10_000_000
MAX_RUNS = 1_000_000
MAX_DEPTH = 100
"""Levels of objects and lists inside a line."""
MAX_NAME_BYTES = 100
"""Bytes of an id in the name of a recording; file systems allow 255 for the whole name."""
_USE = mark(
    "run the code of a plug-in with your permissions: a file, or a folder with custom_generate/generate.py; repeatable"
)
_EXAMPLE = mark("""\
a line of FILE.jsonl; only the prompt (text, chat messages or token ids) is required:
  {"id": "story", "prompt": "Once upon a time", "model": "storyteller", "strategy": "sampling",
   "settings": {"temperature": 0.8, "max_new_tokens": 40}, "seeds": [1, 2, 3]}
further keys: seed, cache, cache_settings, drafts (names of draft models), top_n (recorded alternatives)

exit codes: 0 all runs are done; 1 a run failed (see the errors in results.jsonl; start again to repeat it);
2 the command line or FILE.jsonl is invalid; 130 interrupted (start again to continue)""")


class InputError(Exception):
    """Raised for a request file that cannot be used; the message names the line."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a request."""

    line: int
    id: str
    seed: int
    request: Mapping[str, Any]
    """The line's values; without seeds."""

    @property
    def key(self) -> str:
        """Digest of everything that determines the run, by which finished runs are recognized."""
        content = json.dumps([self.id, self.seed, self.request], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def request_key(self) -> str:
        """Digest of everything but the id and the seed."""
        content = json.dumps(self.request, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def file_name(self) -> str:
        """Name of its recording."""
        name = (
            re.sub(r"[^\w.-]+", "_", self.id)[:60].encode("utf-8", "replace")[:MAX_NAME_BYTES].decode("utf-8", "ignore")
        )
        name = name.strip("._") or "run"
        return f"{self.line:05d}-{name}-{self.seed}-{self.key[:6]}{RUN_SUFFIX}"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("generate", tr(_EXAMPLE))
    add = parser.add_argument
    add(
        "file", type=Path, metavar="FILE.jsonl", help=tr("the requests, one JSON object per line; - for standard input")
    )
    add(
        "--out",
        type=output_folder,
        required=True,
        metavar="DIR",
        help=tr("folder for recordings, results.jsonl and results.csv"),
    )
    add("--model", default="storyteller", metavar="M", help=tr("model of the lines without one; default: %(default)s"))
    add("--device", default="auto", metavar="D", help=tr("auto, cpu, cuda, mps or spread"))
    add("--weights", default="auto", metavar="W", help=tr("auto, float32, bfloat16, int8, int4 or fp8"))
    add("--plugins", action="store_true", help=tr("load the plug-ins that are switched on in the window"))
    add("--use", action="append", default=[], metavar="PATH", help=tr(_USE))
    add("--no-recordings", action="store_true", help=tr("write only results.jsonl and results.csv"))
    add("--plain-csv", action="store_true", help=tr("do not escape texts in the CSV that a spreadsheet would run"))
    add("--quiet", action="store_true", help=tr("show no progress bar"))
    return parser


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    try:
        planned = plan_runs(_read_lines(options.file), options.model)
        output = _make_output(options)
    except InputError as error:
        print(f"decodescope generate: {error}", file=sys.stderr)
        return INVALID
    try:
        return _run_all(planned, output, options)
    except KeyboardInterrupt:
        print(tr("Interrupted. Start the same command again to continue."), file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        print(f"decodescope generate: {_write_problem(options.out, error)}", file=sys.stderr)
        return FAILED
    except DecodescopeError as error:
        print(f"decodescope generate: {error}", file=sys.stderr)
        return FAILED
    finally:
        output.close()


def _make_output(options: argparse.Namespace) -> Output:
    """Return the output folder, created if necessary. Raises InputError."""
    try:
        return Output(options.out, records=not options.no_recordings, guards=not options.plain_csv)
    except HeldElsewhereError:
        message = tr(
            "Another `decodescope generate` is writing to {folder}. Wait until it has ended, or choose another "
            "folder with --out."
        )
        raise InputError(message.format(folder=options.out)) from None
    except OSError as error:
        raise InputError(_write_problem(options.out, error)) from None


def _write_problem(folder: Path, error: OSError) -> str:
    """Return why results cannot be written, with the remedy."""
    if error.errno in DISK_FULL_ERRORS:
        message = tr("The results cannot be written to {folder}: {reason}. Free up space, and start again to continue.")
    else:
        message = tr("The results cannot be written to {folder}: {reason}. Choose another folder with --out.")
    return message.format(folder=folder, reason=system_error_reason(error))


def _read_lines(path: Path) -> list[str]:
    """Return the lines of the request file. Raises InputError."""
    try:
        if str(path) == "-":
            return list(_split_lines(sys.stdin.buffer))
        with path.open("rb") as file:
            return list(_split_lines(file))
    except OSError as error:
        raise InputError(
            tr("{path} cannot be read: {reason}. Check its name, or pass - for standard input.").format(
                path=path, reason=system_error_reason(error)
            )
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            tr("{path} is not UTF-8 text. Pass a file with one JSON object per line.").format(path=path)
        ) from None


def _split_lines(file: IO[bytes]) -> Iterator[str]:
    """Yield the lines of a file; of one that is too long, only the beginning, as the last one.

    JSON allows the other line breaks of Unicode inside a text. Raises UnicodeDecodeError.
    """
    encoding = "utf-8-sig"
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            yield line.decode(encoding, "ignore").ljust(MAX_LINE_BYTES + 1)
            return
        yield line.decode(encoding).rstrip("\n")
        encoding = "utf-8"


def _depth(value: object) -> int:
    """Return the levels of objects and lists in a JSON value, at most MAX_DEPTH + 1."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inside: list[object] = []
        for one in level:
            if isinstance(one, dict | list):
                inside += one.values() if isinstance(one, dict) else one
        depth += any(isinstance(one, dict | list) for one in level)
        level = inside
    return depth


def plan_runs(lines: Sequence[str], model: str) -> list[PlannedRun]:
    """Return the runs of a request file; `model` is that of lines without one. Raises InputError."""
    planned: list[PlannedRun] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            planned += _runs_of_line(number, line, model)
        if len(planned) > MAX_RUNS:
            raise InputError(tr("The file has more than {count:,} runs.").format(count=MAX_RUNS))
    if not planned:
        raise InputError(tr("The file contains no requests. Write one JSON object per line."))
    return planned


def _runs_of_line(number: int, line: str, model: str) -> Iterator[PlannedRun]:
    """Yield a run for each seed of a line. Raises InputError."""

    def fail(problem: str) -> InputError:
        return InputError(tr("Line {line}: {problem}").format(line=number, problem=problem))

    if len(line) > MAX_LINE_BYTES:
        raise fail(tr("it is longer than {size} MB. Shorten it.").format(size=MAX_LINE_BYTES // 1_000_000))
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise fail(tr("it is not valid JSON ({reason}).").format(reason=error)) from None
    if not isinstance(found, dict):
        raise fail(tr("it is not a JSON object."))
    if _depth(found) > MAX_DEPTH:
        raise fail(tr("its values are nested in more than {count} levels.").format(count=MAX_DEPTH))
    if unknown := [name for name in found if name not in FIELDS]:
        raise fail(
            tr("the key “{name}” is unknown. Available: {names}.").format(name=unknown[0], names=join_names(FIELDS))
        )
    if not isinstance(found.get("prompt"), str | list):
        raise fail(tr("it has no prompt (text, chat messages or token ids)."))
    for name, kind in _TYPES.items():
        if name in found and not isinstance(found[name], kind):
            raise fail(tr("the value of “{name}” has the wrong type.").format(name=name))
    if not all(isinstance(draft, str) for draft in found.get("drafts", ())):
        raise fail(tr("the value of “{name}” has the wrong type.").format(name="drafts"))
    if "seed" in found and "seeds" in found:
        raise fail(tr("it has both “seed” and “seeds”."))
    seeds = found.get("seeds", [found.get("seed", 0)])
    if not seeds or not all(isinstance(seed, int) and not isinstance(seed, bool) for seed in seeds):
        raise fail(tr("its seeds are not whole numbers."))
    request = {"model": model, **{name: found[name] for name in FIELDS[1:] if name in found and "seed" not in name}}
    for seed in dict.fromkeys(seeds):
        yield PlannedRun(number, str(found.get("id", number)), seed, request)


_REQUEST = "request"
"""Key of `PlannedRun.request_key` in a result."""


@dataclass(slots=True)
class Output:
    """The output folder, locked against other processes. `results` are the finished runs by key.

    Raises OSError if the folder cannot be written, HeldElsewhereError if another process writes there.
    """

    folder: Path
    records: bool = True
    guards: bool = True
    """Whether texts in the table are escaped against running as formulas."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    _lock: HeldLock | None = None

    def __post_init__(self) -> None:
        (self.folder / RUNS if self.records else self.folder).mkdir(parents=True, exist_ok=True)
        self._lock = acquire_file(self.folder / LOCK)
        try:
            self._read_results()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let other processes write to the folder."""
        if self._lock is not None:
            self._lock.release()
            with suppress(OSError):
                self._lock.path.unlink(missing_ok=True)
            self._lock = None

    def _read_results(self) -> None:
        path = self.folder / RESULTS
        if not path.exists():
            return
        whole = []
        for line in path.read_bytes().splitlines():
            with suppress(ValueError, RecursionError):  # the last line of a killed run may be incomplete
                found = json.loads(line)
                if isinstance(found, dict) and isinstance(found.get("key"), str):
                    self.results[found["key"]] = found
                    whole.append(line)
        with atomic_write(path) as part:
            part.write_bytes(b"".join(line + b"\n" for line in whole))

    def is_done(self, planned: PlannedRun) -> bool:
        """Return whether a run is finished without an error, also from another line, and its recording is there."""
        found = self.results.get(planned.key)
        if found is None or found.get("error"):
            return False
        recording = found.get("recording")
        return not self.records or (isinstance(recording, str) and (self.folder / recording).is_file())

    def same_result(self, planned: PlannedRun) -> dict[str, Any] | None:
        """Return the result of a finished run that differs only in its seed, if that has no effect."""
        for found in self.results.values():
            if found.get(_REQUEST) != planned.request_key or found.get("uses_seed", True) or found.get("error"):
                continue
            recording = found.get("recording")
            if not self.records or (isinstance(recording, str) and (self.folder / recording).is_file()):
                return {name: value for name, value in found.items() if name not in ("key", "line", "id", "seed")}
        return None

    def add(self, planned: PlannedRun, result: Mapping[str, Any]) -> None:
        """Append the result of a run; it is on the disk when this returns."""
        own = {"line": planned.line, "id": planned.id, "seed": planned.seed}
        entry = {"key": planned.key, _REQUEST: planned.request_key, **own, **result}
        self.results[planned.key] = entry
        with (self.folder / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")
            file.flush()
            os.fsync(file.fileno())

    def write_table(self, planned: Sequence[PlannedRun]) -> None:
        """Write a row for each text of these runs, in order, as CSV. Raises OSError."""
        rows = [row for one in planned if one.key in self.results for row in _text_rows(self.results[one.key])]
        names = list(dict.fromkeys(name for row in rows for name in row))
        table: list[list[object]] = [list(names), *([_cell(row.get(name)) for name in names] for row in rows)]
        with atomic_write(self.folder / TABLE) as part:
            text = to_csv(table, self.guards)
            part.write_text(text, encoding="utf-8", errors="replace", newline="")  # replaces lone surrogates


def _text_rows(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each text of a run: what identifies it, its settings, its measures, and the run's
    metrics.
    """
    whole = {name: value for name, value in entry.items() if name not in ("key", "text", *_GROUPS)}
    settings, metrics = entry.get("settings") or {}, entry.get("metrics") or {}
    texts = entry.get("texts") or [{"text": entry.get("text", "")}]
    for number, text in enumerate(texts, 1):
        measures = text.get("measures") or {}
        own = {name: value for name, value in text.items() if name != "measures"}
        row = {**whole, **({"text_number": number} if len(texts) > 1 else {}), **own}
        yield row | {name: value for name, value in (settings | measures | metrics).items() if name not in row}


_GROUPS = ("texts", "settings", "metrics")
"""Keys of a result that have columns of their own."""


def _cell(value: object) -> object:
    """Return a value for the table: lists and objects as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _run_all(planned: Sequence[PlannedRun], output: Output, options: argparse.Namespace) -> int:
    """Run what is not finished, model by model."""
    waiting = [one for one in planned if not output.is_done(one)]
    if done := len(planned) - len(waiting):
        message = trn("{count} run is already finished.", "{count} runs are already finished.", done)
        print(message.format(count=done), file=sys.stderr)
    if not waiting:
        output.write_table(planned)
        return DONE
    if options.plugins:
        load_plugins()
    if options.use:
        from decodescope.core.plugins import use

        use(*options.use)
    order = {name: index for index, name in enumerate(dict.fromkeys(one.request["model"] for one in waiting))}
    waiting.sort(key=lambda one: order[one.request["model"]])
    models = ModelCache(options.device, options.weights)
    failures = repeated = 0
    with_plugins = bool(options.plugins or options.use)
    with progress_bar(options.quiet, iterable=waiting, unit=tr("run")) as bar:
        for one in bar:
            bar.set_postfix_str(tr("{id}, seed {seed}").format(id=one.id, seed=one.seed), refresh=False)
            result = output.same_result(one)
            repeated += result is not None
            result = result or _run_one(one, models, output, with_plugins)
            failures += "error" in result
            output.add(one, result)
            if "error" in result:
                bar.write(f"{one.id}: {result['error']}", file=sys.stderr)
    output.write_table(planned)
    if repeated:
        message = trn(
            "{count} run does not depend on its seed and was not repeated.",
            "{count} runs do not depend on their seeds and were not repeated.",
            repeated,
        )
        print(message.format(count=repeated), file=sys.stderr)
    if failures:
        message = trn("{count} run failed.", "{count} runs failed.", failures)
        print(message.format(count=failures), file=sys.stderr)
    return FAILED if failures else DONE


class ModelCache:
    """The models of the current run; others are released."""

    def __init__(self, device: str, weights: str) -> None:
        self._device, self._weights = device, weights
        self._models: dict[str, Any] = {}

    def load(self, name: str, drafts: Sequence[str]) -> tuple[Any, list[core.LoadedModel]]:
        """Return a model and its draft models. Raises DecodescopeError."""
        from decodescope import core

        wanted = dict.fromkeys((name, *drafts))
        self._models = {key: model for key, model in self._models.items() if key in wanted}
        for each in wanted:
            if each not in self._models:
                from transformers.utils import logging

                logging.disable_progress_bar()
                self._models[each] = core.load(each, device=self._device, weights=self._weights)
        return self._models[name], [self._models[draft] for draft in drafts]


def load_plugins() -> None:
    """Load the plug-ins that are switched on; report those that cannot be loaded."""
    from decodescope.core.plugins import PluginFolder, install

    for plugin in install(PluginFolder().load()):
        if plugin.error is not None:
            print(plugin.error, file=sys.stderr)
        elif plugin.state == "changed":
            message = tr("“{plugin}” was changed and is not loaded. Switch it on again in the window.")
            print(message.format(plugin=plugin.title), file=sys.stderr)


def _run_one(planned: PlannedRun, models: ModelCache, output: Output, with_plugins: bool) -> dict[str, Any]:
    """Run one request and return its result; an error is part of it. Raises OSError if it cannot be written."""
    from decodescope import core

    events: list[Event] = []
    given = planned.request
    facts = {name: given.get(name) for name in ("model", "strategy", "cache", "drafts", "prompt")}
    part = output.folder / RUNS / f".{planned.file_name}.part"
    recording = f"{RUNS}/{planned.file_name}" if output.records else None
    try:
        model, drafts = models.load(given["model"], given.get("drafts", ()))
        request = make_request(planned)
        stream = core.stream(model, request, drafters=drafts or None)
        if output.records:
            stream = core.record(part, stream, request, extra={"id": planned.id})
        for event in stream:
            events.append(event)
        if output.records:
            if (problem := core.trace.read(part).trouble) is not None:
                raise problem
            os.replace(part, output.folder / RUNS / planned.file_name)
    except DecodescopeError as error:
        return {**facts, **_describe(events), "error": str(error)}
    finally:
        with suppress(OSError):  # nothing is left of a run that failed or was interrupted
            part.unlink(missing_ok=True)
    return {
        **facts,
        **_describe(events),
        "uses_seed": with_plugins or core.measures.uses_seed(events),
        "recording": recording,
    }


def _describe(events: Sequence[Event]) -> dict[str, Any]:
    """Return what a result contains about a run; report the errors of measures."""
    from decodescope.core.measures import describe_run

    found, errors = describe_run(events)
    for problem in errors:
        print(problem, file=sys.stderr)
    return found


def make_request(planned: PlannedRun) -> core.Request:
    """Return the request of a run."""
    from decodescope import core

    given = planned.request
    return core.Request(
        given["prompt"],
        given.get("settings", {}),
        strategy=given.get("strategy"),
        cache=given.get("cache", "dynamic"),
        cache_options=given.get("cache_settings", {}),
        top_n=given.get("top_n", 10),
        seed=planned.seed,
    )
