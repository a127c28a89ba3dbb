"""What the options of the command line are given: read one by one. What cannot be is refused in words: all of these
raise ArgumentTypeError."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from app.state.suggestions import truncate_name
from app.state.worker_messages import parse_memory as parse_weights_memory
from app.storage.settings import MAX_SCALE, MAX_SEED, MIN_SCALE
from resources.language import mark, tr

MAX_SIDE = 10_000
"""Pixels of a window or a picture."""
MAX_AREA = 64_000_000
"""Pixels of a picture, 244 MiB of them."""
MIN_RATIO, MAX_RATIO = 0.5, 4.0
PICTURE_SIZE = (1440, 900)
DEMO_SPEED, MIN_DEMO_SPEED, MAX_DEMO_SPEED = 2.0, 0.1, 25.0
"""Tokens a second."""
EXPORT_SUFFIXES = (".html", ".svg", ".png", ".csv", ".json")


def parse_pair(text: str) -> tuple[str, str]:
    """A setting, name=value."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form name=value").format(text=truncate_name(text)))
    return name.strip(), value


def parse_memory(text: str) -> int:
    """How much memory the weights may take: all, fit, or gigabytes."""
    try:
        return parse_weights_memory(text)
    except ValueError:
        message = tr("“{text}” is neither all nor fit nor a size as 6GB or 800MB")
        raise argparse.ArgumentTypeError(message.format(text=truncate_name(text))) from None


def parse_size(text: str) -> tuple[int, int]:
    """A width and a height in pixels, 1280x800."""
    match = re.fullmatch(r"([0-9]{1,9})[xX×]([0-9]{1,9})", text)
    if match is None:
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form 1280x800").format(text=truncate_name(text)))
    if min(int(match[1]), int(match[2])) < 1:
        raise argparse.ArgumentTypeError(tr("{text} is too small: a side has at least one pixel").format(text=text))
    if max(int(match[1]), int(match[2])) > MAX_SIDE:
        raise argparse.ArgumentTypeError(
            tr("{text} is too large: {most:,} are the most on a side").format(text=text, most=MAX_SIDE)
        )
    return int(match[1]), int(match[2])


def picture_path(text: str) -> Path:
    """A file that a picture is written to."""
    from app.widgets.widget_pictures import SUFFIXES  # brings Qt, which nobody else waits for

    return _path_with_suffix(text, SUFFIXES, mark("picture"))


def export_path(text: str) -> Path:
    """A file that a run is saved in."""
    return _path_with_suffix(text, EXPORT_SUFFIXES, mark("export"))


def demo_path(text: str) -> Path:
    """A film's file; .png is a folder of pictures."""
    from app.storage.film.film_formats import ENDINGS

    return _path_with_suffix(text, ENDINGS, mark("demo"))


def parse_demo_speed(text: str) -> float:
    """Tokens a second."""
    return _parse_within(text, MIN_DEMO_SPEED, MAX_DEMO_SPEED)


def _path_with_suffix(text: str, known: Sequence[str], what: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in known:
        named = (
            tr("“{suffix}” is no kind of {what}").format(suffix=path.suffix, what=tr(what))
            if path.suffix
            else tr("“{text}” does not say which kind").format(text=truncate_name(text))
        )
        raise argparse.ArgumentTypeError(
            tr("{named}: end the name with {names} or {last}").format(
                named=named, names=", ".join(known[:-1]), last=known[-1]
            )
        )
    return path


def parse_tour(text: str) -> str:
    """The name of a tour; empty for none."""
    from app.state.tours import TourError, find_tour

    try:
        return find_tour(text).name if text else ""  # argparse reads a default that is text like any other
    except TourError as problem:
        raise argparse.ArgumentTypeError(problem.cause) from None


def parse_ratio(text: str) -> float:
    """Pixels a point."""
    return _parse_within(text, MIN_RATIO, MAX_RATIO)


def parse_seed(text: str) -> int:
    """A seed."""
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) > MAX_SEED:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is not a whole number from 0 to {most}").format(text=truncate_name(text), most=MAX_SEED)
        )
    return int(text)


def parse_scale(text: str) -> float:
    """The size of text, 1.0 = 100 %."""
    return _parse_within(text, MIN_SCALE, MAX_SCALE)


def _parse_within(text: str, minimum: float, maximum: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not minimum <= number <= maximum:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is not a number from {least} to {most}").format(
                text=truncate_name(text), least=minimum, most=maximum
            )
        )
    return number
