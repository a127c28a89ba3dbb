"""`decodescope why`: print the first difference of two recordings, and its cause by elimination."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.start.cli.commands import DONE, FAILED
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.core.common.text import escape_streams, printable
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core import RunDifference

_EXAMPLE = mark("""\
exit codes: 0 the texts are equal, or the cause is named; 1 a recording cannot be read, or the cause cannot be told;
2 the command line is invalid""")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("why", tr(_EXAMPLE))
    add = parser.add_argument
    add("a", type=Path, metavar="A", help=tr("the first recording, FILE.decodescope"))
    add("b", type=Path, metavar="B", help=tr("the second recording"))
    add("--model", metavar="NAME", help=tr("also repeat A with single parts of B on this model, if causes remain open"))
    return parser


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    from decodescope import core

    try:
        model = core.load(options.model) if options.model else None
        found = core.explain_difference(options.a, options.b, models=model, progress=_print_progress)
    except (DecodescopeError, OSError) as error:
        print(f"decodescope why: {error}", file=sys.stderr)
        return FAILED
    try:
        print(printable(_text(found)))
    except BrokenPipeError:  # the reader, for example `head`, has ended
        sys.stderr.close()
    return FAILED if found.cause == "unknown" else DONE


def _print_progress(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _text(found: RunDifference) -> str:
    from decodescope import core

    width = max(len(row.title) for row in found)
    verdicts = [core.verdict_text(row.verdict) for row in found]
    wide = max(map(len, verdicts))
    rows = [
        f"  {row.title:{width}}  {verdict:{wide}}  {row.evidence}".rstrip()
        for row, verdict in zip(found, verdicts, strict=True)
    ]
    return "\n".join([*filter(None, (found.headline, found.reason, found.advice)), "", *rows])
