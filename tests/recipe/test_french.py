"""French agreement, held against sentences translated by hand."""

import random

import pytest
from french import agree, negated, noun_phrase, write_pair
from lexicon import table

GRAMMAR = table("french")


def noun(english: str) -> list[str]:
    return next(row for row in GRAMMAR["animals"] + GRAMMAR["objects"] if row[0] == english)


def adjective(english: str) -> list[str]:
    return next(row for row in GRAMMAR["before"] + GRAMMAR["colors"] + GRAMMAR["moods"] if row[0] == english)


@pytest.mark.parametrize(
    ("word", "name", "plural", "before", "after", "english", "french"),
    [
        ("the", "fox", False, "little", None, "the little fox", "le petit renard"),
        ("the", "frog", True, None, "green", "the green frogs", "les grenouilles vertes"),
        ("the", "squirrel", False, None, None, "the squirrel", "l'écureuil"),
        ("the", "squirrel", False, "old", None, "the old squirrel", "le vieil écureuil"),
        ("the", "bear", True, "old", None, "the old bears", "les vieux ours"),
        ("a", "owl", False, None, None, "an owl", "une chouette"),
        ("a", "owl", False, "old", None, "an old owl", "une vieille chouette"),
        ("a", "bear", False, "beautiful", None, "a beautiful bear", "un bel ours"),
        ("a", "horse", True, None, "white", "some white horses", "des chevaux blancs"),
        ("a", "mouse", True, "pretty", None, "some pretty mice", "de jolies souris"),
        ("this", "bear", False, None, None, "this bear", "cet ours"),
        ("this", "hat", True, None, "black", "these black hats", "ces chapeaux noirs"),
        ("her", "scarf", False, None, "red", "her red scarf", "son écharpe rouge"),
        ("his", "scarf", False, "beautiful", None, "his beautiful scarf", "sa belle écharpe"),
        ("my", "boat", False, None, "blue", "my blue boat", "mon bateau bleu"),
    ],
)
def test_noun_phrases_agree_in_gender_and_number(
    word: str, name: str, plural: bool, before: str | None, after: str | None, english: str, french: str
) -> None:
    phrase = noun_phrase(
        noun(name), word, plural, adjective(before) if before else None, adjective(after) if after else None
    )
    assert (phrase.english, phrase.french) == (english, french)


def test_adjectives_after_the_verb_agree_in_gender_and_number() -> None:
    assert agree(adjective("brave"), feminine=True, plural=True) == "courageuses"
    assert agree(adjective("happy"), feminine=False, plural=True) == "contents"


def test_negation_elides_before_a_vowel() -> None:
    assert negated("est") == "n'est pas"
    assert negated("dort") == "ne dort pas"


def test_sentence_pairs_are_capitalized_punctuated_and_elided() -> None:
    for seed in range(400):
        english, french = write_pair(random.Random(seed))
        assert english[0].isupper()
        assert french[0].isupper()
        assert english[-1] == french[-1]
        assert english[-1] in ".?"
        for wrong in ("le é", "la é", "le o", "ce é", "ce o", "ma é", "sa é", "beau o", "beau é", "vieux é"):
            assert f" {wrong}" not in f" {french.lower()}"
