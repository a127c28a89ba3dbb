"""Words of the story world in a language: lists, characters and their pronouns."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data"
PRONOUNS = {
    "english": {"girl": ("she", "her", "her"), "boy": ("he", "him", "his")},
    "chinese": {"girl": ("她", "她", "她的"), "boy": ("他", "他", "他的")},
}
_chosen = ["english"]


def choose_language(language: str) -> None:
    """Write everything from now on in ``english`` or ``chinese``."""
    if language not in PRONOUNS:
        raise ValueError(f"no story grammar for {language!r}; there are {', '.join(PRONOUNS)}")
    _chosen[0] = language


def language() -> str:
    """The language that is written."""
    return _chosen[0]


def table(name: str) -> Any:
    """A table of the grammar in the chosen language, read once from its folder of ``data``."""
    return _read(DATA / ("" if language() == "english" else language()) / f"{name}.json")


@cache
def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def joined(sentences: list[str]) -> str:
    """Sentences as one paragraph; Chinese puts no space between them."""
    return ("" if language() == "chinese" else " ").join(sentences)


@dataclass(frozen=True)
class Character:
    """Someone in a story: an animal with a name and a gender, hence pronouns."""

    name: str
    kind: str
    gender: str

    @property
    def subject(self) -> str:
        return PRONOUNS[language()][self.gender][0]

    @property
    def object(self) -> str:
        return PRONOUNS[language()][self.gender][1]

    @property
    def possessive(self) -> str:
        return PRONOUNS[language()][self.gender][2]


def article(noun: str) -> str:
    """The noun with its indefinite article: ``a fox``, ``an owl``."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def capital(text: str) -> str:
    """The text with a capital first letter, the rest unchanged."""
    return text[:1].upper() + text[1:]


def cast(rng: random.Random, kind: str | None = None) -> tuple[Character, Character]:
    """A hero and a second character of another kind with another name."""
    words = table("words")
    first, second = rng.sample(words["kinds"], 2)
    if kind is not None:
        first, second = kind, second if second != kind else first
    people = [(name, "girl") for name in words["girls"]] + [(name, "boy") for name in words["boys"]]
    (hero, hero_gender), (other, other_gender) = rng.sample(people, 2)
    return Character(hero, first, hero_gender), Character(other, second, other_gender)


def weighted(rng: random.Random, choices: list[str]) -> str:
    """One of the choices, the earlier ones likelier (5 : 3 : 2 : 1)."""
    return rng.choices(choices, weights=[5, 3, 2, 1][: len(choices)])[0]
