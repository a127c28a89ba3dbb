"""The command line: what to set, whether to run at once, whether to leave a picture and go."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import NoReturn

from app.state.near import near, short
from app.storage.settings import LANGUAGE_CHOICES, LARGEST_SCALE, LARGEST_SEED, SCHEMES, SMALLEST_SCALE
from resources.language import mark, tr

LARGEST_SIDE = 10_000
"""Pixels of a window or a picture."""
LARGEST_AREA = 64_000_000
"""Pixels of a picture, 244 MiB of them."""
LEAST_RATIO, LARGEST_RATIO = 0.5, 4.0
PICTURE_SIZE = (1440, 900)
PICTURES = (".png", ".svg")
DEMOS = (".apng", ".gif", ".webm", ".png")
DEMO_SPEED, SLOWEST_DEMO, FASTEST_DEMO = 2.0, 0.1, 25.0
"""Tokens a second."""
EXPORTS = (".html", ".svg", ".png", ".csv", ".json")
SCRIPT = mark("""\
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


@dataclass(frozen=True, slots=True)
class Options:
    """The command line, read; empty strings and None leave things as the settings have them."""

    model: str = ""
    strategy: str = ""
    params: tuple[tuple[str, str], ...] = ()
    prompt: str | None = None
    chat: bool = False
    cache: str = ""
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
    record_demo: Path | None = None
    demo_speed: float = DEMO_SPEED
    still: bool = False
    pictures: Path | None = None
    recorded: Path | None = None
    record: Path | None = None
    config_dir: Path | None = None
    tour: str = ""

    @property
    def says_what_to_do(self) -> bool:
        """Whether more is said than how the window looks and where its settings are."""
        bare = replace(self, size=None, theme="", language="", font_scale=None, scale=None, config_dir=None)
        return bare != Options()

    @property
    def leaves(self) -> bool:
        """Whether something is to be written, and nobody to be waited for."""
        return any(path is not None for path in (self.screenshot, self.export, self.record_demo))


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line; argparse ends the program for --help and for what it cannot read."""
    parser = _parser()
    read = parser.parse_args(list(arguments))
    options = Options(**{**vars(read), "params": tuple(read.params), "drafts": tuple(read.drafts)})
    if options.still and not options.leaves and options.pictures is None:
        parser.error(tr("--still is for pictures: say where with --screenshot, --export or --pictures"))
    if options.record is not None and not options.run:
        parser.error(tr("--record is for a run: add --run"))
    if options.recorded is not None and options.run:
        parser.error(tr("a recorded run is shown as it was: leave --run out, or the file"))
    if options.tour and (options.run or options.recorded is not None or options.pictures is not None):
        parser.error(tr("a tour sets and runs everything itself: leave out --run, --pictures and the recorded run"))
    width, height = (side * (options.scale or 1.0) for side in options.size or PICTURE_SIZE)
    if width * height > LARGEST_AREA:
        told = tr("a picture of {width:.0f}x{height:.0f} pixels is too large: {most:,} are the most")
        parser.error(told.format(width=width, height=height, most=LARGEST_AREA))
    return options


def named_before(arguments: Sequence[str], option: str, known: Sequence[str] = ()) -> str:
    """What an option is given, found before the line is read in full: its mistakes are told in that language already.

    Empty where it is not given, or not one of those `known`.
    """
    given = ""
    for argument, following in zip(arguments, (*arguments[1:], ""), strict=False):
        name, equals, value = argument.partition("=")
        if name == option:
            given = value if equals else following
    return given if not known or given in known else ""


class _Parser(argparse.ArgumentParser):
    """Lists in its help what can be named, and knows what a mistyped option was meant to be."""

    def format_help(self) -> str:
        return f"{super().format_help()}\n{_names()}\n{tr(SCRIPT)}"

    def error(self, message: str) -> NoReturn:
        mistyped = re.search(r"unrecognized arguments: (--[^\s=]+)", message)
        known = [option for action in self._actions for option in action.option_strings]
        super().error(f"{message}.{near(mistyped[1], known)}" if mistyped else message)


def _names() -> str:
    """Everything that views, strategies, caches and themes are called; imported only for this."""
    from app.state.tours import names_and_titles
    from app.views import VIEWS
    from core import caches, strategies

    def listed(title: str, names: Iterable[str]) -> str:
        return fill(f"{title}: {', '.join(names)}", 79, initial_indent="  ", subsequent_indent="    ")

    return "\n".join(
        (
            tr("names:"),
            listed(tr("views"), (view.name for view in VIEWS if not view.comes_later)),
            listed(tr("strategies"), strategies.registry),
            listed(tr("caches"), caches.registry),
            listed(tr("themes"), SCHEMES),
            listed(tr("tours"), (name for name, _title in names_and_titles())),
            "",
        )
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tokenscope", description=tr("Watch every token being chosen."), allow_abbrev=False)
    add = parser.add_argument
    add("recorded", nargs="?", type=Path, metavar="FILE.tokenscope", help=tr("a recorded run to show; needs no model"))
    add("--model", default="", metavar="M", help=tr("bundled name, folder, or hub id already on this disk"))
    add("--strategy", default="", metavar="S", help=tr("how to decode; names below"))
    add("--param", action="append", default=[], dest="params", metavar="K=V", type=_pair,
        help=tr("a setting; repeatable"))  # fmt: skip
    add("--prompt", metavar="TEXT", help=tr("what the model continues"))
    add("--chat", action="store_true", help=tr("read the prompt as a chat (user: … assistant: …)"))
    add("--cache", default="", metavar="C", help=tr("how keys and values are kept; names below"))
    add("--draft", action="append", default=[], dest="drafts", metavar="D",
        help=tr("draft model, for strategies that take one; repeatable: several are merged"))  # fmt: skip
    add("--seed", type=_seed, metavar="N", help=tr("seed, locked"))
    add("--run", action="store_true", help=tr("run at once"))
    add("--present", action="store_true", help=tr("present: one view, large, and why in a sentence"))
    add("--view", default="", metavar="V", help=tr("view to show; names below"))
    add("--size", type=_size, metavar="WxH",
        help=tr("size of the window in points; a picture's is else {width}x{height}").format(
            width=PICTURE_SIZE[0], height=PICTURE_SIZE[1]))  # fmt: skip
    add("--theme", default="", choices=SCHEMES, help="colours")
    add("--language", default="", choices=LANGUAGE_CHOICES,
        help=tr("what the program speaks, this time; a picture's language is else en"))  # fmt: skip
    add("--font-scale", type=_scale, metavar="F", help=tr("text size, 1.0 = 100 %%"))
    add("--scale", type=_ratio, metavar="F", help=tr("pixels a point, as QT_SCALE_FACTOR: 2 doubles a picture"))
    add("--screenshot", type=_picture, metavar="PATH",
        help=tr("save a picture of the window (after the run) as .png or .svg, then leave; needs no "
                "screen"))  # fmt: skip
    add("--export", type=_export, metavar="PATH",
        help=tr("save the run as a web page (.html), a picture of the view (.png, .svg) or its figures (.csv, "
                ".json), then leave; needs no screen"))  # fmt: skip
    add("--record-demo", type=_demo, metavar="PATH",
        help=tr("film the run as it is presented, step by step: .apng, .gif, .webm (with ffmpeg), or .png for a folder "
                "of pictures; 1280x720 without --size; then leave; needs no screen"))  # fmt: skip
    add("--demo-speed", type=_demo_speed, default=DEMO_SPEED, metavar="N", help=tr("its tokens a second, %(default)g"))
    add("--still", action="store_true",
        help=tr("leave out of a picture what no second run repeats: times, speeds, free memory, the "
                "caret"))  # fmt: skip
    add("--pictures", type=Path, metavar="FILE",
        help=tr("make the pictures that a script in TOML names, then leave; needs no screen; example "
                "below"))  # fmt: skip
    add("--record", type=Path, metavar="OUT.tokenscope", help=tr("write the run to a file while it goes on"))
    add("--tour", default="", metavar="NAME", type=_tour,
        help=tr("play a guided tour; with --screenshot to its end, by itself; names below"))  # fmt: skip
    add("--config-dir", type=Path, metavar="DIR", help=tr("where settings are kept"))
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form name=value").format(text=short(text)))
    return name.strip(), value


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,9})[xX×]([0-9]{1,9})", text)
    if match is None:
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form 1280x800").format(text=short(text)))
    if max(int(match[1]), int(match[2])) > LARGEST_SIDE:
        raise argparse.ArgumentTypeError(
            tr("{text} is too large: {most:,} are the most on a side").format(text=text, most=LARGEST_SIDE)
        )
    return int(match[1]), int(match[2])


def _picture(text: str) -> Path:
    return _ending(text, PICTURES, mark("picture"))


def _export(text: str) -> Path:
    return _ending(text, EXPORTS, mark("export"))


def _demo(text: str) -> Path:
    return _ending(text, DEMOS, mark("demo"))


def _demo_speed(text: str) -> float:
    return _within(text, SLOWEST_DEMO, FASTEST_DEMO)


def _ending(text: str, known: Sequence[str], what: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in known:
        named = (
            tr("“{suffix}” is no kind of {what}").format(suffix=path.suffix, what=tr(what))
            if path.suffix
            else tr("“{text}” does not say which kind").format(text=short(text))
        )
        raise argparse.ArgumentTypeError(
            tr("{named}: end the name with {names} or {last}").format(
                named=named, names=", ".join(known[:-1]), last=known[-1]
            )
        )
    return path


def _tour(text: str) -> str:
    from app.state.tours import TourProblem, find

    try:
        return find(text).name if text else ""  # argparse reads a default that is text like any other
    except TourProblem as problem:
        raise argparse.ArgumentTypeError(problem.cause) from None


def _ratio(text: str) -> float:
    return _within(text, LEAST_RATIO, LARGEST_RATIO)


def _seed(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is not a whole number from 0 to {most}").format(text=short(text), most=LARGEST_SEED)
        )
    return int(text)


def _scale(text: str) -> float:
    return _within(text, SMALLEST_SCALE, LARGEST_SCALE)


def _within(text: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is not a number from {least} to {most}").format(text=short(text), least=least, most=most)
        )
    return number
