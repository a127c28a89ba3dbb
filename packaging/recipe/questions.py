"""Questions about a story, with the one exact answer each."""

from __future__ import annotations

import random

from lexicon import table
from stories import Story, plot_named

Pair = tuple[str, str]


def absent_fields(rng: random.Random, story: Story) -> dict[str, str]:
    """A kind, a name and a thing that the story does not mention."""
    words = table("words")
    kinds = [kind for kind in words["kinds"] if kind not in (story.hero.kind, story.helper.kind)]
    names = [name for name in words["girls"] + words["boys"] if name not in (story.hero.name, story.helper.name)]
    things = [thing for thing in words["objects"] if thing not in story.text]
    return {"k2": rng.choice(kinds), "X": rng.choice(names), "obj2": rng.choice(things)}


def fix_articles(text: str) -> str:
    for kind in table("words")["kinds"]:
        if kind[0] in "aeiou":
            text = text.replace(f" a {kind}", f" an {kind}")
    return text


def answerable(story: Story, absent: dict[str, str]) -> list[Pair]:
    """Every question that the story answers, with its answer."""
    bank, plot = table("questions"), plot_named(story.plot)
    pairs = [*bank["always"], *plot["questions"], *plot["questions"]]
    pairs += bank["helped_by_helper"] * (plot["helper"] == "M") + bank["helped_by_hero"] * (plot["helper"] == "N")
    pairs += [bank["family"]] * (2 * story.has_family) + [bank["hobby"]] * (2 * story.has_hobby)
    fields = story.facts | absent
    return [(fix_articles(ask.format_map(fields)), fix_articles(reply.format_map(fields))) for ask, reply in pairs]


def unanswerable(story: Story, absent: dict[str, str]) -> list[Pair]:
    """Questions on which the story is silent."""
    bank = table("questions")
    asks = list(bank["unknown"])
    asks += [bank["family"][0]] * (2 * (not story.has_family)) + [bank["hobby"][0]] * (2 * (not story.has_hobby))
    fields = story.facts | absent
    return [(ask.format_map(fields), bank["unknown_answer"]) for ask in asks]


def ask_about(rng: random.Random, story: Story, count: int) -> list[Pair]:
    """``count`` different questions, about one in five of them without an answer."""
    absent = absent_fields(rng, story)
    known, unknown = answerable(story, absent), unanswerable(story, absent)
    chosen: dict[str, str] = {}
    while len(chosen) < count:
        ask, reply = rng.choice(unknown if rng.random() < 0.2 else known)
        chosen[ask] = reply
    return list(chosen.items())
