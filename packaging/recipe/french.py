"""English sentences and their French translations, from one closed grammar with agreement.

Articles, possessives, adjectives and verbs agree in gender and number; ``le`` and ``la`` are
elided before a vowel, and ``beau``, ``vieux``, ``ce``, ``ma`` and ``sa`` take their vowel forms.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from lexicon import article, capital, table

VOWELS = "aàâeéèêiîoôuh"
ARTICLES = {
    "the": (("le ", "la "), "les "),
    "a": (("un ", "une "), "des "),
    "this": (("ce ", "cette "), "ces "),
    "my": (("mon ", "ma "), "mes "),
    "his": (("son ", "sa "), "ses "),
    "her": (("son ", "sa "), "ses "),
}
VOWEL_ARTICLES = {
    "the": ("l'", "l'"),
    "this": ("cet ", "cette "),
    "my": ("mon ", "mon "),
    "his": ("son ", "son "),
    "her": ("son ", "son "),
}
ENGLISH_PLURAL = {"a": "some", "this": "these"}


@dataclass(frozen=True)
class Phrase:
    """A noun phrase in both languages, with what agrees with it."""

    english: str
    french: str
    feminine: bool
    plural: bool


def starts_with_vowel(word: str) -> bool:
    """Return whether French elides before this word (every ``h`` of this grammar is mute or absent)."""
    return word[0] in VOWELS


def agree(adjective: list[str], feminine: bool, plural: bool, following: str = "") -> str:
    """The French form of an adjective; ``following`` is the noun that it stands before, if any."""
    if len(adjective) > 5 and following and not feminine and not plural and starts_with_vowel(following):
        return adjective[5]
    return adjective[1 + feminine + 2 * plural]


def determiner(word: str, following: str, feminine: bool, plural: bool, preposed: bool = False) -> str:
    """The French determiner before ``following``, its space included; ``des`` becomes ``de`` before an adjective."""
    singular, many = ARTICLES[word]
    if plural:
        return "de " if word == "a" and preposed else many
    forms = VOWEL_ARTICLES.get(word, singular) if starts_with_vowel(following) else singular
    return forms[feminine]


def noun_phrase(
    noun: list[str], word: str, plural: bool, before: list[str] | None = None, after: list[str] | None = None
) -> Phrase:
    """Build one noun phrase: determiner, perhaps an adjective before or after, noun."""
    feminine = noun[4] == "f"
    french = noun[2 + plural]
    if before:
        french = f"{agree(before, feminine, plural, french)} {french}"
    french = determiner(word, french, feminine, plural, preposed=before is not None) + french
    if after:
        french += " " + agree(after, feminine, plural)
    bare = " ".join([*(adjective[0] for adjective in (before, after) if adjective), noun[plural]])
    if word == "a" and not plural:
        return Phrase(article(bare), french, feminine, plural)
    return Phrase(f"{ENGLISH_PLURAL.get(word, word) if plural else word} {bare}", french, feminine, plural)


def draw_phrase(rng: random.Random, nouns: str, words: list[str], plural: float = 0.35) -> Phrase:
    """A random noun phrase over a list of nouns and a choice of determiners."""
    grammar = table("french")
    place = rng.choice(["none", "before", "after"])
    before = rng.choice(grammar["before"]) if place == "before" else None
    after = rng.choice(grammar["colors"]) if place == "after" else None
    return noun_phrase(rng.choice(grammar[nouns]), rng.choice(words), rng.random() < plural, before, after)


def draw_subject(rng: random.Random) -> Phrase:
    """Who acts: animals, a pronoun or someone with a name."""
    if rng.random() < 0.7:
        return draw_phrase(rng, "animals", ["the", "the", "a", "this", "my"])
    words = table("words")
    name = rng.choice(["girls", "boys"])
    person = rng.choice(words[name])
    pronouns = [("he", "il", False, False), ("she", "elle", True, False), ("they", "ils", False, True)]
    return Phrase(*rng.choice([*pronouns, (person, person, name == "girls", False)]))


def negated(verb: str) -> str:
    """The French verb between ``ne`` and ``pas``."""
    return ("n'" if starts_with_vowel(verb) else "ne ") + verb + " pas"


def _acting(rng: random.Random, subject: Phrase) -> tuple[str, str]:
    grammar = table("french")
    verb, place = rng.choice(grammar["acts"]), rng.choice(grammar["places"])
    english, french = verb[0 if subject.plural else 1], verb[2 + subject.plural]
    if rng.random() < 0.3:
        english, french = f"{'do' if subject.plural else 'does'} not {verb[0]}", negated(french)
    return f"{subject.english} {english} {place[0]}.", f"{subject.french} {french} {place[1]}."


def _taking(rng: random.Random, subject: Phrase) -> tuple[str, str]:
    verb = rng.choice(table("french")["takes"])
    thing = draw_phrase(rng, "objects", ["the", "a", "his", "her", "my", "this"], plural=0.25)
    english, french = verb[0 if subject.plural else 1], verb[2 + subject.plural]
    return f"{subject.english} {english} {thing.english}.", f"{subject.french} {french} {thing.french}."


def _being(rng: random.Random, subject: Phrase) -> tuple[str, str]:
    mood = rng.choice(table("french")["moods"])
    english, french = ("are", "sont") if subject.plural else ("is", "est")
    if rng.random() < 0.3:
        english, french = f"{english} not", negated(french)
    return (
        f"{subject.english} {english} {mood[0]}.",
        f"{subject.french} {french} {agree(mood, subject.feminine, subject.plural)}.",
    )


def _asking(rng: random.Random, subject: Phrase) -> tuple[str, str]:
    phrase = draw_phrase(rng, rng.choice(["animals", "objects"]), ["the", "my", "his", "her"])
    english, french = ("are", "sont") if phrase.plural else ("is", "est")
    return f"Where {english} {phrase.english}?", f"Où {french} {phrase.french} ?"


def _showing(rng: random.Random, subject: Phrase) -> tuple[str, str]:
    phrase = draw_phrase(rng, rng.choice(["animals", "objects"]), ["a"])
    place = rng.choice(table("french")["places"])
    return (
        f"There {'are' if phrase.plural else 'is'} {phrase.english} {place[0]}.",
        f"Il y a {phrase.french} {place[1]}.",
    )


def write_pair(rng: random.Random) -> tuple[str, str]:
    """One English sentence and its French translation."""
    build = rng.choices([_acting, _taking, _being, _asking, _showing], weights=[5, 6, 4, 2, 3])[0]
    english, french = build(rng, draw_subject(rng))
    return capital(english), capital(french)
