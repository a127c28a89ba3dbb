"""`decodescope watch script.py`: run a script and capture every `generate` in it."""

from __future__ import annotations

import argparse
import atexit
import functools
import os
import runpy
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decodescope.core.errors import FileNotWrittenError, ParameterError, TraceError
from decodescope.core.generate_capture.live_sender import finish_sending, is_window_open
from decodescope.core.settings import check_top_n
from decodescope.core.system.file_writing import check_destination, not_written_error
from decodescope.core.trace.live_address import LiveAddress
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    import torch

    from decodescope.core.generate_capture.capture import Capture, CapturedRun, CapturedRunList


class ScriptWatcher:
    """Captures each model of this process on its first `generate`."""

    def __init__(self, *, top_n: int = 10, live: bool = True, releases: bool = False) -> None:
        """`releases`: whether runs are emptied once an open window has received them."""
        self._top_n, self._live, self._releases = top_n, live, releases
        self._runs: CapturedRunList | None = None
        self._captures: weakref.WeakSet[Capture] = weakref.WeakSet()
        """One capture per model. Only the model itself refers to it, so that the script can free the model."""
        self._known: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Capture all models in this block."""
        from transformers.generation import utils

        mixin: Any = utils.GenerationMixin
        original = mixin.generate

        @functools.wraps(original)
        def generate(model: torch.nn.Module, *args: object, **kwargs: object) -> object:
            return self._generate(functools.partial(original, model), model, args, kwargs)

        mixin.generate = generate
        try:
            yield
        finally:
            mixin.generate = original
            for capture in list(self._captures):
                capture.__exit__(None, None, None)

    def _generate(
        self, original: Callable[..., object], model: torch.nn.Module, args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:  # fmt: skip
        from decodescope.core.generate_capture.capture import CapturedRunList, capture
        from decodescope.core.generate_recording.generate_hooks import (
            GenerateHooks,
            is_call_in_progress,
            warn_not_recorded,
        )

        with self._lock:
            is_new = model not in self._known and not is_call_in_progress()
            if is_new:
                self._known.add(model)
                tokenizer = kwargs.get("tokenizer") or find_tokenizer(model)
                if self._runs is None:
                    self._runs = CapturedRunList(self._releases)
                try:
                    made = capture(model, tokenizer, top_n=self._top_n, live=self._live, runs=self._runs)
                    self._captures.add(made.__enter__())
                except Exception as error:  # a model that cannot be captured must still generate
                    warn_not_recorded(error)
                    is_new = False
        return GenerateHooks.record_call(model, original, args, kwargs) if is_new else original(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._runs) if self._runs is not None else 0

    def runs(self) -> list[CapturedRun]:
        """Return the runs of all models, in the order in which they began."""
        return self._runs.captured() if self._runs is not None else []

    def unsent_runs(self) -> list[CapturedRun]:
        """Return the runs that no window has received; waits at most two seconds for those being sent."""
        if self._runs is None:
            return []
        finish_sending()
        return self._runs.unsent()


def find_tokenizer(model: torch.nn.Module) -> object:
    """Return the tokenizer of a model's folder or of its files in the Hub's cache; None if there is none. Nothing is
    downloaded.
    """
    from transformers import AutoTokenizer

    origin = getattr(getattr(model, "config", None), "_name_or_path", "")
    if not origin:
        return None
    try:
        found: object = AutoTokenizer.from_pretrained(origin, local_files_only=True)
        return found
    except Exception:  # transformers raises many kinds for incomplete files; the runs then contain token ids
        return None


def run_script(path: Path, arguments: Sequence[str]) -> int:
    """Run a script as `python path arguments…` would, and return its exit code. Its traceback, if it fails, begins in
    the script.
    """
    former, former_path = sys.argv, sys.path[:]
    sys.argv, sys.path[0:0] = [str(path), *arguments], [str(path.resolve().parent)]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != str(path):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.argv, sys.path[:] = former, former_path
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = argparse.ArgumentParser(
        prog="decodescope watch",
        description=tr("Run a Python script and show every generate of a transformers model in an open window."),
    )
    parser.add_argument("script", type=Path, help=tr("the script"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=tr("arguments of the script"))
    parser.add_argument("--save", type=str, metavar="FOLDER", help=tr("also write each run as a recording"))
    parser.add_argument("--top-n", type=int, default=10, metavar="N", help=tr("alternatives per token"))
    return parser


def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code: the script's own, 2 for invalid arguments.

    The runs are written when the process ends: Python waits for the script's threads and calls its exit functions
    before that, and both may call `generate`.
    """
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not options.script.is_file():
        parser.error(tr("{path} is not a file. Pass a Python script.").format(path=options.script))
    try:
        check_top_n(options.top_n)
    except ParameterError as error:
        parser.error(str(error))
    if options.save is not None and not str(options.save).strip():
        parser.error(tr("The name is empty. Pass the name of a file or folder."))
    window, folder = LiveAddress.find(), Path(options.save) if options.save is not None else None
    if folder is None and (window is None or not is_window_open(window)):
        folder = _default_folder(options.script)
        print(tr("No window is open: the runs are written to {folder}.").format(folder=folder), file=sys.stderr)
    try:
        check_destination(folder or _default_folder(options.script), is_folder=True)
    except FileNotWrittenError as error:
        parser.error(tr("{problem} Choose a folder with --save.").format(problem=error.cause))
    watcher = ScriptWatcher(top_n=options.top_n, releases=folder is None)
    at_end = ExitStack()
    at_end.callback(_save, watcher, options.script, folder, os.getpid())
    at_end.enter_context(watcher.watching())
    atexit.register(at_end.close)
    return run_script(options.script, options.arguments)


def _default_folder(script: Path) -> Path:
    return Path(f"{script.stem}-runs")


def _save(watcher: ScriptWatcher, script: Path, folder: Path | None, script_process: int) -> None:
    """Write the runs into a folder; without one, those that the window did not receive. A process that the script
    forked uses names of its own.
    """
    count = len(watcher)
    print(trn("{count:,} run captured.", "{count:,} runs captured.", count).format(count=count), file=sys.stderr)
    runs = watcher.runs() if folder is not None else watcher.unsent_runs()
    if not runs:
        return
    if folder is None:
        folder = _default_folder(script)
        text = trn(
            "The window did not receive {count:,} run, which is written to {folder}.",
            "The window did not receive {count:,} runs, which are written to {folder}.", len(runs),
        )  # fmt: skip
        print(text.format(count=len(runs), folder=folder), file=sys.stderr)
    process = os.getpid()
    name = "run" if process == script_process else f"run-{process}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, run in enumerate(runs, 1):
            run.save(folder / f"{name}-{number}.decodescope")
    except OSError as error:
        print(f"decodescope watch: {not_written_error(folder, error)}", file=sys.stderr)
    except TraceError as error:
        print(f"decodescope watch: {error}", file=sys.stderr)
