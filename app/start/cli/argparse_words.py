"""What argparse says by itself, in the language that is spoken."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from unicodedata import east_asian_width

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
