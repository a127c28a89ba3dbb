"""How many held-out scenes the describer puts into exactly the right words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from trial import ComparedTexts, share

from describer import words
from describer.drawing import draw, pixels
from describer.scenes import Scene, draw_scene

ROWS = 50
LONGEST = 32  # tokens


def held_out(number: int, new_pairs: bool = False) -> tuple[Scene, Tensor]:
    """A held-out scene and its pixels."""
    rng = random.Random(f"held out {number} {new_pairs}")
    scene = draw_scene(rng, held_out=True, new_pairs=new_pairs)
    return scene, torch.from_numpy(pixels(draw(rng, scene)))


@torch.no_grad()
def captions(model: Any, pictures: Sequence[Tensor]) -> list[str]:
    """What the model says of each, greedily."""
    captions: list[str] = []
    for first in range(0, len(pictures), ROWS):
        seen = torch.stack(list(pictures[first : first + ROWS]))
        begin = torch.full((len(seen), 1), words.BEGIN)
        out = model.generate(input_ids=begin, pixel_values=seen, do_sample=False, max_new_tokens=LONGEST)
        captions += words.tokenizer().batch_decode(out, skip_special_tokens=True)
    return captions


def look(model: Any, count: int, new_pairs: bool = False) -> ComparedTexts:
    """Try `count` held-out scenes."""
    return tried(model, [held_out(number, new_pairs) for number in range(count)])


def tried(model: Any, drawn: Sequence[tuple[Scene, Tensor]]) -> ComparedTexts:
    """What the model says of these scenes."""
    return ComparedTexts([scene.caption for scene, _ in drawn], captions(model, [picture for _, picture in drawn]))


def rows(model: Any, count: int = 1000) -> list[tuple[str, str]]:
    """The figures of the card, by how many shapes a scene has, and with a pair of shape and colour never seen."""
    drawn = [held_out(number) for number in range(count)]
    usual, new = tried(model, drawn), look(model, count // 2, new_pairs=True)
    found = [("Captions of held-out scenes exact", share(usual.exact, count))]
    for shapes, name in ((1, "of one shape"), (2, "of two shapes"), (3, "of three shapes")):
        such = usual.only(len(scene.things) == shapes for scene, _ in drawn)
        found.append((f"… {name}", share(such.exact, len(such.right))))
    return [*found, ("… with a shape in a colour in which it was never drawn", share(new.exact, count // 2))]
