"""`decodescope infer-settings`: which settings wrote a text."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.app.start.cli.commands import DONE, FAILED, INTERRUPTED, INVALID
from decodescope.app.start.cli.interruption import interrupt_sets
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.app.start.cli.probability import add_settings, load_local, read_settings, read_text
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import DecodescopeError, ParameterError
from decodescope.resources.language import join_names, mark, tr

if TYPE_CHECKING:
    from decodescope.core import SettingPosterior

_READINGS = ("automatic", "text", "without-start-token", "chat")
_EXAMPLE = mark("""\
example:
  decodescope infer-settings storyteller @story.txt --prompt "Once upon a time" --set repetition_penalty=1.1

exit codes: 0 done; 1 it failed; 2 the command line is invalid; 130 interrupted""")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("infer-settings", tr(_EXAMPLE))
    add = parser.add_argument
    add("model", metavar="MODEL", help=tr("name, folder or file of a model on this computer"))
    add("text", metavar="TEXT", help=tr("the text; @FILE reads it from a file"))
    add("--prompt", default="", help=tr("what preceded the text; @FILE reads it from a file"))
    add("--reading", choices=_READINGS, default=_READINGS[0],
        help=tr("how the prompt was read; default: whichever explains the text best"))  # fmt: skip
    add("--temperature-last", action="store_true", help=tr("the filters came before the temperature, as in llama.cpp"))
    add_settings(parser)
    add("--json", action="store_true", help=tr("print the result as JSON"))
    return parser


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    from decodescope import core
    from decodescope.core.likelihood import explain_posterior

    cancel = threading.Event()
    try:
        text, prompt = read_text(options.text), read_text(options.prompt)
        model = load_local(options.model)
        readings = core.prompt_readings(model, prompt) if prompt else {}
        if (name := options.reading.replace("-", " ")) != _READINGS[0] and readings:
            if name not in readings:
                raise ParameterError(
                    tr("{model} cannot read the prompt in this way.").format(model=model.name),
                    tr("Choose one of: {names}.").format(names=join_names(one.replace(" ", "-") for one in readings)),
                    "reading",
                )
            readings = {name: readings[name]}
        with interrupt_sets(cancel):
            found = core.infer_settings(
                model, text, readings=readings or None, known=read_settings(options.settings), cancel=cancel,
                order="temperature_last" if options.temperature_last else "temperature_first",
            )  # fmt: skip
    except DecodescopeError as error:
        print(f"decodescope infer-settings: {error}", file=sys.stderr)
        return INVALID if isinstance(error, ParameterError) else FAILED
    print(json.dumps(_as_json(found)) if options.json else "\n".join(explain_posterior(found)))
    return INTERRUPTED if cancel.is_set() else DONE


def _as_json(found: SettingPosterior) -> dict[str, object]:
    from decodescope.core.likelihood import SETTINGS

    return {
        "temperature": found.intervals,
        "marginals": {name: [[one.value, one.probability] for one in found.marginal(name)] for name in SETTINGS},
        "greedy_below": found.greedy_below,
        "ridges": [ridge.setting for ridge in found.ridges],
        "readings": [[one.name, one.log_probability] for one in found.readings],
        "tokens": [one._asdict() for one in found],
    }
