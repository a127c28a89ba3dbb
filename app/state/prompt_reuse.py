"""What of a prompt an earlier run has read already, judged by the text alone. No Qt in here."""

from __future__ import annotations

from typing import NamedTuple

from app.state.run import Run
from core import words


class PromptReuse(NamedTuple):
    """How far a text is known: characters, and the tokens that they were read as."""

    characters: int
    tokens: int


def estimate_reuse(run: Run | None, text: str) -> PromptReuse | None:
    """How far `text` is what the run's prompt was; None where nothing can be told, or nothing has changed.

    Tokens are counted that lie wholly in what is the same; one whose word goes on otherwise is not.
    """
    prompt = run.request.prompt if run is not None else None
    if run is None or not isinstance(prompt, str) or not run.prompt or text == prompt:
        return None
    same = common_prefix_length(prompt, text)
    place = count = characters = 0
    for token in run.prompt:
        piece = "" if words.control_name(token.text, token.special) else token.text
        if not prompt.startswith(piece, place):
            return None  # a tokenizer that changes what it reads
        place += len(piece)
        if place > same or (place == same and _is_inside_word(text, place)):
            break
        count, characters = count + 1, place
    return PromptReuse(characters, count) if characters else None


def common_prefix_length(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    return next((n for n, (one, other) in enumerate(zip(first, second, strict=False)) if one != other),
                min(len(first), len(second)))  # fmt: skip


def _is_inside_word(text: str, index: int) -> bool:
    """Whether a word goes on across that place: its last token may become another one."""
    return 0 < index < len(text) and text[index - 1].isalnum() and text[index].isalnum()
