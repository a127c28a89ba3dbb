"""How many held-out scenes the describer puts into exactly the right words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from describer import words
from describer.drawing import draw, pixels
from describer.scenes import Scene, draw_scene

ROWS = 50
LONGEST = 32  # tokens


@dataclass(frozen=True)
class Trial:
    """Scenes and what was said of them."""

    scenes: list[Scene]
    told: list[str]

    @property
    def exact(self) -> int:
        return len(self.scenes) - len(self.wrong)

    @property
    def wrong(self) -> list[tuple[str, str]]:
        """The right caption and the given one, where they differ."""
        pairs = [(scene.caption, told) for scene, told in zip(self.scenes, self.told, strict=True)]
        return [(right, told) for right, told in pairs if right != told]


def held_out(number: int, new_pairs: bool = False) -> tuple[Scene, Tensor]:
    """A held-out scene and its pixels."""
    rng = random.Random(f"held out {number} {new_pairs}")
    scene = draw_scene(rng, held_out=True, new_pairs=new_pairs)
    return scene, torch.from_numpy(pixels(draw(rng, scene)))


@torch.no_grad()
def captions(model: Any, pictures: Sequence[Tensor]) -> list[str]:
    """What the model says of each, greedily."""
    told: list[str] = []
    for first in range(0, len(pictures), ROWS):
        seen = torch.stack(list(pictures[first : first + ROWS]))
        begin = torch.full((len(seen), 1), words.BEGIN)
        out = model.generate(input_ids=begin, pixel_values=seen, do_sample=False, max_new_tokens=LONGEST)
        told += words.tokenizer().batch_decode(out, skip_special_tokens=True)
    return told


def look(model: Any, count: int, new_pairs: bool = False) -> Trial:
    """A trial of so many held-out scenes."""
    scenes, pictures = zip(*(held_out(number, new_pairs) for number in range(count)), strict=True)
    return Trial(list(scenes), captions(model, pictures))


def rows(model: Any, count: int = 1000) -> list[tuple[str, str]]:
    """The figures of the card, by how many shapes a scene has, and with a pair of shape and colour never seen."""
    usual, new = look(model, count), look(model, count // 2, new_pairs=True)
    right = {id(scene) for scene, told in zip(usual.scenes, usual.told, strict=True) if scene.caption == told}
    found = [("Captions of held-out scenes exact", _share(usual.exact, count))]
    for shapes, name in ((1, "of one shape"), (2, "of two shapes"), (3, "of three shapes")):
        such = [scene for scene in usual.scenes if len(scene.things) == shapes]
        found.append((f"… {name}", _share(sum(id(scene) in right for scene in such), len(such))))
    return [*found, ("… with a shape in a colour in which it was never drawn", _share(new.exact, count // 2))]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole:,} ({100 * part / whole:.1f} %)"
