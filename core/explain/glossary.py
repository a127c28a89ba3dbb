"""The field's terms, each in one sentence at every depth, with the paper or document it comes from.

The data are `resources/glossary/*.toml`, a file per group: tables of `id`, `term`, `also` (other names it is found
by), `term_for` (what in the program it explains: `param.top_k`, `strategy.greedy`, `cache.sink`, `view.tree`), `plain`,
`usual`, `exact`, `source` and `address`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import resources
from resources import depth
from resources.language import tr


class GlossaryTerm(NamedTuple):
    """One term as it stands in its file, in English; `title` and `sentence` are for people."""

    id: str
    term: str
    plain: str
    usual: str
    exact: str
    source: str
    """Author, title and year of where it comes from."""
    address: str
    """Where that can be read, https."""
    also: tuple[str, ...] = ()
    of: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its name in the language of now; in another than English, that behind it."""
        own = tr(self.term)
        return own if own == self.term else tr("{own} ({english})").format(own=own, english=self.term)

    @property
    def sentence(self) -> str:
        """What it means, at the depth and in the language of now."""
        return tr(depth.pick(self.plain, self.usual, self.exact))


@cache
def terms() -> Mapping[str, GlossaryTerm]:
    """Every term by its id, in the order of the files."""
    import tomllib  # the window is seen before anybody asks for a term

    found: dict[str, GlossaryTerm] = {}
    for file in sorted(resources.path("glossary").glob("*.toml")):
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["terms"]:
            found[entry["id"]] = GlossaryTerm(**entry | {key: tuple(entry.get(key, ())) for key in ("also", "of")})
    return MappingProxyType(found)


def term(name: str) -> GlossaryTerm:
    """The term of that id. Raises KeyError."""
    return terms()[name]


def term_for(name: str) -> GlossaryTerm | None:
    """The term that explains a part of the program (`param.top_k`, `strategy.greedy`); None where there is none."""
    return _terms_by_subject().get(name)


@cache
def _terms_by_subject() -> Mapping[str, GlossaryTerm]:
    return {name: each for each in terms().values() for name in each.of}


def search_terms(text: str) -> list[GlossaryTerm]:
    """Terms that a few letters of a name (English or the language of now) or of the sentence fit, best first; all
    where there are no letters."""
    wanted = text.casefold().split()
    ranked = [(_match_rank(each, wanted), number, each) for number, each in enumerate(terms().values())]
    return [each for place, _, each in sorted(ranked, key=lambda item: item[:2]) if place < _NO_MATCH]


_NO_MATCH = 4


def _match_rank(each: GlossaryTerm, words: list[str]) -> int:
    """0: a name begins so; 1: a word of a name does; 2: it is in a name; 3: in the sentence."""
    names = [name.casefold() for name in (each.term, each.id.replace("_", " "), tr(each.term), *each.also)]
    whole = " ".join(words)
    if any(name.startswith(whole) for name in names):
        return 0
    words = [word for name in names for word in name.replace("-", " ").split()]
    if all(any(word.startswith(part) for word in words) for part in words):
        return 1
    if all(any(part in name for name in names) for part in words):
        return 2
    return 3 if all(part in each.sentence.casefold() for part in words) else _NO_MATCH
