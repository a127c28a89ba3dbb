"""How a text without spaces is broken into lines.

Qt looks through all of a word for each line that it fills: a word of 100,000 letters takes a second, one of a million
minutes. Such a text is broken anywhere instead.
"""

from __future__ import annotations

import re

from PySide6.QtGui import QTextOption

_MAX_WORD_LENGTH = 5000
_LONG_WORD = re.compile(rf"[^\s\u2e80-\ud7ff\uf900-\uffef]{{{_MAX_WORD_LENGTH}}}")
"""A word; ideographs and their like can be broken anywhere as it is."""


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Whole words, or anywhere for a text that holds a word of thousands of letters."""
    if len(text) >= _MAX_WORD_LENGTH and _LONG_WORD.search(text):
        return QTextOption.WrapMode.WrapAnywhere
    return QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
