"""Drawing scenes with Pillow: 96 × 96, edges smoothed, no two drawings of a scene alike."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from describer.scenes import LEGEND, Point, Scene, Thing

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

SIDE = 96  # pixels
PATCH = 12  # pixels, of which the describer makes one position
FINER = 3  # drawn larger by this factor, then reduced: smooth edges
RADII = {"small": (7.0, 8.5), "large": (12.5, 14.5)}  # pixels
Colour = tuple[int, int, int]
PAINT: dict[str, Colour] = {
    "red": (215, 40, 40),
    "orange": (245, 145, 30),
    "yellow": (245, 220, 60),
    "green": (45, 155, 70),
    "blue": (50, 95, 205),
    "purple": (135, 60, 165),
    "white": (245, 245, 245),
    "grey": (140, 140, 140),
    "black": (25, 25, 25),
}
TILT = {"square": 0, "triangle": -90, "star": -90, "cross": 0, "diamond": 45}  # degrees


def mixed(rng: random.Random, paint: Colour, spread: int = 14) -> Colour:
    """A colour, a little different each time."""
    red, green, blue = (max(0, min(255, part + rng.randint(-spread, spread))) for part in paint)
    return red, green, blue


def corners(count: int, turn: float, radii: tuple[float, ...]) -> list[Point]:
    """Corners around a centre, at radii in turn; ``turn`` in degrees."""
    angles = [math.radians(turn) + 2 * math.pi * corner / count for corner in range(count)]
    return [
        (radii[place % len(radii)] * math.cos(angle), radii[place % len(radii)] * math.sin(angle))
        for place, angle in enumerate(angles)
    ]


def outline(shape: str, turn: float) -> list[Point]:
    """The corners of a shape of about radius one, for every shape that has corners."""
    turn += TILT[shape]
    if shape == "triangle":
        return corners(3, turn, (1.15,))
    if shape == "star":
        return corners(10, turn, (1.2, 0.5))
    if shape == "cross":
        arm = 0.36
        around = [(1, arm), (arm, arm), (arm, 1), (-arm, 1), (-arm, arm), (-1, arm)]
        around += [(-x, -y) for x, y in around]
        return [rotated(point, turn) for point in around]
    return corners(4, turn + 45, (1.2,))


def rotated(point: Point, degrees: float) -> Point:
    """A point turned about the origin."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return point[0] * cos - point[1] * sin, point[0] * sin + point[1] * cos


def fill(brush: ImageDraw, rng: random.Random, thing: Thing, paint: Colour, ground: Colour) -> None:
    """One shape; a ring's hole shows the ground."""
    radius = FINER * rng.uniform(*RADII[thing.size])
    x, y = (FINER * SIDE * share for share in thing.at)
    if thing.shape in ("circle", "ring"):
        brush.ellipse((x - radius, y - radius, x + radius, y + radius), paint)
        if thing.shape == "ring":
            hole = 0.55 * radius
            brush.ellipse((x - hole, y - hole, x + hole, y + hole), ground)
        return
    points = outline(thing.shape, rng.uniform(-10, 10))
    brush.polygon([(x + radius * right, y + radius * down) for right, down in points], paint)


def draw(rng: random.Random, scene: Scene, paints: Mapping[str, Colour] = PAINT) -> Image:
    """The picture of a scene; the generator chooses shades, tilts and exact sizes."""
    from PIL import Image, ImageDraw

    ground = mixed(rng, paints[scene.ground])
    picture = Image.new("RGB", (FINER * SIDE, FINER * SIDE), ground)
    brush = ImageDraw.Draw(picture)
    for thing in scene.things:
        fill(brush, rng, thing, mixed(rng, paints[thing.colour]), ground)
    return picture.resize((SIDE, SIDE), Image.Resampling.BOX)


def pixels(picture: Image) -> NDArray[np.float32]:
    """Values from -1 to 1, (channels, rows, columns), as the image processor makes them."""
    return (np.asarray(picture, np.float32) / 127.5 - 1.0).transpose(2, 0, 1)


def shown(scene: Scene) -> NDArray[np.int64]:
    """Shape, colour and size of what each patch shows, by number in their legends (patches, 3); 0 is nothing."""
    count = SIDE // PATCH
    marks = np.zeros((count, count, len(LEGEND)), np.int64)
    middles = (np.arange(count) + 0.5) * PATCH
    for thing in scene.things:
        x, y = (SIDE * share for share in thing.at)
        near = np.hypot(middles[None, :] - x, middles[:, None] - y) < sum(RADII[thing.size]) / 2 + 1
        is_thing = (thing.shape, thing.colour, thing.size)
        marks[near] = [names.index(name) for names, name in zip(LEGEND, is_thing, strict=True)]
    return marks.reshape(-1, len(LEGEND))
