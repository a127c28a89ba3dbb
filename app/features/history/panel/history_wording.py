"""Texts about a kept run: its time, and its key numbers in one line."""

from __future__ import annotations

from datetime import datetime

from decodescope.app.features.history.store.history_record import HistoryRecord
from decodescope.core import strategies, words
from decodescope.resources.language import mark, start_sentence, tr

_MONTHS = (
    mark("Jan"), mark("Feb"), mark("Mar"), mark("Apr"), mark("May"), mark("Jun"),
    mark("Jul"), mark("Aug"), mark("Sep"), mark("Oct"), mark("Nov"), mark("Dec"),
)  # fmt: skip
_OUTCOMES = {"stopped": mark("stopped"), "failed": mark("failed")}


def time_text(created: float, now: float) -> str:
    """Return when the run was made, as briefly as possible: `14:32`, `yesterday`, `12 Mar`, `12 Mar 2025`."""
    then, today = _local(created), _local(now)
    days = (today.date() - then.date()).days
    if days == 0:
        return f"{then:%H:%M}"
    if days == 1:
        return tr("yesterday")
    return _day(then) if then.year == today.year else tr("{day} {year}").format(day=_day(then), year=then.year)


def exact_time_text(created: float) -> str:
    """Return the time to the minute: `12 Mar 2025, 14:32`."""
    then = _local(created)
    day = tr("{day} {year}").format(day=_day(then), year=then.year)
    return tr("{day}, {time}").format(day=day, time=f"{then:%H:%M}")


def summary_text(record: HistoryRecord) -> str:
    """Return `Sampling · 50 tokens · 118 tok/s · storyteller`, after the outcome if the run did not finish normally."""
    parts = [
        tr(_OUTCOMES.get(record.outcome, "")),
        strategy_title(record.strategy),
        words.count(record.tokens, "token"),
        words.rate(record.speed) if record.speed else "",
        record.model.replace("\\", "/").rstrip("/").rpartition("/")[2],
    ]
    return " · ".join(part for part in parts if part)


def strategy_title(name: str) -> str:
    """Return the strategy's title, or its capitalised name if it is not in the registry (`Scored`, or from a later
    version).
    """
    return (
        tr(strategies.registry[name].title) if name in strategies.registry else start_sentence(name.replace("_", " "))
    )


def tooltip_text(record: HistoryRecord) -> str:
    """Return all texts of a row and more, one per line, for a tooltip."""
    lines = [record.title, record.opening, record.words, summary_text(record)]
    more = [
        words.duration(record.seconds),
        tr("{size} cache").format(size=words.size(record.cache_bytes)),
        tr("seed {seed}").format(seed=record.seed),
    ]
    lines += [
        " · ".join(more),
        tr("{moment} · {size} on disk").format(moment=exact_time_text(record.made), size=words.size(record.bytes)),
    ]
    return "\n".join(line for line in dict.fromkeys(lines) if line)


def accessible_text(record: HistoryRecord, now: float) -> str:
    """Return a row as text for a screen reader."""
    details = [*([tr("pinned")] if record.pinned else []), summary_text(record), time_text(record.made, now)]
    return f"{record.name}; {record.words}; {', '.join(details)}"


def _day(moment: datetime) -> str:
    return tr("{day} {month}").format(day=moment.day, month=tr(_MONTHS[moment.month - 1]))


def _local(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds)
    except (OverflowError, OSError, ValueError):  # a damaged file may contain any number
        return datetime.fromtimestamp(0)
