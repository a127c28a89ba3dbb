"""The command line: from words to options that fit together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.start.cli.argparse_words import spoken
from app.start.cli.options import CommandLineOptions
from app.start.cli.parser import make
from app.start.cli.values import LARGEST_AREA, PICTURE_SIZE
from core.suggestions import near
from resources.language import tr


def parse(arguments: Sequence[str]) -> CommandLineOptions:
    """Read the command line; argparse ends the program for --help and for what it cannot read."""
    with spoken():
        parser = make()
        read, unknown = parser.parse_known_args(list(arguments))
        if unknown:
            meant = near(unknown[0].partition("=")[0], parser.options)
            parser.error(tr("unrecognized arguments: {names}.{near}").format(names=" ".join(unknown), near=meant))
        options = CommandLineOptions(**{**vars(read), "params": tuple(read.params), "drafts": tuple(read.drafts),
                             "media": tuple(read.media)})  # fmt: skip
        if problem := next(_conflicts(options), ""):
            parser.error(problem)
    return options


def _conflicts(options: CommandLineOptions) -> Iterator[str]:
    """What of it does not go together."""
    if options.still and not options.leaves and options.pictures is None:
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
    if width * height > LARGEST_AREA:
        told = tr("a picture of {width:.0f}x{height:.0f} pixels is too large: {most:,} are the most")
        yield told.format(width=width, height=height, most=LARGEST_AREA)


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
