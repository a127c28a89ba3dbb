"""Define the command-line options and their --help texts."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from unicodedata import east_asian_width

from decodescope.app.start.cli import values
from decodescope.app.start.cli.commands import COMMANDS
from decodescope.app.start.cli.values import DEMO_SPEED, MAX_AREA, PICTURE_SIZE
from decodescope.app.storage.settings import LANGUAGE_CHOICES, WEIGHT_FORMATS
from decodescope.app.theme.palettes import SCHEMES
from decodescope.core import AdapterChoice
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.resources.language import ENGLISH, current_language, mark, tr, trn

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
"""The argparse messages that this program's options can produce."""
_UNBREAKABLE = re.compile(r"\s*(?:[!-~]+|[^\s!-~])[，。；：、）”！？]*")
"""A unit that is not broken across lines: a word in Latin letters or one character, with the punctuation after it."""


@contextmanager
def translate_argparse() -> Iterator[None]:
    """Use this program's translations in argparse inside the context.

    argparse looks up its translation functions in its own module at each call. gettext's own configuration depends on
    environment variables, whereas the language here is chosen in the program.
    """
    originals = {name: vars(argparse)[name] for name in ("_", "ngettext")}
    vars(argparse).update(_=tr, ngettext=trn)
    try:
        yield
    finally:
        vars(argparse).update(originals)


class HelpFormatter(argparse.HelpFormatter):
    """Format help text, wrapping Chinese too: it has no spaces, and each character is two columns wide."""

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
    """Return the number of terminal columns that a text occupies."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


@dataclass(frozen=True, slots=True)
class CommandLineOptions:
    """The parsed command line; empty strings and None keep the value from the settings."""

    model: str = ""
    strategy: str = ""
    params: tuple[tuple[str, str], ...] = ()
    preset: str = ""
    prompt: str | None = None
    chat: bool = False
    media: tuple[Path, ...] = ()
    cache: str = ""
    adapters: tuple[AdapterChoice, ...] = ()
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
        """Whether any option other than those of appearance and settings folder is given."""
        bare = replace(self, size=None, theme="", language="", font_scale=None, scale=None, config_dir=None)
        return bare != CommandLineOptions()

    @property
    def writes_files(self) -> bool:
        """Whether the program writes files and exits without waiting for the user."""
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


class VersionAction(argparse.Action):
    """Print the program's version, which is looked up only then, and end the process."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> None:
        from decodescope.app.state.versions import own_version

        print(f"Decodescope {own_version()}")
        parser.exit()


class CommandLineParser(argparse.ArgumentParser):
    """Argument parser whose help also lists the available names and an example script."""

    @property
    def options(self) -> list[str]:
        """All option strings."""
        return [option for action in self._actions for option in action.option_strings]

    def format_help(self) -> str:
        return f"{super().format_help()}\n{_available_names()}\n{tr(SCRIPT_EXAMPLE)}"


def make_parser() -> CommandLineParser:
    """Create the parser in the current language."""
    description = tr("Watch every token being chosen.")
    parser = CommandLineParser(
        prog="decodescope", description=description, allow_abbrev=False, formatter_class=HelpFormatter
    )
    parser.add_argument("--version", action=VersionAction, nargs=0, default=argparse.SUPPRESS,
        help=tr("show the version and exit"))  # fmt: skip
    parser.add_argument("recorded", nargs="?", type=Path, metavar="FILE.decodescope",
        help=tr("a recorded run to show; no model needed"))  # fmt: skip
    _add_run(parser.add_argument_group(tr("what to run")))
    _add_appearance(parser.add_argument_group(tr("how to show it")))
    _add_files(parser.add_argument_group(tr("what to write")))
    return parser


def _add_run(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", default="", metavar="M", help=tr("bundled name, local folder, or downloaded hub id"))
    add("--strategy", default="", metavar="S", help=tr("decoding strategy; names below"))
    add("--param", action="append", default=[], dest="params", metavar="K=V", type=values.parse_pair,
        help=tr("set a parameter; repeatable"))  # fmt: skip
    add("--preset", default="", metavar="P",
        help=tr("a preset by name, or a settings file: generation config, llama.cpp or KoboldCpp"))  # fmt: skip
    add("--prompt", metavar="TEXT", help=tr("text for the model to continue"))
    add("--media", action="append", default=[], metavar="FILE", type=Path,
        help=tr("sound or picture for the prompt; repeatable"))  # fmt: skip
    add("--chat", action="store_true", help=tr("read the prompt as a chat (user: … assistant: …)"))
    add("--cache", default="", metavar="C", help=tr("how to store keys and values; names below"))
    add("--adapter", action="append", default=[], dest="adapters", metavar="PATH[=N]", type=values.parse_adapter,
        help=tr("LoRA adapter for the model, with a strength (1 by default); repeatable"))  # fmt: skip
    add("--weights", default="", choices=WEIGHT_FORMATS,
        help=tr("storage format of the model's weights: int8 and int4 are smaller, and faster on a CPU"))  # fmt: skip
    add("--memory", metavar="M", type=values.parse_memory,
        help=tr("memory for the weights: all, fit (as much as fits) or a size such as 6GB; the remaining "
            "layers are read from disk for every token"))  # fmt: skip
    add("--draft", action="append", default=[], dest="drafts", metavar="D",
        help=tr("draft model, for strategies that use one; repeatable: several are combined"))  # fmt: skip
    add("--seed", type=values.parse_seed, metavar="N", help=tr("fixed seed"))
    add("--run", action="store_true", help=tr("run immediately"))
    add("--tour", default="", metavar="NAME", type=values.parse_tour,
        help=tr("play a guided tour; with --screenshot it plays to the end automatically; names below"))  # fmt: skip


def _add_appearance(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--present", action="store_true", help=tr("presentation mode: one large view and a one-sentence explanation"))
    add("--view", default="", metavar="V", help=tr("view to show; names below"))
    add("--size", type=values.parse_size, metavar="WxH",
        help=tr("window size in points; the default for pictures is {width}x{height}").format(
            width=values.PICTURE_SIZE[0], height=values.PICTURE_SIZE[1]))  # fmt: skip
    add("--theme", default="", choices=SCHEMES, help=tr("colour theme"))
    add("--language", default="", choices=LANGUAGE_CHOICES,
        help=tr("interface language for this start; the default for pictures is en"))  # fmt: skip
    add("--font-scale", type=values.parse_scale, metavar="F", help=tr("text size, 1.0 = 100 %%"))
    add("--scale", type=values.parse_ratio, metavar="F",
        help=tr("pixels per point, as QT_SCALE_FACTOR: 2 doubles a picture"))  # fmt: skip
    add("--config-dir", type=values.settings_folder, metavar="DIR", help=tr("folder of the settings"))


def _add_files(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--screenshot",
        type=values.picture_path,
        metavar="PATH",
        help=tr("save a picture of the window (after the run) as .png or .svg, then exit; needs no screen"),
    )
    add("--export", type=values.export_path, metavar="PATH",
        help=tr("save the run as a web page (.html), a picture of the view (.png, .svg) or its data (.csv, "
            ".json), then exit; needs no screen"))  # fmt: skip
    add("--plain-csv", action="store_true",
        help=tr("do not escape texts in a .csv; by default, a text that a spreadsheet would run as a formula "
            "gets a leading apostrophe"))  # fmt: skip
    add("--record-demo", type=values.demo_path, metavar="PATH",
        help=tr("record the presented run step by step: .apng, .gif, .webm (with ffmpeg), or .png for a folder "
            "of pictures; 1280x720 without --size; then exit; needs no screen"))  # fmt: skip
    add("--demo-speed", type=values.parse_demo_speed, default=values.DEMO_SPEED, metavar="N",
        help=tr("tokens per second in the demo, %(default)g by default"))  # fmt: skip
    add("--still", action="store_true",
        help=tr("omit from a picture everything that varies between runs: times, speeds, free memory, the text "
            "cursor"))  # fmt: skip
    add(
        "--pictures",
        type=Path,
        metavar="FILE",
        help=tr("create the pictures described by a TOML script, then exit; needs no screen; example below"),
    )
    add("--allow-outside", action="store_true", help=tr("let the picture script write outside its own folder"))
    add(
        "--record",
        type=values.recording_file,
        metavar="OUT.decodescope",
        help=tr("write the run to a file while it is running"),
    )


def _available_names() -> str:
    """List the commands, and the names of all views, strategies, caches, themes and tours; imports them only when help
    is printed.
    """
    from decodescope.app.features.tours.state import names_and_titles
    from decodescope.app.start.cli.commands import COMMANDS
    from decodescope.app.views import VIEWS
    from decodescope.core import caches, strategies

    def listed(title: str, names: Iterable[str]) -> str:
        return fill(f"{title}: {', '.join(names)}", 79, initial_indent="  ", subsequent_indent="    ")

    return "\n".join(
        (
            tr("commands without a window (decodescope COMMAND --help):"),
            *(f"  {name:<10}{tr(about)}" for name, (_module, about) in COMMANDS.items()),
            "",
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
    """Parse the command line; argparse exits the process for --help and for invalid input."""
    with translate_argparse():
        parser = make_parser()
        namespace, unknown = parser.parse_known_args(list(arguments))
        if unknown:
            suggestion = did_you_mean(unknown[0].partition("=")[0], parser.options)
            parser.error(tr("unrecognized arguments: {names}.{near}").format(names=" ".join(unknown), near=suggestion))
        options = CommandLineOptions(
            **{
                **vars(namespace),
                "params": tuple(namespace.params),
                "adapters": tuple(namespace.adapters),
                "drafts": tuple(namespace.drafts),
                "media": tuple(namespace.media),
            }
        )
        if problem := next(_conflicts(options), ""):
            parser.error(problem)
    return options


def _conflicts(options: CommandLineOptions) -> Iterator[str]:
    """Yield a message for each combination of options that is not allowed."""
    if options.still and not options.writes_files and options.pictures is None:
        yield tr("--still applies to pictures only: add --screenshot, --export, --record-demo or --pictures")
    if options.plain_csv and (options.export is None or options.export.suffix.lower() != ".csv"):
        yield tr("--plain-csv applies to exported data only: add --export FILE.csv")
    if options.allow_outside and options.pictures is None:
        yield tr("--allow-outside applies to picture scripts only: add --pictures FILE")
    if options.record is not None and not options.run:
        yield tr("--record needs a run: add --run")
    if options.recorded is not None and options.run:
        yield tr("a recorded run cannot be run again: omit --run or the file")
    if options.tour and (options.run or options.recorded is not None or options.pictures is not None):
        yield tr("a tour chooses and runs everything itself: omit --run, --pictures and the recorded run")
    width, height = (side * (options.scale or 1.0) for side in options.size or PICTURE_SIZE)
    if width * height > MAX_AREA:
        message = tr("a picture of {width:.0f}x{height:.0f} pixels is too large: the maximum is {most:,} pixels")
        yield message.format(width=width, height=height, most=MAX_AREA)


def peek_option(arguments: Sequence[str], option: str, known_names: Sequence[str] = ()) -> str:
    """Return the value of one option before the full parse, so that errors are already reported in the chosen language.

    Return an empty string if the option is absent or its value is not one of `known_names`.
    """
    given = ""
    for argument, following in zip(arguments, (*arguments[1:], ""), strict=False):
        name, equals, value = argument.partition("=")
        if name == option:
            given = value if equals else following
    return given if not known_names or given in known_names else ""


class CommandHelpFormatter(HelpFormatter):
    """Keep the line breaks of the text after the options."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}" for line in text.splitlines()) if "\n" in text else super()._fill_text(
            text, width, indent
        )  # fmt: skip


def make_command_parser(name: str, details: str = "") -> argparse.ArgumentParser:
    """Return the parser of a command, without options, in the current language."""
    with translate_argparse():
        return argparse.ArgumentParser(
            prog=f"decodescope {name}",
            description=tr(COMMANDS[name][1]),
            epilog=details or None,
            allow_abbrev=False,
            formatter_class=CommandHelpFormatter,
        )
