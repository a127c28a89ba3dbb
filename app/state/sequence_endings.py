"""How texts that are written side by side stand: those that still run, and how the others ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from core.events import Ending

SequenceStatus = Literal["running", "finished", "cut", "stopped"]
"""`cut` by a limit."""
LIMITS: frozenset[Ending | None] = frozenset({"length", "context", "time"})
"""Endings that the text itself had no part in."""
