"""`decodescope claim`: test a published claim on a model."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from decodescope.app.start.cli.commands import DONE, FAILED, INTERRUPTED, INVALID
from decodescope.app.start.cli.interruption import interrupt_sets
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.app.start.cli.progress_line import ProgressLine
from decodescope.app.start.cli.values import output_file, read_text_file
from decodescope.app.state.text_formats import to_csv
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import DecodescopeError, FileNotWrittenError, ParameterError, StudyError
from decodescope.core.system.file_writing import append_text, save_text
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.core.claims import ClaimEntry, ClaimOutcome, ClaimProgress, TestedClaim

_EXAMPLE = mark("""\
examples:
  decodescope claim                      list all claims
  decodescope claim greedy-repeats       test one on the bundled storyteller
  decodescope claim all --model FILE.gguf --html outcomes.html --csv outcomes.csv

exit codes: 0 every claim was tested; 1 a claim could not be tested; 2 the command line is invalid; 130 interrupted
(the verdict rests on the prompts that were finished)""")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("claim", tr(_EXAMPLE))
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help=tr("claims to test, or all; without a name they are listed"))
    add("--model", default="storyteller", metavar="MODEL", help=tr("bundled name, folder, GGUF file or Hub id"))
    add("--draft", default="", metavar="MODEL", help=tr("draft model, for claims that need one"))
    add("--prompts", type=Path, metavar="FILE", help=tr("own prompts, one on each line; eight or more"))
    add("--seconds", type=float, default=60.0, help=tr("time for each claim; default: 60"))
    add(
        "--json",
        type=output_file,
        metavar="FILE",
        help=tr("append the outcomes to a file, one JSON object on each line"),
    )
    add("--csv", type=output_file, metavar="FILE", help=tr("write a table of the outcomes"))
    add("--html", type=output_file, metavar="FILE", help=tr("write the outcomes with their examples as a web page"))
    add("--plain-csv", action="store_true", help=tr("do not escape texts in the CSV that a spreadsheet would run"))
    add("--plugins", action="store_true", help=tr("load the plug-ins that are switched on in the window"))
    add("--quiet", action="store_true", help=tr("show no progress"))
    return parser


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    from decodescope.core import claims

    try:
        if options.plugins:
            from decodescope.app.start.cli.generate import load_plugins

            load_plugins()
        if not options.names:
            _print_list(claims.all_claims().values())
            return DONE
        chosen = [*claims.all_claims()] if options.names == ["all"] else options.names
        entries = [claims.named_claim(name) for name in chosen]
        prompts = _read_prompts(options.prompts)
    except DecodescopeError as error:
        print(f"decodescope claim: {error}", file=sys.stderr)
        return INVALID
    return _test(entries, prompts, options)


def _print_list(entries: Iterable[ClaimEntry]) -> None:
    """Print name, subject and statement of every claim."""
    for entry in entries:
        print(f"{entry.name}  [{entry.subject}]\n    {tr(entry.claim.exact)}\n    {entry.claim.source}")


def _read_prompts(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    prompts = [line for line in read_text_file(path).splitlines() if line.strip()]
    if not prompts:
        raise ParameterError(
            tr("{file} contains no prompts.").format(file=path), tr("Write one on each line; eight or more.")
        )
    return prompts


def _load(name: str) -> core.LoadedModel:
    """Load a model on this computer. Raises DecodescopeError."""
    from decodescope import core

    if core.remote.is_address(name):
        raise StudyError(
            tr("{model} is the address of an engine, and claims are tested with this program's own strategies.").format(
                model=name
            ),
            tr("Choose a model on this computer."),
        )
    return cast("core.LoadedModel", core.load(name))


def _test(entries: Sequence[ClaimEntry], prompts: list[str] | None, options: argparse.Namespace) -> int:
    cancel, code = threading.Event(), DONE
    try:
        model = _load(options.model)
        drafters = [_load(options.draft)] if options.draft else None
    except DecodescopeError as error:
        print(f"decodescope claim: {error}", file=sys.stderr)
        return FAILED
    tested: list[TestedClaim] = []
    try:
        with interrupt_sets(cancel):
            for entry in entries:
                if cancel.is_set():
                    break
                try:
                    tested.append((entry, _test_one(model, entry, prompts, drafters, cancel, options)))
                except FileNotWrittenError:
                    raise
                except DecodescopeError as error:
                    print(f"{entry.name}: {error}\n", file=sys.stderr)
                    code = FAILED
        _write(tested, options)
    except FileNotWrittenError as error:
        print(f"decodescope claim: {error}", file=sys.stderr)
        return FAILED
    return INTERRUPTED if cancel.is_set() else code


def _write(tested: Sequence[TestedClaim], options: argparse.Namespace) -> None:
    """Write the requested files; no page without a tested claim. Raises FileNotWrittenError."""
    from decodescope.core import claims

    if options.csv is not None:
        save_text(to_csv(claims.outcome_table(tested), not options.plain_csv), options.csv)
    if options.html is not None and tested:
        save_text(claims.outcome_report(tested), options.html)


def _test_one(
    model: core.LoadedModel, entry: ClaimEntry, prompts: list[str] | None, drafters: list[core.LoadedModel] | None,
    cancel: threading.Event, options: argparse.Namespace,
) -> ClaimOutcome:  # fmt: skip
    """Test a claim, print the outcome and append it to the file of `--json`. Raises DecodescopeError."""
    from decodescope.core import claims

    print(f"{entry.name}: {tr(entry.claim.exact)}", flush=True)
    with ProgressLine(options.quiet) as line:

        def show(progress: ClaimProgress) -> None:
            line.show(f"{entry.name}: {progress.done}/{progress.total}")

        outcome = claims.try_claim(
            model, entry.claim, prompts=prompts, drafters=drafters, seconds=options.seconds, cancel=cancel,
            progress=show,
        )  # fmt: skip
    print(claims.outcome_text(outcome, entry.claim, claims.measure_of(entry.claim)) + "\n", flush=True)
    if options.json:
        append_text(options.json, json.dumps(outcome.to_json(), ensure_ascii=False) + "\n")
    return outcome
