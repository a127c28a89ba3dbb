"""Accuracy of the listener on held-out sentences of held-out speakers: word errors, exact sentences."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from trial import ComparedTexts, share

from listener import words
from listener.batches import features
from listener.sentences import draw_sentence
from listener.sounds import Wave, placed, spoiled, with_noise
from listener.voices import NEW_ACCENT, draw_speaker, say

ROWS = 32
LONGEST = 40  # tokens


def held_out(number: int, accent: str | None = None, below: float | None = None) -> tuple[str, Wave]:
    """Return a held-out sentence by a held-out speaker, spoiled as in training or with noise `below` dB under it."""
    rng, chances = random.Random(f"held out {number}"), np.random.default_rng((99, number))
    while True:
        text = draw_sentence(rng, held_out=True)
        spoken = say(text, draw_speaker(rng, held_out=True, accent=accent))
        if spoken is not None:
            wave, _ = placed(chances, spoken.sound)
            return text, spoiled(chances, wave) if below is None else with_noise(chances, wave, below)


@torch.no_grad()
def transcribe(model: Any, waves: list[Wave]) -> list[str]:
    """What the model writes, greedily."""
    texts: list[str] = []
    for first in range(0, len(waves), ROWS):
        heard = model.generate(features(waves[first : first + ROWS]), do_sample=False, max_new_tokens=LONGEST)
        texts += [text.strip() for text in words.tokenizer().batch_decode(heard, skip_special_tokens=True)]
    return texts


def different(count: int, accent: str | None = None, below: float | None = None) -> Iterator[tuple[str, Wave]]:
    """Yield `count` different held-out sentences; of rare forms few are held out, which would repeat otherwise."""
    sentences: set[str] = set()
    for number in itertools.count():
        text, wave = held_out(number, accent, below)
        if text not in sentences:
            sentences.add(text)
            yield text, wave
        if len(sentences) == count:
            return


def listen(model: Any, count: int, accent: str | None = None, below: float | None = None) -> ComparedTexts:
    """Try `count` different held-out sentences."""
    return tried(model, different(count, accent, below))


def tried(model: Any, spoken: Iterable[tuple[str, Wave]]) -> ComparedTexts:
    """What the model makes of these sentences."""
    said, waves = zip(*spoken, strict=True)
    return ComparedTexts(list(said), transcribe(model, list(waves)))


def rows(model: Any, count: int = 1000) -> list[tuple[str, str]]:
    """The figures of the card."""
    usual, hard = listen(model, count), listen(model, count // 2, below=6.0)
    strange = listen(model, count // 2, accent=NEW_ACCENT)
    again = tried(model, map(held_out, range(count)))
    return [
        (f"Word errors, {count:,} different held-out sentences by held-out voices", share(usual.errors, usual.words)),
        ("Such sentences without an error", share(usual.exact, count)),
        ("Word errors, drawn as in training: the same few short ones often", share(again.errors, again.words)),
        ("Word errors in noise only 6 dB below the voice", share(hard.errors, hard.words)),
        ("Word errors, an accent never heard (West Midlands)", share(strange.errors, strange.words)),
    ]
