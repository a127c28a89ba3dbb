"""`decodescope study`: run a study from a TOML file, continue it, and write its table and report."""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decodescope.app.start.cli.commands import DONE, FAILED, INTERRUPTED, INVALID
from decodescope.app.start.cli.interruption import interrupt_sets
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.app.start.cli.progress_line import progress_bar
from decodescope.app.start.cli.values import output_folder
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import DecodescopeError, StudyError
from decodescope.resources.language import mark, tr, trn

if TYPE_CHECKING:
    from tqdm import tqdm

    from decodescope.core.studies import Study, StudyProgress

TABLE, REPORT = "study.csv", "study.html"
"""Files in the folder of results."""
_EXAMPLE = mark("""\
an example of FILE.toml (every key: docs/guide/studies.md):
  seeds = 4
  measures = ["length", "log_probability", "distinct_2", "repetition"]
  baseline = { temperature = 1.0 }
  [prompts]
  texts = ["Once upon a time", "One day, a dog"]
  [settings]
  do_sample = true
  max_new_tokens = 40
  [grid]
  temperature = [0.5, 1.0, 1.5]

exit codes: 0 all runs are done; 1 a run failed, or the study could not go on (start again to continue);
2 the command line or FILE.toml is invalid; 130 interrupted (start again to continue)""")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("study", tr(_EXAMPLE))
    add = parser.add_argument
    add("file", type=Path, metavar="FILE.toml", help=tr("the study"))
    add(
        "--out",
        type=output_folder,
        metavar="DIR",
        help=tr("folder for the results; default: the file's name with -results"),
    )
    add(
        "--pilot",
        action="store_true",
        help=tr("run eight prompts with two seeds, and tell how long the rest takes and how many prompts are needed"),
    )
    add("--check", action="store_true", help=tr("only check the file and count the runs"))
    add("--report", action="store_true", help=tr("run nothing; write table and report from the results so far"))
    add("--plugins", action="store_true", help=tr("load the plug-ins that are switched on in the window"))
    add("--use", action="append", default=[], metavar="PATH",
        help=tr("run the code of a plug-in with your permissions: a file, or a folder with "
            "custom_generate/generate.py; repeatable"))  # fmt: skip
    add("--plain-csv", action="store_true", help=tr("do not escape texts in the CSV that a spreadsheet would run"))
    add("--quiet", action="store_true", help=tr("show no progress bar"))
    return parser


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    from decodescope import core

    try:
        _load_plugins(options)
        study = core.Study(options.file, options.out)
    except DecodescopeError as error:
        print(f"decodescope study: {error}", file=sys.stderr)
        return INVALID
    if options.check:
        plan = study.plan
        print(
            tr(
                "{cells} cells × {prompts} prompts × {seeds} seeds = {count:,} runs; fewer where a cell is not random."
            ).format(cells=len(plan.cells), prompts=len(plan.prompts), seeds=len(plan.seeds), count=plan.run_count)
        )
        return DONE
    with study:
        return _run_study(study, options)


def _load_plugins(options: argparse.Namespace) -> None:
    """Load plug-ins before the file is read: it may name their settings and measures."""
    if options.plugins:
        from decodescope.app.start.cli.generate import load_plugins

        load_plugins()
    if options.use:
        from decodescope.core.plugins import use

        use(*options.use)


def _run_study(study: Study, options: argparse.Namespace) -> int:
    code = DONE
    if not options.report:
        cancel, shape = threading.Event(), "{l_bar}{bar}| {n_fmt}/{total_fmt}{postfix}"
        try:
            with (
                interrupt_sets(cancel),
                progress_bar(options.quiet, unit=tr("run"), bar_format=shape) as bar,
            ):
                uses_plugins = bool(options.plugins or options.use)
                study.run(partial(_update, bar), cancel, pilot=options.pilot, uses_plugins=uses_plugins)
        except StudyError as error:
            print(f"decodescope study: {error}", file=sys.stderr)
            code = FAILED
        except DecodescopeError as error:
            print(f"decodescope study: {error}", file=sys.stderr)
            return FAILED
        if cancel.is_set():
            print(tr("Interrupted. Start the same command again to continue."), file=sys.stderr)
            return INTERRUPTED
    return max(code, _write_results(study, options))


def _write_results(study: Study, options: argparse.Namespace) -> int:
    """Print the tables, write CSV and report, and return the exit code."""
    from decodescope.core.studies import pilot_text

    summary = study.summary()
    print(summary.as_text(shutil.get_terminal_size((100, 24)).columns), end="")
    if options.pilot:
        print("\n" + pilot_text(study.pilot_estimate()), end="")
    try:
        table = study.write_csv(study.folder / TABLE, not options.plain_csv)
        report = study.write_report(study.folder / REPORT)
    except DecodescopeError as error:
        print(f"decodescope study: {error}", file=sys.stderr)
        return FAILED
    print("\n" + tr("Written: {table}, {report}").format(table=table, report=report))
    return FAILED if any(cell.failed for cell in summary.cells) else DONE


def _update(bar: tqdm[Any], progress: StudyProgress) -> None:
    """Show the state of the study and the time left."""
    from decodescope.core import words

    if progress.notice:
        bar.write(progress.notice, file=sys.stderr)
    bar.total, bar.n, parts = progress.total, progress.done, []
    if progress.seconds_left is not None:
        parts.append(tr("{time} left").format(time=words.rounded_duration(progress.seconds_left)))
    if progress.failed:
        parts.append(trn("{count} failed", "{count} failed", progress.failed).format(count=progress.failed))
    bar.set_postfix_str(", ".join(parts), refresh=False)
    bar.refresh()
