"""Parse the values of single command-line options. All parsers raise ArgumentTypeError with a readable message."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.state.suggestions import truncate_name
from decodescope.app.state.worker_messages import parse_memory as parse_weights_memory
from decodescope.app.storage.settings import MAX_SCALE, MAX_SEED, MIN_SCALE
from decodescope.core.errors import FileNotWrittenError, ParameterError
from decodescope.core.system.file_writing import check_destination
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_names, mark, tr

if TYPE_CHECKING:
    from decodescope.core import AdapterChoice

MAX_SIDE = 10_000
"""Maximum width and height of a window or picture, in pixels."""
MAX_AREA = 64_000_000
"""Maximum area of a picture in pixels (244 MiB)."""
MIN_RATIO, MAX_RATIO = 0.5, 4.0
PICTURE_SIZE = (1440, 900)
DEMO_SPEED, MIN_DEMO_SPEED, MAX_DEMO_SPEED = 2.0, 0.1, 25.0
"""Tokens per second."""
EXPORT_SUFFIXES = (".html", ".svg", ".png", ".csv", ".json")


def parse_pair(text: str) -> tuple[str, str]:
    """Parse a setting of the form name=value."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form name=value").format(text=truncate_name(text)))
    return name.strip(), value


def parse_adapter(text: str) -> AdapterChoice:
    """Parse an adapter and its strength: PATH or PATH=0.5."""
    from decodescope.core import adapters

    try:
        return adapters.parse_choice(text)
    except ParameterError as error:
        raise argparse.ArgumentTypeError(f"{error.cause} {error.remedy}") from None


def parse_memory(text: str) -> int:
    """Parse the memory for the weights: all, fit, or a size such as 6GB."""
    try:
        return parse_weights_memory(text)
    except ValueError:
        message = tr("“{text}” is not valid: use all, fit, or a size such as 6GB or 800MB")
        raise argparse.ArgumentTypeError(message.format(text=truncate_name(text))) from None


def parse_size(text: str) -> tuple[int, int]:
    """Parse a width and height in pixels, such as 1280x800."""
    match = re.fullmatch(r"([0-9]{1,9})[xX×]([0-9]{1,9})", text)
    if match is None:
        raise argparse.ArgumentTypeError(tr("“{text}” is not of the form 1280x800").format(text=truncate_name(text)))
    if min(int(match[1]), int(match[2])) < 1:
        raise argparse.ArgumentTypeError(
            tr("{text} is too small: each side must be at least one pixel").format(text=text)
        )
    if max(int(match[1]), int(match[2])) > MAX_SIDE:
        raise argparse.ArgumentTypeError(
            tr("{text} is too large: the maximum is {most:,} pixels per side").format(text=text, most=MAX_SIDE)
        )
    return int(match[1]), int(match[2])


@dataclass(frozen=True, slots=True)
class OutputPath:
    """Parser of the path of a file or folder that a command will write.

    A place that cannot be written is refused here, before the work for it begins. `is_folder`: files are written into a
    folder at the path. `creates_folders`: the command creates missing folders above the file. `check` refuses names
    that do not suit the command.
    """

    is_folder: bool = False
    creates_folders: bool = False
    is_optional: bool = False
    """Whether the command goes on where it must not write."""
    check: Callable[[str], object] | None = None

    def __call__(self, text: str) -> Path:
        """Parse a path. Raises ArgumentTypeError."""
        if not text.strip():
            raise argparse.ArgumentTypeError(tr("The name is empty. Pass the name of a file or folder."))
        if self.check is not None:
            self.check(text)
        path = Path(text)
        try:
            check_destination(
                path, is_folder=self.is_folder, creates_folders=self.creates_folders, is_optional=self.is_optional
            )
        except FileNotWrittenError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return path


def _check_picture(text: str) -> None:
    from decodescope.app.widgets.widget_pictures import SUFFIXES  # imports Qt, which no other option needs

    _check_suffix(text, SUFFIXES, mark("image"))


def _check_demo(text: str) -> None:
    from decodescope.app.features.presentation.store import ENDINGS, PNGS

    _check_suffix(text, ENDINGS, mark("demo"))
    folder, suffix = os.path.splitext(text)
    if suffix.lower() == f".{PNGS}" and os.path.exists(folder):
        raise argparse.ArgumentTypeError(tr("{folder} already exists. Choose another name.").format(folder=folder))


def _check_recording(text: str) -> None:
    if os.path.exists(text) and not os.path.isfile(text):
        raise argparse.ArgumentTypeError(
            tr("{file} is a folder, a pipe or a device. Choose another name.").format(file=text)
        )


output_file = OutputPath()
recording_file = OutputPath(check=_check_recording)
output_folder = OutputPath(is_folder=True)
settings_folder = OutputPath(is_folder=True, is_optional=True)
picture_path = OutputPath(creates_folders=True, check=_check_picture)
export_path = OutputPath(creates_folders=True, check=lambda text: _check_suffix(text, EXPORT_SUFFIXES, mark("export")))
demo_path = OutputPath(creates_folders=True, check=_check_demo)
"""Parser of the path of a film; .png means a folder of pictures."""


def parse_demo_speed(text: str) -> float:
    """Parse a speed in tokens per second."""
    return _parse_within(text, MIN_DEMO_SPEED, MAX_DEMO_SPEED)


def _check_suffix(text: str, suffixes: Sequence[str], kind: str) -> None:
    path = Path(text)
    if path.suffix.lower() not in suffixes:
        named = (
            tr("“{suffix}” is not a supported {what} format").format(suffix=path.suffix, what=tr(kind))
            if path.suffix
            else tr("“{text}” has no file extension").format(text=truncate_name(text))
        )
        raise argparse.ArgumentTypeError(
            tr("{named}: use the extension {names} or {last}").format(
                named=named, names=join_names(suffixes[:-1]), last=suffixes[-1]
            )
        )


def parse_tour(text: str) -> str:
    """Return the canonical name of a tour; an empty text stays empty."""
    from decodescope.app.features.tours.state import TourError, find_tour

    try:
        return find_tour(text).name if text else ""  # argparse also parses a default that is a string
    except TourError as problem:
        raise argparse.ArgumentTypeError(problem.cause) from None


def parse_ratio(text: str) -> float:
    """Parse the number of pixels per point."""
    return _parse_within(text, MIN_RATIO, MAX_RATIO)


def parse_seed(text: str) -> int:
    """Parse a seed."""
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) > MAX_SEED:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is not a whole number from 0 to {most}").format(text=truncate_name(text), most=MAX_SEED)
        )
    return int(text)


def parse_scale(text: str) -> float:
    """Parse the text size (1.0 = 100 %)."""
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


def read_text_file(path: Path) -> str:
    """Return the content of a text file, its line breaks as they are. Raises ParameterError if it cannot be read."""
    try:
        if path.exists() and not path.is_file():  # reading a pipe or device may never end
            raise OSError(tr("it is not a regular file"))
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        raise ParameterError(
            tr("{file} cannot be read: {error}.").format(file=path, error=system_error_reason(error)),
            tr("Pass a text file in UTF-8."),
        ) from error
