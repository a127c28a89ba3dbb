"""The phone and the word at each position of the encoder, from the events of espeak-ng."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
from numpy.typing import NDArray

from listener.sentences import draw_sentence
from listener.sounds import SECONDS
from listener.voices import RATE, Spoken

POSITION = 800  # samples of a position of the encoder: 50 ms
POSITIONS = SECONDS * RATE // POSITION
PHONES = (
    "0 3 3: ; @ @2 @5 @L A: A@ D E I I# I2 IR N O2 O: O@ S T U V VR Z a a# aI aI2 aI@ aU aa b d dZ e@ eI f g h i i: "
    "i@ j k l m n o@ oU p r r- s t t# t2 tS t[ u: v w w# z"
).split()
SENTENCES = 6000


@cache
def legend() -> tuple[dict[str, int], dict[str, int]]:
    """Numbers of the phones and of the words of the grammar, from 1; 0 is silence and what is in neither."""
    rng = random.Random("legend")
    words = sorted({word for _ in range(SENTENCES) for word in draw_sentence(rng, held_out=False).split()})
    return numbered(PHONES), numbered(words)


def numbered(names: list[str]) -> dict[str, int]:
    """Names with their numbers, from 1."""
    return {name: number for number, name in enumerate(names, 1)}


def word_at(text: str, letter: int) -> str:
    """The word to which a letter belongs; none behind the end."""
    return text[text.rfind(" ", 0, letter + 1) + 1 :].split(" ", 1)[0] if letter < len(text) else ""


def aligned(text: str, spoken: Spoken, start: int) -> NDArray[np.int64]:
    """Phone and word at the middle of each position (positions, 2), where the sound starts at this sample."""
    phones, words = legend()
    heard = [(0, 0)] + [
        (phones.get(moment.phone, 0), words.get(word_at(text, moment.letter), 0)) for moment in spoken.moments
    ]
    begins = np.array([start + moment.sample for moment in spoken.moments])
    middles = (np.arange(POSITIONS) + 0.5) * POSITION
    found = np.array(heard)[np.searchsorted(begins, middles, side="right")]
    found[middles >= start + len(spoken.sound)] = 0
    return found
