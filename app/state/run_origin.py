"""Where a shown run comes from that was not made just now, in words."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from core.former_name import FORMER_NAME, FORMER_TITLE, NAME
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.trace import Header, Trace


_MONTHS = (
    mark("January"), mark("February"), mark("March"), mark("April"), mark("May"), mark("June"), mark("July"),
    mark("August"), mark("September"), mark("October"), mark("November"), mark("December"),
)  # fmt: skip


def describe_origin(trace: Trace) -> str:
    """When it was recorded, by which model and version, and what of it is missing."""
    return " ".join([_recorded_sentence(trace.header), *_missing(trace)])


def _recorded_sentence(header: Header) -> str:
    when = _format_time(header.made)
    model = header.model
    programs = {NAME: "Decodescope", FORMER_NAME: FORMER_TITLE}
    program = next((f"{title} {header.versions[key]}" for key, title in programs.items() if key in header.versions), "")
    if model is None:
        told = tr("Written on {when}; nothing is computed now.")
    elif not program:
        told = tr("Written by {model} on {when}; nothing is computed now.")
    else:
        told = tr("Written by {model} on {when}, with {program}; nothing is computed now.")
    return told.format(when=when, model=model.name if model is not None else "", program=program)


def _missing(trace: Trace) -> list[str]:
    trouble = [trace.trouble.cause, tr("What comes before is shown.")] if trace.trouble is not None else []
    return [*trouble, *trace.notices]


def _format_time(seconds: float) -> str:
    """As `3 May 2026, 14:02`, in this machine's zone."""
    try:
        moment = datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return tr("a day that no calendar has")
    return tr("{day} {month} {year}, {time}").format(
        day=moment.day, month=tr(_MONTHS[moment.month - 1]), year=moment.year, time=f"{moment:%H:%M}"
    )
