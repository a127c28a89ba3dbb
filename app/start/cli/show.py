"""`decodescope show`: print a recording in the terminal, its tokens coloured by probability."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.start.cli.commands import DONE, FAILED
from decodescope.app.start.cli.parser import make_command_parser, translate_argparse
from decodescope.core.common.text import escape_streams, printable, unescaped_stream
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import join_names, mark, tr, trn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from decodescope.core.events import Event, Finished, RunStarted, TokenChosen

STEPS = (
    (0.9, "bright_blue", mark("90 % or more")),
    (0.5, "cyan", mark("50 % or more")),
    (0.2, "yellow", mark("20 % or more")),
    (0.0, "bright_red underline", mark("less")),
)
"""Lower bound of the probability, style and caption. The least likely tokens are underlined too, not only coloured."""
MIN_WIDTH, MAX_WIDTH = 20, 10_000
"""Columns within which text is laid out, whatever --width or the terminal says."""
_EXAMPLE = mark("""\
exit codes: 0 the recording was printed; 1 it cannot be read, or is incomplete; 2 the command line is invalid""")


@dataclass(slots=True)
class _PrintedRun:
    """The parts of a recording that are printed."""

    started: RunStarted | None = None
    finished: Finished | None = None
    tokens: dict[int, list[TokenChosen]] = field(default_factory=dict)
    """Tokens of each sequence."""
    notices: list[str] = field(default_factory=list)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = make_command_parser("show", tr(_EXAMPLE))
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help=tr("the recording, FILE.decodescope"))
    add("--tokens", action="store_true", help=tr("also list every token with its probability and alternatives"))
    add("--no-color", action="store_true", help=tr("print plain text; also without a terminal, or if NO_COLOR is set"))
    add("--width", type=int, metavar="N", help=tr("columns; default: those of the terminal"))
    return parser


@escape_streams()
def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    with translate_argparse():
        options = make_parser().parse_args(list(arguments))
    from decodescope.core import trace

    shown, problem = _PrintedRun(), ""
    try:
        for event in trace.replay(options.file):
            _add(shown, event)
    except (DecodescopeError, OSError) as error:
        problem = str(error)
    if shown.started is None:
        print(f"decodescope show: {problem or tr('the recording contains no run')}", file=sys.stderr)
        return FAILED
    try:
        _print_run(shown, _make_console(options), options.tokens)
    except BrokenPipeError:  # the reader, for example `head`, has ended
        sys.stderr.close()
        return DONE
    if problem:
        print(f"decodescope show: {problem}", file=sys.stderr)
    return FAILED if problem else DONE


def _add(shown: _PrintedRun, event: Event) -> None:
    from decodescope.core.events import Finished, Notice, RunStarted, TokenChosen

    if isinstance(event, RunStarted):
        shown.started = event
    elif isinstance(event, TokenChosen):
        shown.tokens.setdefault(event.sequence, []).append(event)
    elif isinstance(event, Finished):
        shown.finished = event
    elif isinstance(event, Notice):
        shown.notices.append(event.message)


def _make_console(options: argparse.Namespace) -> Console:
    from rich.console import Console

    plain = options.no_color or not sys.stdout.isatty()
    width = options.width or (None if sys.stdout.isatty() else 100)
    console = Console(
        file=unescaped_stream(sys.stdout), no_color=plain or None, highlight=False, markup=False, emoji=False,
        color_system=None if plain else "auto", width=width,
    )  # fmt: skip
    console.width = min(max(console.width, MIN_WIDTH), MAX_WIDTH)
    return console


def _print_run(shown: _PrintedRun, console: Console, lists_tokens: bool) -> None:
    from rich.text import Text

    from decodescope import core

    started = shown.started
    assert started is not None
    facts = [
        (tr("Model"), f"{started.model} ({started.device}, {started.dtype})"),
        (tr("Strategy"), core.strategy_title(started)),
        (tr("Cache"), core.cache_title(started)),
        (tr("Seed"), core.seed_text(started)),
        (tr("Captured call"), " ".join(core.explain_call_facts(started.call_facts))),
        (tr("Settings"), ", ".join(f"{name} = {value}" for name, value in started.settings)),
    ]
    for name, value in facts:
        if value:
            console.print(Text.assemble((f"{name}: ", "dim"), printable(value)))
    console.print()
    before = "".join(token.text for token in (*started.prompt, *started.beginning))
    for number, text in _texts(shown):
        if number is not None:
            console.print(Text(tr("Sequence {number}").format(number=number + 1), "bold"))
        console.print(Text.assemble((_safe(before), "dim"), text))
        console.print()
    if shown.tokens and lists_tokens:
        for number, tokens in sorted(shown.tokens.items()):
            console.print(_token_table(number, tokens, len(shown.tokens) > 1))
    if shown.tokens and not console.no_color:
        console.print(_legend())
    for notice in shown.notices:
        console.print(Text(printable(notice), "yellow"))
    if shown.finished is not None:
        console.print(Text(_summary(shown.finished), "dim"))


def _safe(text: str) -> str:
    """Return the text with control characters escaped, except line breaks, so that it cannot control the terminal."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _texts(shown: _PrintedRun) -> Iterator[tuple[int | None, Text]]:
    """Yield (number, coloured text) of each sequence, best first; the number is None if there is only one."""
    from rich.text import Text

    finished = shown.finished
    if not shown.tokens and finished is not None:  # beams have no tokens of their own
        many = len(finished.texts) > 1
        for number, written in enumerate(finished.texts):
            yield number if many else None, Text(_safe(written))
        return
    order = [number for number in finished.order if number in shown.tokens] if finished is not None else []
    numbers = order or sorted(shown.tokens)
    for number in numbers:
        text = Text()
        for token in shown.tokens[number]:
            text.append(_safe(token.text), _style(token.probability))
        yield number if len(numbers) > 1 else None, text


def _style(probability: float) -> str:
    if math.isnan(probability):
        return ""
    return next((style for low, style, _caption in STEPS if probability >= low), "")


def _legend() -> Text:
    from rich.text import Text

    parts: list[tuple[str, str]] = [(tr("Probability: "), "dim")]
    for _low, style, caption in STEPS:
        parts += [(tr(caption), style), ("  ", "")]
    return Text.assemble(*parts)


def _token_table(number: int, tokens: Sequence[TokenChosen], is_numbered: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    from decodescope.core import words

    title = tr("Sequence {number}").format(number=number + 1) if is_numbered else None
    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    numbers = (tr("Step"), tr("Probability"), tr("Rank"))
    for heading in (tr("Step"), tr("Token"), tr("Probability"), tr("Rank"), tr("Alternatives")):
        table.add_column(heading, justify="right" if heading in numbers else "left", overflow="fold")
    for token in tokens:
        rivals = (item for item in token.alternatives[:4] if item.id != token.id)
        others = "  ".join(f"{_piece(item.text)} {words.brief_percent(item.probability)}" for item in rivals)
        table.add_row(
            str(token.step + 1),
            Text(_piece(token.piece), _style(token.probability)),
            "" if math.isnan(token.probability) else words.final_percent(token),
            str(token.rank),
            Text(others, "dim"),
        )
    return table


def _piece(text: str) -> str:
    """Return a token's text on one line, with visible spaces."""
    return printable(text.replace("\n", "↵")).replace(" ", "␣")


def _summary(finished: Finished) -> str:
    metrics = finished.metrics
    parts = [
        trn("{count} new token", "{count} new tokens", metrics.new_tokens).format(count=metrics.new_tokens),
        tr("{seconds:.2f} s").format(seconds=metrics.seconds),
    ]
    if metrics.decode_tokens_per_second:
        parts.append(tr("{speed:.1f} tokens per second").format(speed=metrics.decode_tokens_per_second))
    if finished.reason == "stopped":
        parts.append(tr("stopped by the user"))
    return join_names(parts)
