"""The command line: what to set, whether to run at once, whether to leave a picture and go."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.storage.settings import LARGEST_SCALE, LARGEST_SEED, SCHEMES, SMALLEST_SCALE


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
    view: str = ""
    size: tuple[int, int] | None = None
    theme: str = ""
    font_scale: float | None = None
    screenshot: Path | None = None
    config_dir: Path | None = None


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line; argparse ends the program for --help and for what it cannot read."""
    read = _parser().parse_args(list(arguments))
    return Options(**{**vars(read), "params": tuple(read.params), "drafts": tuple(read.drafts)})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tokenscope", description="Watch every token being chosen.", allow_abbrev=False
    )
    add = parser.add_argument
    add("--model", default="", metavar="M", help="bundled name, folder, or hub id already on this disk")
    add("--strategy", default="", metavar="S", help="how to decode: greedy, sampling, contrastive, dola, …")
    add("--param", action="append", default=[], dest="params", metavar="K=V", type=_pair, help="a setting; repeatable")
    add("--prompt", metavar="TEXT", help="what the model continues")
    add("--chat", action="store_true", help="read the prompt as a chat (user: … assistant: …)")
    add("--cache", default="", metavar="C", help="how keys and values are kept")
    add("--draft", action="append", default=[], dest="drafts", metavar="D",
        help="draft model, for strategies that take one; repeatable: several are merged")  # fmt: skip
    add("--seed", type=_seed, metavar="N", help="seed, locked")
    add("--run", action="store_true", help="run at once")
    add("--view", default="", metavar="V", help="view to show")
    add("--size", type=_size, metavar="WxH", help="size of the window in pixels")
    add("--theme", default="", choices=SCHEMES, help="colours")
    add("--font-scale", type=_scale, metavar="F", help="text size, 1.0 = 100 %%")
    add("--screenshot", type=Path, metavar="PATH", help="save a picture of the window (after the run), then leave")
    add("--config-dir", type=Path, metavar="DIR", help="where settings are kept")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name.strip(), value


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[xX×](\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 1280x800")
    return int(match[1]), int(match[2])


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {LARGEST_SEED}")
    return int(text)


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {SMALLEST_SCALE} to {LARGEST_SCALE}")
    return scale
