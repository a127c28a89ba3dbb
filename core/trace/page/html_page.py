"""A run written as one HTML file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from core.arguments import check_events, check_kind, check_path
from core.errors import FileNotWrittenError
from core.events import Event
from core.file_writing import atomic_write
from core.trace.page.collected_run import collect_page_data
from core.trace.page.document import render_document
from resources.language import tr


def page(events: Iterable[Event], path: str | Path, *, title: str = "") -> Path:
    """Write the run as a page that needs nothing but itself; gives back where it lies.

    `events` are what `core.stream` or `core.replay` yields, a run that broke off included. `title` heads the page; the
    beginning of the prompt does where it is empty. Raises FileNotWrittenError where the file cannot be written.
    """
    check_path("path", path)
    text, target = page_text(events, title=title), Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as part:
            part.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    except (OSError, ValueError) as error:  # what no path can hold is a ValueError
        reason = (error.strerror if isinstance(error, OSError) else None) or tr("it cannot be written")
        raise FileNotWrittenError(
            tr("{target} was not written: {reason}.").format(target=target, reason=reason),
            tr("Choose a folder you may write to."),
        ) from None
    return target


def page_text(events: Iterable[Event], *, title: str = "") -> str:
    """The page itself, as text in UTF-8."""
    check_events(events)
    check_kind("title", title, str, tr("Give a text, or an empty one."))
    return render_document(collect_page_data(events, title))
