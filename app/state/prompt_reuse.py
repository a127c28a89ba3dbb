"""Part of a prompt that an earlier run has in its cache, estimated from the text alone. No Qt in here."""

from __future__ import annotations

from typing import NamedTuple

from decodescope.app.state.run import Run
from decodescope.core import words


class PromptReuse(NamedTuple):
    """Reusable prefix of a text, in characters and in tokens."""

    characters: int
    tokens: int


def estimate_reuse(run: Run | None, text: str) -> PromptReuse | None:
    """Return how much of `text` equals the start of the run's prompt; None if unknown or unchanged.

    Only tokens that lie completely in the common prefix count, and not the last one if its word continues differently.
    """
    prompt = run.request.prompt if run is not None else None
    if run is None or not isinstance(prompt, str) or not run.prompt or text == prompt:
        return None
    same = common_prefix_length(prompt, text)
    place = count = characters = 0
    for token in run.prompt:
        piece = "" if words.control_name(token.text, token.special) else token.text
        if not prompt.startswith(piece, place):
            return None  # the tokenizer normalises its input
        place += len(piece)
        if place > same or (place == same and _is_inside_word(text, place)):
            break
        count, characters = count + 1, place
    return PromptReuse(characters, count) if characters else None


def common_prefix_length(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts, in characters."""
    return next((n for n, (one, other) in enumerate(zip(first, second, strict=False)) if one != other),
                min(len(first), len(second)))  # fmt: skip


def _is_inside_word(text: str, index: int) -> bool:
    """Return whether a word continues across this position, so that its last token may change."""
    return 0 < index < len(text) and text[index - 1].isalnum() and text[index].isalnum()
