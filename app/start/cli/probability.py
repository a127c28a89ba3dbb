"""`decodescope probability`: sure bounds on the probability that an answer matches a text or a pattern."""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.start.cli.commands import DONE, FAILED, INVALID
from decodescope.app.start.cli.interruption import interrupt_sets
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.app.start.cli.progress_line import ProgressLine
from decodescope.app.start.cli.values import parse_pair, read_text_file
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import DecodescopeError, ModelError, ParameterError
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core import LoadedModel, PatternProgress
    from decodescope.core.likelihood import TextPattern

_EXAMPLE = mark("""\
example:
  decodescope probability storyteller "Is this a cat? Answer:" " Yes" " No" --set do_sample=true --set max_new_tokens=8

exit codes: 0 the bounds are closer than the tolerance; 1 they are not, or it failed; 2 the command line is invalid""")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("probability", tr(_EXAMPLE))
    add = parser.add_argument
    add("model", metavar="MODEL", help=tr("name, folder or file of a model on this computer"))
    add("prompt", metavar="PROMPT", help=tr("the prompt; @FILE reads it from a file"))
    add("patterns", metavar="PATTERN", nargs="+", help=tr("a text that the answer may match; several count together"))
    add(
        "--place",
        choices=("begins", "contains", "full"),
        default="begins",
        help=tr("where it matches; default: begins"),
    )
    add("--regex", action="store_true", help=tr("the patterns are regular expressions"))
    add("--ignore-case", action="store_true", help=tr("ignore the case of letters"))
    add("--tolerance", type=float, default=0.01, metavar="GAP", help=tr("gap of the bounds to reach; default: 0.01"))
    add("--max-prefixes", type=int, default=4000, metavar="N", help=tr("limit of the beginnings read; default: 4000"))
    add("--strategy", metavar="NAME", help=tr("strategy; default: by the settings"))
    add_settings(parser)
    add("--json", action="store_true", help=tr("print the result as JSON"))
    return parser


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the option for settings."""
    parser.add_argument("--set", dest="settings", action="append", type=parse_pair, default=[], metavar="NAME=VALUE",
        help=tr("a setting, its value as JSON or text; repeatable"))  # fmt: skip


def read_settings(pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Return settings by name; values that are no JSON are texts."""
    found: dict[str, object] = {}
    for name, value in pairs:
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def read_text(value: str) -> str:
    """Return a text, or with @ the content of a file. Raises ParameterError if it cannot be read."""
    if not value.startswith("@"):
        return value
    return read_text_file(Path(value[1:]))


def load_local(name: str) -> LoadedModel:
    """Load a model on this computer. Raises ModelError for one of an engine, and the errors of `core.load`."""
    from decodescope import core

    model = core.load(name)
    if isinstance(model, core.RemoteModel):
        raise ModelError(
            tr("{model} returns only some probabilities, and all are needed here.").format(model=model.name),
            tr("Select a model on this computer."),
        )
    return model


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    from decodescope import core
    from decodescope.core.likelihood import TextPattern, explain_pattern

    patterns = tuple(TextPattern(one, options.place, options.regex, options.ignore_case) for one in options.patterns)
    cancel = threading.Event()
    try:
        request = core.Request(read_text(options.prompt), read_settings(options.settings), strategy=options.strategy)
        model = load_local(options.model)
        with interrupt_sets(cancel), ProgressLine(options.json) as line:
            found = core.pattern_probability(
                model, request, patterns, tolerance=options.tolerance, max_prefixes=options.max_prefixes, cancel=cancel,
                progress=lambda progress: line.show(_progress_text(progress)),
            )  # fmt: skip
    except DecodescopeError as error:
        print(f"decodescope probability: {error}", file=sys.stderr)
        return INVALID if isinstance(error, ParameterError) else FAILED
    if options.json:
        print(json.dumps(_as_json(found.bounds, found.any_bounds, patterns, found.prefixes)))
    else:
        print("\n".join(explain_pattern(found)))
    return DONE if found.is_converged else FAILED


def _progress_text(progress: PatternProgress) -> str:
    from decodescope.core.likelihood import bounds_text

    text = re.sub(r"\s+", " ", bounds_text(progress.any_bounds))
    return f"{text} · {progress.prefixes:,}"


def _as_json(
    bounds: Sequence[tuple[float, float]], any_bounds: tuple[float, float], patterns: Sequence[TextPattern],
    prefixes: int,
) -> Mapping[str, object]:  # fmt: skip
    rows = [
        {"pattern": one.text, "lower": lower, "upper": upper}
        for one, (lower, upper) in zip(patterns, bounds, strict=True)
    ]
    return {"lower": any_bounds[0], "upper": any_bounds[1], "patterns": rows, "prefixes": prefixes}
