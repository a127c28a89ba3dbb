"""What the command line may hold, and what --help says of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from app.start.cli import values
from app.start.cli.argparse_words import HelpFormatter
from app.storage.settings import LANGUAGE_CHOICES, WEIGHT_FORMATS
from app.theme.palettes import SCHEMES
from resources.language import mark, tr

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
