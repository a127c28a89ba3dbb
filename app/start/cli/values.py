"""What the options of the command line are given: read one by one. What cannot be is refused in words: all of these
raise ArgumentTypeError."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from app.state.suggestions import short
from app.state.weights_memory import memory_of
from app.storage.settings import LARGEST_SCALE, LARGEST_SEED, SMALLEST_SCALE
from resources.language import mark, tr

LARGEST_SIDE = 10_000
"""Pixels of a window or a picture."""
LARGEST_AREA = 64_000_000
"""Pixels of a picture, 244 MiB of them."""
LEAST_RATIO, LARGEST_RATIO = 0.5, 4.0
PICTURE_SIZE = (1440, 900)
DEMO_SPEED, SLOWEST_DEMO, FASTEST_DEMO = 2.0, 0.1, 25.0
"""Tokens a second."""
EXPORTS = (".html", ".svg", ".png", ".csv", ".json")


def pair(text: str) -> tuple[str, str]:
    """A setting, name=value."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form name=value").format(text=short(text)))
    return name.strip(), value


def memory(text: str) -> int:
    """How much memory the weights may take: all, fit, or gigabytes."""
    try:
        return memory_of(text)
    except ValueError:
        told = tr("“{text}” is neither all nor fit nor a size as 6GB or 800MB")
        raise argparse.ArgumentTypeError(told.format(text=short(text))) from None


def size(text: str) -> tuple[int, int]:
    """A width and a height in pixels, 1280x800."""
    match = re.fullmatch(r"([0-9]{1,9})[xX×]([0-9]{1,9})", text)
    if match is None:
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form 1280x800").format(text=short(text)))
    if min(int(match[1]), int(match[2])) < 1:
        raise argparse.ArgumentTypeError(tr("{text} is too small: a side has at least one pixel").format(text=text))
    if max(int(match[1]), int(match[2])) > LARGEST_SIDE:
        raise argparse.ArgumentTypeError(
            tr("{text} is too large: {most:,} are the most on a side").format(text=text, most=LARGEST_SIDE)
        )
    return int(match[1]), int(match[2])


def picture(text: str) -> Path:
    """A file that a picture is written to."""
    from app.widgets.widget_pictures import SUFFIXES  # brings Qt, which nobody else waits for

    return _ending(text, SUFFIXES, mark("picture"))


def export(text: str) -> Path:
    """A file that a run is saved in."""
    return _ending(text, EXPORTS, mark("export"))


def demo(text: str) -> Path:
    """A film's file; .png is a folder of pictures."""
    from app.storage.film.film_formats import ENDINGS

    return _ending(text, ENDINGS, mark("demo"))


def demo_speed(text: str) -> float:
    """Tokens a second."""
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


def tour(text: str) -> str:
    """The name of a tour; empty for none."""
    from app.state.tours import TourProblem, find

    try:
        return find(text).name if text else ""  # argparse reads a default that is text like any other
    except TourProblem as problem:
        raise argparse.ArgumentTypeError(problem.cause) from None


def ratio(text: str) -> float:
    """Pixels a point."""
    return _within(text, LEAST_RATIO, LARGEST_RATIO)


def seed(text: str) -> int:
    """A seed."""
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is not a whole number from 0 to {most}").format(text=short(text), most=LARGEST_SEED)
        )
    return int(text)


def scale(text: str) -> float:
    """The size of text, 1.0 = 100 %."""
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
