"""Where a shown run comes from that was not made just now, in words."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.trace import Header, Trace


def told(trace: Trace) -> str:
    """When it was recorded, by which model and version, and what of it is missing."""
    return " ".join([_made(trace.header), *_missing(trace)])


def _made(header: Header) -> str:
    when = _when(header.made)
    model = header.model
    by = f" by {model.name}" if model is not None else ""
    program = header.versions.get("tokenscope")
    return f"Written{by} on {when}" + (f", with Tokenscope {program}" if program else "") + "; nothing is computed now."


def _missing(trace: Trace) -> list[str]:
    trouble = [trace.trouble.cause, "What comes before is shown."] if trace.trouble is not None else []
    return [*trouble, *trace.notices]


def _when(seconds: float) -> str:
    """As `3 May 2026, 14:02`, in this machine's zone."""
    try:
        moment = datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return "a day that no calendar has"
    return f"{moment.day} {moment:%B %Y, %H:%M}"
