"""Valid events with a few numbers, lengths and references changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from decodescope.core.events import Event

INTS: list[Any] = [0, 1, -1, 2, 7, 25, 26, 255, 1000, 2**16, 2**24, 2**31, 2**53, 2**62, 2**64 - 1, -(2**63), 10**30]
FLOATS: list[Any] = [0.0, -0.0, 1.0, 1.0005, -1.0, 0.5, 1e-300, 1e300, 1e-9, 1e9, 5e-324, float("inf"), -float("inf"),
                     float("nan"), 3]  # fmt: skip
TEXTS: list[Any] = ["", " ", "\n", "<b>x</b>", "\x1b[2J", "\u202e", "=1+1", "\ud800", "x" * 5000, "日本語", "{0}", "%s"]


def mutated(events: Sequence[Event], dice: random.Random) -> list[Event]:
    """The same events but for one to three changes, most of them to one value."""
    found = list(events)
    for _ in range(dice.randint(1, 3)):
        place = dice.randrange(len(found))
        how = dice.random()
        if how < 0.06:
            del found[place]
        elif how < 0.1:
            found.insert(place, dice.choice(found))
        elif how < 0.13:
            other = dice.randrange(len(found))
            found[place], found[other] = found[other], found[place]
        else:
            found[place] = _changed(found[place], dice)
        if not found:
            return list(events)
    return found


def _changed(value: Any, dice: random.Random) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        name = dice.choice(names) if names else ""
        return replace(value, **{name: _changed(getattr(value, name), dice)}) if name else value
    if isinstance(value, tuple):
        return _changed_tuple(value, dice)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return dice.choice([*INTS, value + 1, value - 1])
    if isinstance(value, float):
        return dice.choice([*FLOATS, -value, value * 2])
    if isinstance(value, str):
        return dice.choice(TEXTS)
    if value is None:
        return dice.choice([None, *INTS[:6], 0.5, "x"])
    return value


def _changed_tuple(value: tuple[Any, ...], dice: random.Random) -> tuple[Any, ...]:
    how = dice.random()
    if not value or how < 0.1:
        return ()
    place = dice.randrange(len(value))
    if how < 0.2:
        return value[:place]
    if how < 0.3:
        return (*value, *[value[place]] * dice.choice([1, 2, 30]))
    if how < 0.35:
        return value[::-1]
    return (*value[:place], _changed(value[place], dice), *value[place + 1 :])
