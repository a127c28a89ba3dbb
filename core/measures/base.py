"""Interface of a measure: a number that describes a generated text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.core.events import TokenChosen


class MeasuredText(NamedTuple):
    """A generated text: the input of a measure."""

    text: str
    """The new text, without the prompt."""
    tokens: Sequence[TokenChosen] = ()
    """One event per new token; empty for strategies that have no such events (beam search)."""


@plain(frozen=True)
class Measure:
    """A measure of a text; one file of `core/measures/`, or of a plug-in, defines each."""

    name: str
    title: str
    """Heading of its column: one or two words."""
    help: str
    compute: Callable[[MeasuredText], float | None]
    """(text) → its value; None if it has none."""
    digits: int = 2
    """Number of decimals shown."""
    order: int = 100
    aliases: tuple[str, ...] = ()
