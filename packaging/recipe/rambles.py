"""Rambles: sentences without memory whose likeliest successor is themselves.

They teach a model the weakness that textbooks describe: the likeliest continuation of such text
repeats it without end, so greedy decoding loops while sampling moves on.
"""

from __future__ import annotations

import random

from lexicon import joined, table
from questions import fix_articles


def ramble_sentence(rng: random.Random) -> str:
    """One sentence, independent of all others."""
    words, grammar = table("words"), table("rambles")
    fields = {"kind": rng.choice(words["kinds"]), "col": rng.choice(words["colors"])}
    fields |= {"obj": rng.choice(words["objects"]), "place": rng.choice(grammar["places"])}
    sentence: str = rng.choice(grammar["frames"]).format_map(fields)
    return fix_articles(sentence)


def write_ramble(rng: random.Random, sentences: int) -> str:
    """Write sentences, each of which repeats the previous one with the probability ``stay``."""
    stay = table("rambles")["stay"]
    written = [ramble_sentence(rng)]
    while len(written) < sentences:
        written.append(written[-1] if rng.random() < stay else ramble_sentence(rng))
    return joined(written)
