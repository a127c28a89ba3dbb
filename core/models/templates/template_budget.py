"""What a template has used up: every operation pays for the most it can make, before it makes it."""

from __future__ import annotations

import re
import time
from collections.abc import ItemsView, Iterable, KeysView, Sequence, ValuesView

from jinja2.exceptions import TemplateError

from resources.language import tr

_SECONDS = 5.0
"""Of processor time."""
_ITEM, _PRODUCT = 8, 2**12
"""Units of looking at one item of a container; bits of two factors that cost one unit together."""
_CHECK, _STEP = 20_000, 100
"""The clock is read after so many units; each payment counts as some, however small it is."""
_DIGITS = re.compile(r"\d+")
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


class TemplateLimitError(TemplateError):
    """A template asked for more time or text than any chat needs."""


class TemplateBudget:
    """Units are characters, and steps of a program; what is left can only fall."""

    def __init__(self, units: int) -> None:
        self._left = units
        self._unchecked = 0
        self._deadline = time.thread_time() + _SECONDS

    def charge(self, units: int) -> None:
        """Pay. Raises TemplateLimitError when that is more than is left, or when this thread has used up its processor
        time: the time of other threads and programs does not count."""
        self._left -= units
        if self._left < 0:
            raise TemplateLimitError(tr("it makes more text, or takes more steps, than any chat needs"))
        self._unchecked += _STEP + units
        if self._unchecked < _CHECK:
            return
        self._unchecked = 0
        if time.thread_time() > self._deadline:
            raise TemplateLimitError(tr("it takes longer than {seconds:g} seconds").format(seconds=_SECONDS))

    def charge_copy(self, value: object) -> None:
        """Pay for a copy of a sequence: its items are not copied."""
        if isinstance(value, (list, tuple)):
            self.charge(1 + len(value))
        else:
            self.charge_read(value)

    def charge_read(self, *values: object) -> int:
        """Pay for reading values whole, and say what that cost. Things inside count as often as they are reached: a
        list that holds itself twice, and that twice again, is as heavy as it would be long if it were printed."""
        total, waiting = 0, list(values)
        count = len(waiting)
        while waiting:
            value = waiting.pop()
            total += _own_size(value) + (_ITEM if count <= 0 else 0)
            count -= 1
            if total > self._left:
                self.charge(total)
            if isinstance(value, dict):
                waiting.extend(value.keys())
                waiting.extend(value.values())
            elif isinstance(value, _CONTAINERS):
                waiting.extend(value)
        self.charge(total)
        return total

    def charge_repeated(self, value: object, others: Iterable[object]) -> None:
        """Pay for an operation that may repeat what it is given once for each part of `value`, or as often as a number
        says: padding, formatting, joining."""
        others = list(others)
        amount = sum(abs(int(number)) for number in _numbers(others)) + _widths((value, *others))
        self.charge(self.charge_read(value) * (1 + self.charge_read(*others) + amount))

    def charge_replace(self, text: str, old: object, new: object) -> None:
        """Pay for a text in which one text is replaced by another, wherever it stands."""
        self.charge(1 + len(text))
        if isinstance(old, str) and isinstance(new, str):
            self.charge(text.count(old) * len(new))

    def charge_operator(self, operator: str, left: object, right: object) -> None:
        """Pay for `left operator right`."""
        if operator == "*" and isinstance(left, Sequence) != isinstance(right, Sequence):
            text, times = (left, right) if isinstance(left, Sequence) else (right, left)
            self.charge(self.charge_read(text) * max(1, int(times) if isinstance(times, int) else 1))
        elif operator == "*" and isinstance(left, int) and isinstance(right, int):
            self.charge(1 + left.bit_length() * right.bit_length() // _PRODUCT)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            self.charge(left.bit_length() * max(1, right))
        elif operator == "%" and isinstance(left, str):
            self.charge_repeated(left, right if isinstance(right, tuple) else (right,))
        elif operator == "+" and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            self.charge_copy(left)
            self.charge_copy(right)
        else:
            self.charge_read(left, right)


def _own_size(value: object) -> int:
    if isinstance(value, (str, bytes, range)):
        return 1 + len(value)
    return 1 + (value.bit_length() // 8 if isinstance(value, int) else 0)


def _numbers(values: Iterable[object]) -> list[int | float]:
    return [value for value in values if isinstance(value, (int, float)) and abs(value) < float("inf")]


def _widths(values: Iterable[object]) -> int:
    """Numbers that stand in format strings (`%1000d`, `{:>1000}`), where they mean widths."""
    formats = [value for value in values if isinstance(value, str) and ("%" in value or "{" in value)]
    return sum(int(digits[:12]) for text in formats for digits in _DIGITS.findall(text))
