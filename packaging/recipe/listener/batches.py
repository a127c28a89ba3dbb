"""Spoken sentences as batches: spectrograms and the tokens that were said."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from batches import START, Place, padded
from torch import Tensor

from listener import words
from listener.aligned import aligned
from listener.sentences import draw_sentence
from listener.sounds import Wave, placed, spoiled
from listener.voices import RATE, Spoken, draw_speaker, say

UTTERANCES = 16_000  # spoken for the first time; after them the same ones again, elsewhere and in other noise
PADDING = -100


@dataclass(frozen=True)
class Heard:
    """``features`` (rows, bands, frames), ``ids`` (rows, tokens; padding −100), what is heard when; the place after.

    ``aligned`` (rows, positions, 2) numbers the phone and the word at each position of the encoder.
    """

    features: Tensor
    ids: Tensor
    aligned: Tensor
    after: Place


@lru_cache(maxsize=UTTERANCES)
def utterance(seed: int, number: int) -> tuple[str, Spoken]:
    """A training sentence and how a training speaker says it."""
    rng = random.Random(f"{seed} said {number}")
    while True:
        text = draw_sentence(rng, held_out=False)
        spoken = say(text, draw_speaker(rng, held_out=False))
        if spoken is not None:
            return text, spoken


def features(waves: list[Wave]) -> Tensor:
    """Log-mel spectrograms (rows, bands, frames)."""
    spectra: Tensor = words.extractor()(np.stack(waves), sampling_rate=RATE, return_tensors="pt").input_features
    return spectra


def labels(texts: list[str]) -> Tensor:
    """Start marks, tokens and end mark of each text (rows, tokens), padded with −100."""
    rows = [words.tokenizer()(f" {text}").input_ids for text in texts]
    return padded(rows, PADDING, torch.long)


def heard_batches(seed: int, rows: int, start: Place = START) -> Iterator[Heard]:
    """Endless batches, from a place in their stream on: (0, number of the batch)."""
    number = start[1]
    while True:
        said, waves, heard = [], [], []
        for index in range(number * rows, (number + 1) * rows):
            text, spoken = utterance(seed, index % UTTERANCES)
            rng = np.random.default_rng((seed, index))
            wave, begin = placed(rng, spoken.sound)
            said.append(text)
            waves.append(spoiled(rng, wave))
            heard.append(aligned(text, spoken, begin))
        number += 1
        yield Heard(features(waves), labels(said), torch.from_numpy(np.stack(heard)), (0, number))
