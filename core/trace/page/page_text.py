"""The words of the page itself, which stand in its scripts and its skeleton, in the language of now.

A script says `tr("…")`, `trAround("…", …)` or `trn("… one", "… many", n)`; the skeleton `{{…}}`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

from resources.language import ENGLISH, current_language, tr, trn

_TEXT = r'\s*("(?:[^"\\]|\\.)*")'
_CALLS = re.compile(rf"\b(?:tr|trAround)\({_TEXT}|\btrn\({_TEXT},{_TEXT}")
_PLACES = re.compile(r"\{\{(.+?)\}\}")

Message = str | tuple[str, str]
"""A sentence, or its forms for one and for many."""


def script_messages(script: str) -> Iterator[Message]:
    """What a script says, in its order."""
    for said in _CALLS.finditer(script):
        plain, one, many = (json.loads(text) if text else "" for text in said.groups())
        yield plain or (one, many)


def skeleton_messages(skeleton: str) -> Iterator[Message]:
    """What the skeleton says, in its order."""
    yield from _PLACES.findall(skeleton)


def script_translations(script: str) -> dict[str, str]:
    """What the script says it as; empty in English, which stands in it."""
    if current_language() == ENGLISH:
        return {}
    found = {}
    for message in script_messages(script):
        if isinstance(message, str):
            found[message] = tr(message)
        else:
            one, many = message
            found |= {one: trn(one, many, 1), many: trn(one, many, 2)}
    return found


def translate_skeleton(skeleton: str) -> str:
    """The skeleton with its words said."""
    return _PLACES.sub(lambda place: html.escape(tr(place[1])), skeleton)
