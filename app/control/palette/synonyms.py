"""Other words by which entries of the palette are found: a table of synonyms, and their names in every language."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import resources
from app.control.palette.entry import PaletteEntry
from resources.language import LANGUAGES, translate_to


def with_synonyms(entry: PaletteEntry) -> PaletteEntry:
    """The entry, found by its synonyms and by its names in the other languages too."""
    names = (entry.title, *entry.aliases)
    foreign = (translate_to(name, code) for name in names for code in LANGUAGES)
    words = table().get(entry.key, {})
    synonyms = (word for code in LANGUAGES for word in words.get(code, ()))
    return replace(entry, aliases=tuple(dict.fromkeys((*entry.aliases, *foreign, *synonyms))))


@cache
def table() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """For each key of an entry the synonyms of each language, by the language's code."""
    text = resources.path("palette", "synonyms.toml").read_text(encoding="utf-8")
    codes = {"en": "en", "zh": "zh_CN"}
    return {
        f"{kind}.{name}": {codes[language]: _split(words) for language, words in languages.items()}
        for kind, entries in tomllib.loads(text).items()
        for name, languages in entries.items()
    }


def _split(words: str) -> tuple[str, ...]:
    return tuple(word for part in re.split(r"[,，]", words) if (word := part.strip()))
