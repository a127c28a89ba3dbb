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
from typing import TYPE_CHECKING, Any

from decodescope.app.start.cli.commands import DONE, FAILED, INTERRUPTED, INVALID
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.app.state.text_formats import to_csv
from decodescope.core.common.program_name import RUN_SUFFIX
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import DecodescopeError
from decodescope.core.system.file_writing import atomic_write
from decodescope.resources.language import mark, tr, trn

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.core.events import Event

RESULTS, TABLE, RUNS = "results.jsonl", "results.csv", "runs"
"""Files in the output folder: one line per run, the same as a table, and the folder of recordings."""
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
_METRICS = ("prompt_tokens", "new_tokens", "seconds", "time_to_first_token", "decode_tokens_per_second", "cache_bytes")
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
    def file_name(self) -> str:
        """Name of its recording."""
        name = re.sub(r"[^\w.-]+", "_", self.id)[:60].strip("._") or "run"
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
        type=Path,
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
    except (OSError, DecodescopeError) as error:
        print(f"decodescope generate: {error}", file=sys.stderr)
        return FAILED
    finally:
        with suppress(OSError):
            output.write_table(planned)


def _make_output(options: argparse.Namespace) -> Output:
    """Return the output folder, created if necessary. Raises InputError."""
    try:
        return Output(options.out, records=not options.no_recordings, guards=not options.plain_csv)
    except OSError as error:
        message = tr("The results cannot be written to {folder}: {reason}. Choose another folder with --out.")
        reason = error.strerror or type(error).__name__
        raise InputError(message.format(folder=options.out, reason=reason)) from None


def _read_lines(path: Path) -> list[str]:
    """Return the lines of the request file. Raises InputError."""
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        # JSON allows the other line breaks of Unicode inside a text, where str.splitlines() would break the line.
        return data.decode("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(
            tr("{path} cannot be read: {reason}.").format(path=path, reason=error.strerror or type(error).__name__)
        ) from None
    except UnicodeDecodeError:
        raise InputError(tr("{path} is not UTF-8 text.").format(path=path)) from None


def plan_runs(lines: Sequence[str], model: str) -> list[PlannedRun]:
    """Return the runs of a request file; `model` is that of lines without one. Raises InputError."""
    planned: list[PlannedRun] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            planned += _runs_of_line(number, line, model)
        if len(planned) > MAX_RUNS:
            raise InputError(tr("The file has more than {count:,} runs.").format(count=MAX_RUNS))
    if not planned:
        raise InputError(tr("The file contains no requests."))
    return planned


def _runs_of_line(number: int, line: str, model: str) -> Iterator[PlannedRun]:
    """Yield a run for each seed of a line. Raises InputError."""

    def fail(problem: str) -> InputError:
        return InputError(tr("Line {line}: {problem}").format(line=number, problem=problem))

    if len(line) > MAX_LINE_BYTES:
        raise fail(tr("it is longer than {size} MB.").format(size=MAX_LINE_BYTES // 1_000_000))
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise fail(tr("it is not valid JSON ({reason}).").format(reason=error)) from None
    if not isinstance(found, dict):
        raise fail(tr("it is not a JSON object."))
    if unknown := [name for name in found if name not in FIELDS]:
        raise fail(
            tr("the key “{name}” is unknown. Available: {names}.").format(name=unknown[0], names=", ".join(FIELDS))
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


@dataclass(slots=True)
class Output:
    """The output folder. `results` are the finished runs by key. Raises OSError if the folder cannot be written."""

    folder: Path
    records: bool = True
    guards: bool = True
    """Whether texts in the table are escaped against running as formulas."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / RUNS if self.records else self.folder).mkdir(parents=True, exist_ok=True)
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

    def add(self, planned: PlannedRun, result: Mapping[str, Any]) -> None:
        """Append the result of a run; it is on the disk when this returns."""
        entry = {"key": planned.key, "line": planned.line, "id": planned.id, "seed": planned.seed, **result}
        self.results[planned.key] = entry
        with (self.folder / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")
            file.flush()
            os.fsync(file.fileno())

    def write_table(self, planned: Sequence[PlannedRun]) -> None:
        """Write the results of these runs, in order, as CSV."""
        rows = [self.results[one.key] for one in planned if one.key in self.results]
        names = list(dict.fromkeys(name for row in rows for name in row if name not in ("key", "texts", "metrics")))
        metrics = list(dict.fromkeys(name for row in rows for name in row.get("metrics") or {}))
        table = [[*names, *metrics]]
        for row in rows:
            values = row.get("metrics") or {}
            table.append([*(row.get(name) for name in names), *(values.get(name) for name in metrics)])
        with atomic_write(self.folder / TABLE) as part:
            text = to_csv(table, self.guards)
            part.write_text(text, encoding="utf-8", errors="replace", newline="")  # replaces lone surrogates


def _run_all(planned: Sequence[PlannedRun], output: Output, options: argparse.Namespace) -> int:
    """Run what is not finished, model by model."""
    from tqdm import tqdm

    waiting = [one for one in planned if not output.is_done(one)]
    if done := len(planned) - len(waiting):
        message = trn("{count} run is already finished.", "{count} runs are already finished.", done)
        print(message.format(count=done), file=sys.stderr)
    if not waiting:
        return DONE
    if options.plugins:
        _load_plugins()
    if options.use:
        from decodescope.core.plugins import use

        use(*options.use)
    order = {name: index for index, name in enumerate(dict.fromkeys(one.request["model"] for one in waiting))}
    waiting.sort(key=lambda one: order[one.request["model"]])
    models = ModelCache(options.device, options.weights)
    failures = 0
    with tqdm(waiting, disable=options.quiet, unit=tr("run"), file=sys.stderr) as bar:
        for one in bar:
            bar.set_postfix_str(tr("{id}, seed {seed}").format(id=one.id, seed=one.seed), refresh=False)
            result = _run_one(one, models, output)
            failures += "error" in result
            output.add(one, result)
            if "error" in result:
                bar.write(f"{one.id}: {result['error']}", file=sys.stderr)
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


def _load_plugins() -> None:
    """Load the plug-ins that are switched on; report those that cannot be loaded."""
    from decodescope.core.plugins import PluginFolder, install

    for plugin in install(PluginFolder().load()):
        if plugin.error is not None:
            print(plugin.error, file=sys.stderr)
        elif plugin.state == "changed":
            message = tr("“{plugin}” was changed and is not loaded. Switch it on again in the window.")
            print(message.format(plugin=plugin.title), file=sys.stderr)


def _run_one(planned: PlannedRun, models: ModelCache, output: Output) -> dict[str, Any]:
    """Run one request and return its result; an error is part of it."""
    from decodescope import core

    events: list[Event] = []
    facts = {"model": planned.request["model"], "strategy": planned.request.get("strategy")}
    part = output.folder / RUNS / f".{planned.file_name}.part"
    try:
        model, drafts = models.load(planned.request["model"], planned.request.get("drafts", ()))
        request = make_request(planned)
        stream = core.stream(model, request, drafters=drafts or None)
        if output.records:
            stream = core.record(part, stream, request, extra={"id": planned.id})
        for event in stream:
            events.append(event)
        if output.records:
            os.replace(part, output.folder / RUNS / planned.file_name)
    except DecodescopeError as error:
        return {**facts, **_texts_of(events), "error": str(error)}
    finally:
        with suppress(OSError):  # nothing is left of a run that failed or was interrupted
            part.unlink(missing_ok=True)
    return {**facts, **_texts_of(events), "recording": f"{RUNS}/{planned.file_name}" if output.records else None}


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


def _texts_of(events: Sequence[Event]) -> dict[str, Any]:
    """Return the texts of a run, complete or not, with metrics and measures."""
    from decodescope import core
    from decodescope.core.events import Finished, RunStarted, TokenChosen

    started = next((event for event in events if isinstance(event, RunStarted)), None)
    tokens = [event for event in events if isinstance(event, TokenChosen) and event.sequence == 0]
    last = events[-1] if events and isinstance(events[-1], Finished) else None
    text = last.texts[0] if last is not None and last.texts else "".join(token.text for token in tokens)
    found: dict[str, Any] = {"strategy": started.strategy} if started is not None else {}
    found["text"] = text
    if last is None:
        return found
    if len(last.texts) > 1:
        found["texts"] = list(last.texts)
    values, errors = core.measures.measure(core.measures.MeasuredText(text, tokens))
    for problem in errors:
        print(problem, file=sys.stderr)
    return found | {"metrics": {name: getattr(last.metrics, name) for name in _METRICS} | values}
