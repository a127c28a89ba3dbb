"""What the command line may hold, and what --help says of it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from unicodedata import east_asian_width

from app.start.cli import values
from app.start.cli.values import DEMO_SPEED, MAX_AREA, PICTURE_SIZE
from app.storage.settings import LANGUAGE_CHOICES, WEIGHT_FORMATS
from app.theme.palettes import SCHEMES
from core.checks.name_suggestions import did_you_mean
from resources.language import ENGLISH, current_language, mark, tr, trn

ARGPARSE_MESSAGES = (
    mark("usage: "),
    mark("positional arguments"),
    mark("options"),
    mark("%(heading)s:"),
    mark("show this help message and exit"),
    mark("%(prog)s: error: %(message)s\n"),
    mark("argument %(argument_name)s: %(message)s"),
    mark("expected one argument"),
    mark("expected at least one argument"),
    mark("expected at most one argument"),
    mark("ignored explicit argument %r"),
    mark("invalid choice: %(value)r (choose from %(choices)s)"),
)
"""Everything that this program's options can make it look up."""
_UNBREAKABLE = re.compile(r"\s*(?:[!-~]+|[^\s!-~])[，。；：、）”！？]*")
"""What stays on one line: a word of Latin letters, or one character; a sign does not begin a line."""


@contextmanager
def translate_argparse() -> Iterator[None]:
    """While this lasts, argparse asks this program's catalogues.

    It looks its translators up in its own module whenever it says something; the one other way to them, gettext's,
    goes by variables of the environment, and the language here is the reader's own.
    """
    originals = {name: vars(argparse)[name] for name in ("_", "ngettext")}
    vars(argparse).update(_=tr, ngettext=trn)
    try:
        yield
    finally:
        vars(argparse).update(originals)


class HelpFormatter(argparse.HelpFormatter):
    """Breaks lines of Chinese, too: no spaces stand in it, and each character is two columns wide."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        if current_language() == ENGLISH:
            return super()._split_lines(text, width)
        lines = [""]
        for piece in _UNBREAKABLE.findall(text):
            if lines[-1] and display_width(lines[-1] + piece) > width:
                lines.append("")
            lines[-1] += piece if lines[-1] else piece.lstrip()
        return lines


def display_width(text: str) -> int:
    """How many places of a terminal a text takes."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


@dataclass(frozen=True, slots=True)
class CommandLineOptions:
    """The command line, read; empty strings and None leave things as the settings have them."""

    model: str = ""
    strategy: str = ""
    params: tuple[tuple[str, str], ...] = ()
    preset: str = ""
    prompt: str | None = None
    chat: bool = False
    media: tuple[Path, ...] = ()
    cache: str = ""
    weights: str = ""
    memory: int | None = None
    drafts: tuple[str, ...] = ()
    seed: int | None = None
    run: bool = False
    present: bool = False
    view: str = ""
    size: tuple[int, int] | None = None
    theme: str = ""
    language: str = ""
    font_scale: float | None = None
    scale: float | None = None
    screenshot: Path | None = None
    export: Path | None = None
    plain_csv: bool = False
    record_demo: Path | None = None
    demo_speed: float = DEMO_SPEED
    still: bool = False
    pictures: Path | None = None
    allow_outside: bool = False
    recorded: Path | None = None
    record: Path | None = None
    config_dir: Path | None = None
    tour: str = ""

    @property
    def sets_more_than_appearance(self) -> bool:
        """Whether more is said than how the window looks and where its settings are."""
        bare = replace(self, size=None, theme="", language="", font_scale=None, scale=None, config_dir=None)
        return bare != CommandLineOptions()

    @property
    def writes_files(self) -> bool:
        """Whether something is to be written, and nobody to be waited for."""
        return any(path is not None for path in (self.screenshot, self.export, self.record_demo))


SCRIPT_EXAMPLE = mark("""\
a script for --pictures (every key: docs/pictures.md):
  size = "1100x700"                 # above the first table: for all pictures
  still = true
  [[picture]]
  out = "tree.png"
  model = "storyteller"
  strategy = "beam_search"
  parameters = { num_beams = 4, max_new_tokens = 40 }
  prompt = "Once upon a time"
  view = "tree"
  theme = "dark"
""")


class CommandLineParser(argparse.ArgumentParser):
    """Lists in its help what can be named."""

    @property
    def options(self) -> list[str]:
        """Every option, as it is written."""
        return [option for action in self._actions for option in action.option_strings]

    def format_help(self) -> str:
        return f"{super().format_help()}\n{_available_names()}\n{tr(SCRIPT_EXAMPLE)}"


def make_parser() -> CommandLineParser:
    """The parser, in the language of now."""
    description = tr("Watch every token being chosen.")
    parser = CommandLineParser(
        prog="decodescope", description=description, allow_abbrev=False, formatter_class=HelpFormatter
    )
    parser.add_argument("recorded", nargs="?", type=Path, metavar="FILE.decodescope",
        help=tr("a recorded run to show; needs no model"))  # fmt: skip
    _add_run(parser.add_argument_group(tr("what is run")))
    _add_appearance(parser.add_argument_group(tr("how it is shown")))
    _add_files(parser.add_argument_group(tr("what is written")))
    return parser


def _add_run(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", default="", metavar="M", help=tr("bundled name, folder, or hub id already on this disk"))
    add("--strategy", default="", metavar="S", help=tr("how to decode; names below"))
    add("--param", action="append", default=[], dest="params", metavar="K=V", type=values.parse_pair,
        help=tr("a setting; repeatable"))  # fmt: skip
    add("--preset", default="", metavar="P",
        help=tr("a preset by name, or a file of settings: a generation config, llama.cpp's, KoboldCpp's"))  # fmt: skip
    add("--prompt", metavar="TEXT", help=tr("what the model continues"))
    add("--media", action="append", default=[], metavar="FILE", type=Path,
        help=tr("a sound or a picture that goes with the prompt; repeatable"))  # fmt: skip
    add("--chat", action="store_true", help=tr("read the prompt as a chat (user: … assistant: …)"))
    add("--cache", default="", metavar="C", help=tr("how keys and values are kept; names below"))
    add("--weights", default="", choices=WEIGHT_FORMATS,
        help=tr("what the model's weights are kept as: int8 and int4 are smaller, and quicker on a "
                "processor"))  # fmt: skip
    add("--memory", metavar="M", type=values.parse_memory,
        help=tr("memory for the weights: all, fit (as much as fits) or a size as 6GB; layers beyond are read from the "
                "disk for every token"))  # fmt: skip
    add("--draft", action="append", default=[], dest="drafts", metavar="D",
        help=tr("draft model, for strategies that take one; repeatable: several are merged"))  # fmt: skip
    add("--seed", type=values.parse_seed, metavar="N", help=tr("seed, locked"))
    add("--run", action="store_true", help=tr("run at once"))
    add("--tour", default="", metavar="NAME", type=values.parse_tour,
        help=tr("play a guided tour; with --screenshot to its end, by itself; names below"))  # fmt: skip


def _add_appearance(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--present", action="store_true", help=tr("present: one view, large, and why in a sentence"))
    add("--view", default="", metavar="V", help=tr("view to show; names below"))
    add("--size", type=values.parse_size, metavar="WxH",
        help=tr("size of the window in points; a picture's is else {width}x{height}").format(
            width=values.PICTURE_SIZE[0], height=values.PICTURE_SIZE[1]))  # fmt: skip
    add("--theme", default="", choices=SCHEMES, help=tr("colours"))
    add("--language", default="", choices=LANGUAGE_CHOICES,
        help=tr("what the program speaks, this time; a picture's language is else en"))  # fmt: skip
    add("--font-scale", type=values.parse_scale, metavar="F", help=tr("text size, 1.0 = 100 %%"))
    add("--scale", type=values.parse_ratio, metavar="F",
        help=tr("pixels a point, as QT_SCALE_FACTOR: 2 doubles a picture"))  # fmt: skip
    add("--config-dir", type=Path, metavar="DIR", help=tr("where settings are kept"))


def _add_files(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--screenshot", type=values.picture_path, metavar="PATH",
        help=tr("save a picture of the window (after the run) as .png or .svg, then leave; needs no "
                "screen"))  # fmt: skip
    add("--export", type=values.export_path, metavar="PATH",
        help=tr("save the run as a web page (.html), a picture of the view (.png, .svg) or its figures (.csv, "
                ".json), then leave; needs no screen"))  # fmt: skip
    add("--plain-csv", action="store_true",
        help=tr("leave texts in a .csv as they are; without it one that a spreadsheet would run as a formula gets an "
                "apostrophe in front"))  # fmt: skip
    add("--record-demo", type=values.demo_path, metavar="PATH",
        help=tr("film the run as it is presented, step by step: .apng, .gif, .webm (with ffmpeg), or .png for a folder "
                "of pictures; 1280x720 without --size; then leave; needs no screen"))  # fmt: skip
    add("--demo-speed", type=values.parse_demo_speed, default=values.DEMO_SPEED, metavar="N",
        help=tr("its tokens a second, %(default)g"))  # fmt: skip
    add("--still", action="store_true",
        help=tr("leave out of a picture what no second run repeats: times, speeds, free memory, the "
                "caret"))  # fmt: skip
    add("--pictures", type=Path, metavar="FILE",
        help=tr("make the pictures that a script in TOML names, then leave; needs no screen; example "
                "below"))  # fmt: skip
    add("--allow-outside", action="store_true", help=tr("let such a script write outside of its own folder"))
    add("--record", type=Path, metavar="OUT.decodescope", help=tr("write the run to a file while it goes on"))


def _available_names() -> str:
    """Everything that views, strategies, caches and themes are called; imported only for this."""
    from app.state.tours import names_and_titles
    from app.views import VIEWS
    from core import caches, strategies

    def listed(title: str, names: Iterable[str]) -> str:
        return fill(f"{title}: {', '.join(names)}", 79, initial_indent="  ", subsequent_indent="    ")

    return "\n".join(
        (
            tr("names:"),
            listed(tr("views"), (view.name for view in VIEWS if not view.hidden_when_empty)),
            listed(tr("strategies"), strategies.registry),
            listed(tr("caches"), caches.registry),
            listed(tr("themes"), SCHEMES),
            listed(tr("tours"), (name for name, _title in names_and_titles())),
            "",
        )
    )


def parse(arguments: Sequence[str]) -> CommandLineOptions:
    """Read the command line; argparse ends the program for --help and for what it cannot read."""
    with translate_argparse():
        parser = make_parser()
        namespace, unknown = parser.parse_known_args(list(arguments))
        if unknown:
            suggestion = did_you_mean(unknown[0].partition("=")[0], parser.options)
            parser.error(tr("unrecognized arguments: {names}.{near}").format(names=" ".join(unknown), near=suggestion))
        options = CommandLineOptions(**{**vars(namespace), "params": tuple(namespace.params), "drafts": tuple(namespace.drafts),
                             "media": tuple(namespace.media)})  # fmt: skip
        if problem := next(_conflicts(options), ""):
            parser.error(problem)
    return options


def _conflicts(options: CommandLineOptions) -> Iterator[str]:
    """What of it does not go together."""
    if options.still and not options.writes_files and options.pictures is None:
        yield tr("--still is for pictures: say where with --screenshot, --export, --record-demo or --pictures")
    if options.plain_csv and (options.export is None or options.export.suffix.lower() != ".csv"):
        yield tr("--plain-csv is for figures: add --export FILE.csv")
    if options.allow_outside and options.pictures is None:
        yield tr("--allow-outside is for a script of pictures: add --pictures FILE")
    if options.record is not None and not options.run:
        yield tr("--record is for a run: add --run")
    if options.recorded is not None and options.run:
        yield tr("a recorded run is shown as it was: leave --run out, or the file")
    if options.tour and (options.run or options.recorded is not None or options.pictures is not None):
        yield tr("a tour sets and runs everything itself: leave out --run, --pictures and the recorded run")
    width, height = (side * (options.scale or 1.0) for side in options.size or PICTURE_SIZE)
    if width * height > MAX_AREA:
        message = tr("a picture of {width:.0f}x{height:.0f} pixels is too large: {most:,} are the most")
        yield message.format(width=width, height=height, most=MAX_AREA)


def peek_option(arguments: Sequence[str], option: str, known: Sequence[str] = ()) -> str:
    """What an option is given, found before the line is read in full: its mistakes are told in that language already.

    Empty where it is not given, or not one of those `known`.
    """
    given = ""
    for argument, following in zip(arguments, (*arguments[1:], ""), strict=False):
        name, equals, value = argument.partition("=")
        if name == option:
            given = value if equals else following
    return given if not known or given in known else ""
