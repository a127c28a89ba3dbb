"""Spoken texts: numbers, digits, times, sums and commands, in lower-case words without marks."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from corpus import is_held_out
from lexicon import table

UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth last next".split()
SUMS = ("plus", "minus", "times")
SLOT = re.compile(r"{(\w+)}")


def below_hundred(number: int) -> str:
    """The words of 0 to 99."""
    if number < 20:
        return UNITS[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] + (f" {UNITS[ones]}" if ones else "")


def below_thousand(number: int, linked: bool) -> str:
    """The words of 0 to 999; ``linked`` says "and" after the hundreds."""
    hundreds, rest = divmod(number, 100)
    if not hundreds:
        return below_hundred(rest)
    link = " and " if linked else " "
    return f"{UNITS[hundreds]} hundred" + (f"{link}{below_hundred(rest)}" if rest else "")


def in_words(number: int, linked: bool) -> str:
    """The words of 0 to 999,999."""
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return below_thousand(rest, linked)
    link = " and " if linked and 0 < rest < 100 else " "
    return f"{below_thousand(thousands, linked)} thousand" + (f"{link}{below_thousand(rest, linked)}" if rest else "")


def number(rng: random.Random) -> str:
    """A number; short ones as often as long ones."""
    return in_words(rng.randrange(10 ** rng.choice((1, 2, 2, 3, 3, 4, 5, 6))), rng.random() < 0.5)


def digits(rng: random.Random) -> str:
    """Three to seven digits, one by one."""
    return " ".join(rng.choice(UNITS[:10]) for _ in range(rng.randint(3, 7)))


def time_of_day(rng: random.Random) -> str:
    """A time of day."""
    hour, minutes = below_hundred(rng.randint(1, 12)), rng.choice((5, 10, 20, 25))
    return rng.choice(
        (
            f"{hour} o'clock",
            f"half past {hour}",
            f"a quarter {rng.choice(('to', 'past'))} {hour}",
            f"{below_hundred(minutes)} {rng.choice(('to', 'past'))} {hour}",
            f"{hour} {below_hundred(rng.randint(10, 59))}",
            rng.choice(("noon", "midnight", f"{hour} in the {rng.choice(('morning', 'evening', 'afternoon'))}")),
        )
    )


def sum_of_two(rng: random.Random) -> str:
    """A small sum, as a question or a statement."""
    spoken = f"{below_hundred(rng.randrange(100))} {rng.choice(SUMS)} {below_hundred(rng.randrange(100))}"
    return f"what is {spoken}" if rng.random() < 0.5 else spoken


SLOTS: dict[str, Callable[[random.Random], str]] = {
    "time": time_of_day,
    "small": lambda rng: below_hundred(rng.randint(2, rng.choice((12, 12, 60)))),
    "percent": lambda rng: in_words(rng.choice((5 * rng.randint(1, 20), rng.randint(1, 99))), False),
    "degrees": lambda rng: below_hundred(rng.randint(15, 25)),
    "ordinal": lambda rng: rng.choice(ORDINALS),
}


def command(rng: random.Random) -> str:
    """A pattern of ``data/commands.json`` with its slots filled."""
    words = table("commands")

    def fill(slot: re.Match[str]) -> str:
        name = slot[1]
        return SLOTS[name](rng) if name in SLOTS else rng.choice(words["slots"][name])

    return SLOT.sub(fill, rng.choice(words["commands"]))


MIX = ((number, 24), (digits, 8), (time_of_day, 8), (sum_of_two, 10), (command, 50))


def draw_sentence(rng: random.Random, held_out: bool) -> str:
    """A sentence of the wanted split: its checksum decides."""
    sorts, weights = zip(*MIX, strict=True)
    while True:
        text: str = rng.choices(sorts, weights)[0](rng)
        if is_held_out(text) == held_out:
            return text
