"""A chat written as plain text: a line beginning with a role's name opens a turn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

ROLES = ("system", "user", "assistant")
_TURN = re.compile(rf"^({'|'.join(ROLES)}):[ \t]*", re.IGNORECASE)


def parse(text: str) -> tuple[dict[str, str], ...]:
    """The turns of `text`; what stands before the first role's name is the user's. Empty turns are left out."""
    turns: list[tuple[str, list[str]]] = [("user", [])]
    for line in text.splitlines():
        opening = _TURN.match(line)
        if opening:
            turns.append((opening[1].lower(), [line[opening.end() :]]))
        else:
            turns[-1][1].append(line)
    spoken = ((role, "\n".join(lines).strip()) for role, lines in turns)
    return tuple({"role": role, "content": content} for role, content in spoken if content)


def format_turns(messages: Sequence[Mapping[str, str]]) -> str:
    """The text that `parse` reads back as `messages`."""
    return "\n".join(f"{turn['role']}: {turn['content']}" for turn in messages)
