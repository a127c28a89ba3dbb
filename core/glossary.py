"""Glossary of the field: each term explained in one sentence per level of detail, with its source.

The data are `resources/glossary/*.toml`, a file per group: tables of `id`, `term`, `also` (synonyms for search), `of`
(what in the program it explains: `param.top_k`, `strategy.greedy`, `cache.sink`, `view.tree`), `plain`, `usual`,
`exact`, `source` and `address`. Strategies, processors and caches that no file explains have the term of their
`description`, which also explains their own settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from decodescope import resources
from decodescope.core import caches, processors, strategies
from decodescope.core.common.entry_description import EntryDescription
from decodescope.core.processors.pipeline_stages import processor_settings
from decodescope.resources import depth
from decodescope.resources.language import tr


class GlossaryTerm(NamedTuple):
    """A term as stored in its file, in English; `title` and `sentence` are translated."""

    id: str
    term: str
    plain: str
    usual: str
    exact: str
    source: str
    """Author, title and year of the source."""
    address: str
    """URL of the source, https."""
    also: tuple[str, ...] = ()
    of: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name in the current language, followed by the English name if that differs."""
        own = tr(self.term)
        return own if own == self.term else tr("{own} ({english})").format(own=own, english=self.term)

    @property
    def sentence(self) -> str:
        """Explanation at the current level of detail and language."""
        return tr(depth.pick(self.plain, self.usual, self.exact))


@cache
def _written_terms() -> Mapping[str, GlossaryTerm]:
    """Return the terms of the files by id, in their order."""
    import tomllib  # not needed before the first term is requested

    found: dict[str, GlossaryTerm] = {}
    for file in sorted(resources.path("glossary").glob("*.toml")):
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["terms"]:
            found[entry["id"]] = GlossaryTerm(**entry | {key: tuple(entry.get(key, ())) for key in ("also", "of")})
    return MappingProxyType(found)


@cache
def _written_subjects() -> Mapping[str, GlossaryTerm]:
    return {name: each for each in _written_terms().values() for name in each.of}


def terms() -> Mapping[str, GlossaryTerm]:
    """Return all terms by id: those of the files in their order, then those of entries that no file explains."""
    return MappingProxyType({**_written_terms(), **{term.id: term for term in _entry_terms()}})


def _entry_terms() -> Iterator[GlossaryTerm]:
    """Yield the terms of the entries that describe themselves, plug-ins included."""
    explained = set(_written_subjects())
    for subject, title, description, settings in _described_entries():
        of = tuple(name for name in dict.fromkeys((subject, *settings)) if name not in explained)
        if description is not None and of:
            explained.update(of)
            yield GlossaryTerm(
                subject.replace(".", "_"), title, description.plain, description.usual, description.exact,
                description.source, description.address, description.also, of,
            )  # fmt: skip


def _described_entries() -> Iterator[tuple[str, str, EntryDescription | None, tuple[str, ...]]]:
    """Yield each entry's subject, title, description and the subjects of its settings."""
    for stage in processors.registry.values():
        if stage.parameter is not None:
            settings = tuple(f"param.{parameter.name}" for parameter in processor_settings(stage))
            yield f"param.{stage.name}", stage.parameter.title, stage.description, settings
    for kind, registry in (("strategy", strategies.registry), ("cache", caches.registry)):
        for entry in registry.values():
            settings = tuple(f"param.{parameter.name}" for parameter in entry.parameters)
            yield f"{kind}.{entry.name}", entry.title, entry.description, settings


def term(name: str) -> GlossaryTerm:
    """Return the term with that id. Raises KeyError."""
    return terms()[name]


def term_for(name: str) -> GlossaryTerm | None:
    """Return the term that explains a part of the program (`param.top_k`, `strategy.greedy`); None if there is none."""
    return _written_subjects().get(name) or next((term for term in _entry_terms() if name in term.of), None)


def search_terms(text: str) -> list[GlossaryTerm]:
    """Return terms whose name (in English or the current language) or sentence matches the search text, best first; all
    terms for an empty text.
    """
    search_words = text.casefold().split()
    ranked = [(_match_rank(each, search_words), number, each) for number, each in enumerate(terms().values())]
    return [each for place, _, each in sorted(ranked, key=lambda item: item[:2]) if place < _NO_MATCH]


_NO_MATCH = 4


def _match_rank(term: GlossaryTerm, words: list[str]) -> int:
    """Rank a match: 0: a name starts with the text; 1: words of a name start with it; 2: in a name; 3: in the
    sentence.
    """
    names = [name.casefold() for name in (term.term, term.id.replace("_", " "), tr(term.term), *term.also)]
    whole = " ".join(words)
    if any(name.startswith(whole) for name in names):
        return 0
    name_words = [word for name in names for word in name.replace("-", " ").split()]
    if all(any(word.startswith(part) for word in name_words) for part in words):
        return 1
    if all(any(part in name for name in names) for part in words):
        return 2
    return 3 if all(part in term.sentence.casefold() for part in words) else _NO_MATCH
