"""Drawn scenes as batches: pixels and the tokens of their captions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from batches import START, Place, padded
from torch import Tensor

from describer import words
from describer.drawing import draw, pixels, shown
from describer.scenes import draw_scene


@dataclass(frozen=True)
class Seen:
    """``pixels`` (rows, 3, side, side), ``ids`` (rows, tokens; 0 as padding), what patches show; the place after."""

    pixels: Tensor
    ids: Tensor
    shown: Tensor
    after: Place


def labels(captions: Sequence[str]) -> Tensor:
    """Begin mark, words and end mark of each caption (rows, tokens), padded with 0."""
    return padded([words.tokenizer()(caption).input_ids for caption in captions], words.PAD, torch.long)


def seen_batches(seed: int, rows: int, start: Place = START) -> Iterator[Seen]:
    """Endless batches, no scene drawn twice, from a place in their stream on: (0, number of the batch)."""
    number = start[1]
    while True:
        captions, pictures, marks = [], [], []
        for index in range(number * rows, (number + 1) * rows):
            rng = random.Random(f"{seed} drawn {index}")
            scene = draw_scene(rng, held_out=False)
            captions.append(scene.caption)
            pictures.append(pixels(draw(rng, scene)))
            marks.append(shown(scene))
        number += 1
        seen, named = torch.from_numpy(np.stack(pictures)), torch.from_numpy(np.stack(marks))
        yield Seen(seen, labels(captions), named, (0, number))
