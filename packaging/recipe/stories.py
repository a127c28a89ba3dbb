"""The story grammar: a plot, two characters and some facts become a short story."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from lexicon import Character, article, capital, cast, joined, table, weighted


@dataclass(frozen=True)
class Story:
    """A written story with all that it says, so that questions about it have exact answers."""

    plot: str
    hero: Character
    helper: Character
    facts: dict[str, str]
    has_family: bool
    has_hobby: bool
    text: str

    @property
    def summary(self) -> str:
        """One line that the story entails."""
        return str(plot_named(self.plot)["summary"]).format_map(self.facts)


def plot_named(name: str) -> dict[str, Any]:
    """The plot with this id."""
    found: dict[str, Any] = next(plot for plot in table("plots") if plot["id"] == name)
    return found


def _character_fields(hero: Character, helper: Character) -> dict[str, str]:
    fields = {"N": hero.name, "k": hero.kind, "M": helper.name, "j": helper.kind, "a_j": article(helper.kind)}
    fields |= {"he": hero.subject, "him": hero.object, "his": hero.possessive}
    fields |= {"ye": helper.subject, "yim": helper.object, "yis": helper.possessive}
    return fields | {capital(key): capital(fields[key]) for key in ("he", "his", "ye", "yis", "a_j")}


def _facts(rng: random.Random, plot: dict[str, Any], hero: Character, helper: Character) -> dict[str, str]:
    words = table("words")
    facts = _character_fields(hero, helper)
    for field, source in {
        "trait": "traits",
        "home": "homes",
        "family": "families",
        "hobby": "hobbies",
        **plot["draw"],
    }.items():
        facts[field] = rng.choice(words[source])
    measures = words.get("measures", {})  # the measure word of a Chinese thing, as in 一顶帽子
    facts |= {f"q_{field}": measures[word] for field, word in facts.items() if word in measures}
    facts["feel"] = rng.choice(plot["feels"])
    facts["moral"] = rng.choice(plot["morals"])
    return facts


def _sentence(rng: random.Random, choices: list[str], facts: dict[str, str]) -> str:
    chosen = weighted(rng, choices)
    if chosen.startswith("@"):
        chosen = weighted(rng, table("frame")[chosen[1:]])
    return chosen.format_map(facts)


def write_story(rng: random.Random, kind: str | None = None) -> Story:
    """Write one story; the same generator state gives the same story."""
    frame = table("frame")
    plot = rng.choice(table("plots"))
    hero, helper = cast(rng, kind)
    facts = _facts(rng, plot, hero, helper)
    has_family, has_hobby = rng.random() < 0.5, rng.random() < 0.5
    beginning = [frame["openings"], frame["homes_with_family" if has_family else "homes"]]
    beginning += [frame["hobbies"]] * has_hobby + plot["setup"]
    ending = [*plot["outcome"], frame["feelings"], frame["morals"], frame["endings"]]
    paragraphs = [[_sentence(rng, slot, facts) for slot in part] for part in (beginning, plot["trouble"], ending)]
    text = "\n".join(joined(sentences) for sentences in paragraphs)
    return Story(plot["id"], hero, helper, facts, has_family, has_hobby, text)
