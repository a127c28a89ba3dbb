"""The command line: from words to options that fit together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.start.cli.argparse_words import translate_argparse
from app.start.cli.options import CommandLineOptions
from app.start.cli.parser import make_parser
from app.start.cli.values import MAX_AREA, PICTURE_SIZE
from core.suggestions import did_you_mean
from resources.language import tr


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
