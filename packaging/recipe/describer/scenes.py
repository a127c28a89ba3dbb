"""What is drawn, and the one caption that is right for it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from corpus import is_held_out

SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "diamond")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "white", "black")
GROUNDS = ("white", "grey", "black", "yellow", "blue")
SIZES = ("small", "large")
PLACES = {
    (0, 0): "at the top left",
    (1, 0): "at the top",
    (2, 0): "at the top right",
    (0, 1): "on the left",
    (1, 1): "in the middle",
    (2, 1): "on the right",
    (0, 2): "at the bottom left",
    (1, 2): "at the bottom",
    (2, 2): "at the bottom right",
}
NEW_PAIRS = {("purple", "star"), ("green", "ring"), ("orange", "cross"), ("white", "triangle")}  # never trained on
LEGEND = (("nothing", *SHAPES), ("nothing", *COLOURS), ("nothing", *SIZES))  # what a patch of a picture can show

Point = tuple[float, float]  # right and down, as shares of the picture


@dataclass(frozen=True)
class Thing:
    """One shape of a scene."""

    size: str
    colour: str
    shape: str
    at: Point

    @property
    def words(self) -> str:
        return f"a {self.size} {self.colour} {self.shape}"

    @property
    def is_new(self) -> bool:
        """Return whether no training scene has this shape in this colour."""
        return (self.colour, self.shape) in NEW_PAIRS


@dataclass(frozen=True)
class Scene:
    """Shapes on a ground, and their caption."""

    things: tuple[Thing, ...]
    ground: str
    caption: str


def thing(rng: random.Random, ground: str, at: Point) -> Thing:
    """Any shape that can be seen on its ground, near a point."""
    colour = rng.choice([colour for colour in COLOURS if colour != ground])
    near = (at[0] + rng.uniform(-0.05, 0.05), at[1] + rng.uniform(-0.05, 0.05))
    return Thing(rng.choice(SIZES), colour, rng.choice(SHAPES), near)


def one(rng: random.Random, ground: str) -> tuple[list[Thing], str]:
    """A shape in one of nine places."""
    cell = rng.choice(list(PLACES))
    alone = thing(rng, ground, (0.2 + 0.3 * cell[0], 0.2 + 0.3 * cell[1]))
    return [alone], f"{alone.words} {PLACES[cell]}"


def two(rng: random.Random, ground: str) -> tuple[list[Thing], str]:
    """Two shapes beside or above one another, anywhere in the picture."""
    apart, along = rng.uniform(0.36, 0.5), rng.uniform(0.25, 0.75)
    near = rng.uniform(0.22, 0.78 - apart)
    first, second = (near, along), (near + apart, along)
    if rng.random() < 0.5:
        things = [thing(rng, ground, first), thing(rng, ground, second)]
        return things, f"{things[0].words} to the left of {things[1].words}"
    things = [thing(rng, ground, first[::-1]), thing(rng, ground, second[::-1])]
    return things, f"{things[0].words} above {things[1].words}"


def three(rng: random.Random, ground: str) -> tuple[list[Thing], str]:
    """Two shapes side by side, and one above or below them."""
    middle, left = rng.uniform(0.35, 0.65), rng.uniform(0.22, 0.3)
    high, low = rng.uniform(0.22, 0.3), rng.uniform(0.7, 0.78)
    single_above = rng.random() < 0.5
    row, other = (low, high) if single_above else (high, low)
    pair = [thing(rng, ground, (left, row)), thing(rng, ground, (1 - left, row))]
    single = thing(rng, ground, (middle, other))
    both = f"{pair[0].words} and {pair[1].words}"
    if single_above:
        return [single, *pair], f"{single.words} above {both}"
    return [*pair, single], f"{both} above {single.words}"


KINDS = ((one, 30), (two, 40), (three, 30))


def any_scene(rng: random.Random) -> Scene:
    """A scene of one, two or three shapes."""
    kinds, weights = zip(*KINDS, strict=True)
    ground = rng.choice(GROUNDS)
    things, words = rng.choices(kinds, weights)[0](rng, ground)
    return Scene(tuple(things), ground, f"{words} on a {ground} ground")


def draw_scene(rng: random.Random, held_out: bool, new_pairs: bool = False) -> Scene:
    """A scene of the wanted split: the checksum of its caption decides.

    ``new_pairs``: scenes that have a shape in a colour in which training never saw it; others have none.
    """
    while True:
        scene = any_scene(rng)
        if any(thing.is_new for thing in scene.things) == new_pairs and is_held_out(scene.caption) == held_out:
            return scene


def vocabulary() -> list[str]:
    """Every word of the captions, in a fixed order."""
    little = "a on at in the of to and above left right top bottom middle ground grey".split()
    return list(dict.fromkeys((*little, *SIZES, *COLOURS, *SHAPES)))
