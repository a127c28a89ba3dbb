"""A kept run in words: when it was, and its figures in one line."""

from __future__ import annotations

from datetime import datetime

from app.storage.history.record import Record
from core import strategies, words
from resources.language import tr

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OUTCOMES = {"stopped": "stopped", "failed": "failed"}


def moment(made: float, now: float) -> str:
    """When that was, as briefly as it is clear now: `14:32`, `yesterday`, `12 Mar`, `12 Mar 2025`."""
    then, today = _local(made), _local(now)
    days = (today.date() - then.date()).days
    if days == 0:
        return f"{then:%H:%M}"
    if days == 1:
        return "yesterday"
    day = f"{then.day} {_MONTHS[then.month - 1]}"
    return day if then.year == today.year else f"{day} {then.year}"


def exact_moment(made: float) -> str:
    """The same to the minute: `12 Mar 2025, 14:32`."""
    then = _local(made)
    return f"{then.day} {_MONTHS[then.month - 1]} {then.year}, {then:%H:%M}"


def figures(record: Record) -> str:
    """`Sampling · 50 tokens · 118 tok/s · storyteller`, and how it ended where that was not by itself."""
    parts = [
        _OUTCOMES.get(record.outcome, ""),
        strategy_title(record.strategy),
        words.count(record.tokens, "token"),
        words.rate(record.speed) if record.speed else "",
        record.model.replace("\\", "/").rstrip("/").rpartition("/")[2],
    ]
    return " · ".join(part for part in parts if part)


def strategy_title(name: str) -> str:
    """As the picker calls it; what is none of these by its name: `Scored`, or a later version's."""
    return tr(strategies.registry[name].title) if name in strategies.registry else name.replace("_", " ").capitalize()


def in_full(record: Record) -> str:
    """Everything a row shows and more, a line each, for a tip."""
    lines = [record.title, record.opening, record.words, figures(record)]
    more = [words.duration(record.seconds), words.size(record.cache_bytes) + " of cache", f"seed {record.seed}"]
    lines += [" · ".join(more), f"{exact_moment(record.made)} · {words.size(record.bytes)} on the disk"]
    return "\n".join(line for line in dict.fromkeys(lines) if line)


def spoken(record: Record, now: float) -> str:
    """One row for a screen reader."""
    pinned = "pinned, " if record.pinned else ""
    return f"{record.name}; {record.words}; {pinned}{figures(record)}, {moment(record.made, now)}"


def _local(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds)
    except (OverflowError, OSError, ValueError):  # a damaged file may hold any number
        return datetime.fromtimestamp(0)
