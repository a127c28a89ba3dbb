"""Retranslate finished texts when the language is switched.

Most of a window is rebuilt from its values, but an error or notice only has its finished text. It is matched against
the catalogues' templates, and translated again with the values of its placeholders.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from decodescope import resources
from decodescope.resources.language import ENGLISH, LANGUAGES, current_language, join_sentences

_PLACEHOLDER = re.compile(r"\{(\w*)[^{}]*\}")
_SENTENCE = re.compile(r".+?(?:[.!?…](?=\s|$)|[。！？]|$)\s*", re.DOTALL)
_MIN_LETTERS = 2
"""A template with fewer letters matches almost any text."""
_MAX_DEPTH = 4
"""Maximum nesting of texts within texts."""


class _Template(NamedTuple):
    literals: tuple[str, ...]
    """Texts between the placeholders."""
    names: tuple[str, ...]
    one: str
    many: str
    """The translation, singular and plural."""

    @property
    def letter_count(self) -> int:
        """Number of letters in the literals."""
        return sum(character.isalpha() for literal in self.literals for character in literal)

    def values(self, text: str) -> list[str] | None:
        """Return the values of the placeholders in order; None if the text does not match."""
        if not text.startswith(self.literals[0]) or any(literal not in text for literal in self.literals):
            return None
        found = re.fullmatch("(.+?)".join(map(re.escape, self.literals)), text, re.DOTALL)
        return list(found.groups()) if found else None

    def fill(self, values: list[str]) -> str:
        """Return the translation filled with the values."""
        named = dict(reversed(list(zip(self.names, values, strict=True))))
        wanted = self.one if "1" in values else self.many
        return _PLACEHOLDER.sub(lambda place: named.get(place[1], place[0]), wanted)


def retranslate(text: str) -> str:
    """Return `text` in the current language if it matches a translated sentence of any language; otherwise
    unchanged.
    """
    return _retranslate(text, 0)


def _retranslate(text: str, depth: int) -> str:
    stripped = text.strip()
    if not stripped or depth > _MAX_DEPTH:
        return text
    exact, templates = _tables(current_language())
    if stripped in exact:
        return text.replace(stripped, exact[stripped])
    parts = [part.strip() for part in _SENTENCE.findall(text) if part.strip()]
    if len(parts) > 1:
        said = [_retranslate(part, depth + 1) for part in parts]
        if all(new != old for new, old in zip(said, parts, strict=True)):
            return join_sentences(*said)
    for template in templates:
        values = template.values(stripped)
        if values is not None:
            return template.fill([_retranslate(value, depth + 1) for value in values])
    return text


@cache
def _tables(code: str) -> tuple[dict[str, str], tuple[_Template, ...]]:
    """Return a table of whole texts and a list of templates, those with most letters first, with their translations."""
    exact: dict[str, str] = {}
    templates: list[_Template] = []
    for other in (name for name in LANGUAGES if name != ENGLISH):
        for english, foreign in _messages(other):
            old, new = (english, foreign) if code == other else (foreign, english)
            for form in old:
                literals = tuple(_PLACEHOLDER.sub("\x00", form).split("\x00"))
                template = _Template(literals, tuple(_PLACEHOLDER.findall(form)), new[0], new[-1])
                if len(literals) == 1:
                    exact.setdefault(form, new[0])
                elif template.letter_count >= _MIN_LETTERS:
                    templates.append(template)
    return exact, tuple(sorted(templates, key=lambda one: -one.letter_count))


def _messages(code: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the English and translated forms of every message."""
    for file in sorted(resources.path("translations", code).glob("*.mo")):
        yield from _read_catalogue(file)


def _read_catalogue(file: Path) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the messages of a compiled catalogue. The file is parsed here because `gettext` does not keep the original
    plural forms.
    """
    data = file.read_bytes()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, originals, translations = struct.unpack_from(f"{order}III", data, 8)
    for number in range(count):
        texts = []
        for table in (originals, translations):
            length, start = struct.unpack_from(f"{order}II", data, table + 8 * number)
            texts.append(data[start : start + length].decode("utf-8"))
        english = tuple(texts[0].rpartition("\x04")[2].split("\x00"))
        if english[0] and texts[1]:
            yield english, tuple(texts[1].split("\x00"))
