"""`decodescope atlas`: list all texts of one seed while a setting takes every value of a range."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from decodescope.app.start.cli.commands import DONE, FAILED, INTERRUPTED, INVALID
from decodescope.app.start.cli.interruption import interrupt_sets
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.app.start.cli.progress_line import progress_bar
from decodescope.app.start.cli.values import output_file, parse_pair, parse_seed
from decodescope.app.state import setting_values
from decodescope.app.state.text_formats import to_csv
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import DecodescopeError
from decodescope.core.system.file_writing import save_text
from decodescope.resources.language import mark, tr, trn

if TYPE_CHECKING:
    from tqdm import tqdm

    from decodescope.core import AtlasProgress, SettingAtlas

_EXAMPLE = mark("""\
example:
  decodescope atlas "Once upon a time" --seed 7 --to 1.5 --param top_p=0.95 --csv atlas.csv

exit codes: 0 all texts are known; 1 the run failed, or the limit of work was reached; 2 the command line is invalid;
130 interrupted (the texts so far are printed)""")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("atlas", tr(_EXAMPLE))
    add = parser.add_argument
    add("prompt", help=tr("the text to continue"))
    add("--model", default="storyteller", metavar="M", help=tr("name, folder or GGUF file; default: %(default)s"))
    add("--device", default="auto", metavar="D", help=tr("auto, cpu, cuda, mps or spread"))
    add("--weights", default="auto", metavar="W", help=tr("auto, float32, bfloat16, int8, int4 or fp8"))
    add("--setting", default="temperature", metavar="S", help=tr("the setting that varies; default: %(default)s"))
    add("--word", metavar="TEXT", help=tr("for the setting bias: the word, with the space before it"))
    add("--from", dest="low", type=float, metavar="X", help=tr("lower end of the range, not included"))
    add("--to", dest="high", type=float, metavar="X", help=tr("upper end of the range"))
    add("--tokens", type=int, default=24, metavar="N", help=tr("tokens of each text; default: %(default)s"))
    add("--seed", type=parse_seed, default=0, metavar="N", help=tr("seed of the noise; default: %(default)s"))
    add("--param", action="append", default=[], dest="params", metavar="K=V", type=parse_pair,
        help=tr("set another setting of sampling; repeatable"))  # fmt: skip
    add("--passes", type=int, default=2_000, metavar="N", help=tr("limit of forward passes; default: %(default)s"))
    add("--csv", type=output_file, metavar="FILE", help=tr("also write the table to this file"))
    add("--quiet", action="store_true", help=tr("show no progress bar"))
    return parser


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    from decodescope import core

    try:
        settings = _settings(options.params)
    except ValueError as problem:
        print(f"decodescope atlas: {problem}", file=sys.stderr)
        return INVALID
    cancel = threading.Event()
    try:
        from transformers.utils import logging

        logging.disable_progress_bar()
        model = core.load(options.model, device=options.device, weights=options.weights)
        if not isinstance(model, core.LoadedModel):
            raise core.errors.ModelError(
                tr("{model} returns only some probabilities, not the scores of all tokens.").format(model=model.name),
                tr("Choose a model on this computer."),
            )
        request = core.Request(
            options.prompt, {**settings, "max_new_tokens": options.tokens}, seed=options.seed, top_n=0
        )
        shape = "{l_bar}{bar}| {postfix}"
        with (
            interrupt_sets(cancel),
            progress_bar(options.quiet, total=100, bar_format=shape) as bar,
        ):
            atlas = core.map_setting(
                model, request, options.setting, options.low, options.high, word=options.word,
                max_passes=options.passes, progress=partial(_update, bar), cancel=cancel,
            )  # fmt: skip
        _print(atlas)
        if options.csv is not None:
            save_text(to_csv(_rows(atlas)), options.csv)
    except core.errors.ParameterError as error:
        print(f"decodescope atlas: {error}", file=sys.stderr)
        return INVALID
    except DecodescopeError as error:
        print(f"decodescope atlas: {error}", file=sys.stderr)
        return FAILED
    if cancel.is_set():
        return INTERRUPTED
    return DONE if atlas.is_complete else FAILED


def _settings(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the values of `--param`. Raises ValueError."""
    from decodescope.core import strategies

    strategy = strategies.selected_by(strategies.Flags(samples=True))
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name not in strategy.parameter_names:
            raise ValueError(
                tr("Sampling has no setting {name}. {near}")
                .format(name=name, near=did_you_mean(name, strategy.parameter_names))
                .strip()
            )
        found[name] = setting_values.parse(strategy.parameter(name), text)
    return found


def _rows(atlas: SettingAtlas) -> list[list[object]]:
    columns = atlas.columns()
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def _print(atlas: SettingAtlas) -> None:
    """Print a line per text."""
    span = atlas.high - atlas.low
    for one in atlas:
        text = one.text.replace("\n", "↵")
        end = " …" if one.ending == "unfinished" else ""
        print(
            f"{one.low:>10.5g} < {atlas.setting} ≤ {one.high:<10.5g} {(one.high - one.low) / span:>6.1%}  {text}{end}"
        )
    texts = len({one.ids for one in atlas})
    line = trn("{n:,} text, {passes:,} forward passes", "{n:,} texts, {passes:,} forward passes", texts)
    print(line.format(n=texts, passes=atlas.passes))
    if not atlas.is_complete:
        print(tr("Unfinished: texts that end with … may split further on. Allow more with --passes."), file=sys.stderr)


def _update(bar: tqdm[Any], progress: AtlasProgress) -> None:
    """Show how much of the range is finished."""
    bar.n = round(100 * progress.covered)
    text = trn("{n:,} text", "{n:,} texts", progress.texts).format(n=progress.texts)
    bar.set_postfix_str(text, refresh=False)
    bar.refresh()
