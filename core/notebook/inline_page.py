"""The page of a run inside a notebook: a frame that contains everything and needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from decodescope.core.events import Event
from decodescope.core.trace.page.html_page import PageRun, page_text, runs_page_text
from decodescope.resources.language import tr

_HEIGHT = 640
"""Height of the frame in pixels; the page scrolls inside it."""


def inline_page(events: Iterable[Event], failure: str = "") -> str:
    """Return a frame with the interactive page; it follows the notebook's theme. `failure`: the error that ended the
    run, shown above the frame.
    """
    error = f"<p>{html.escape(tr('The call failed: {error}').format(error=failure))}</p>" if failure else ""
    return error + _frame(page_text(events, is_inline=True))


def inline_runs(runs: Sequence[PageRun]) -> str:
    """Return a frame with one page of all runs, which has a selector."""
    if len(runs) == 1:
        return inline_page(runs[0].events, failure=runs[0].failure)
    return _frame(runs_page_text(runs, is_inline=True))


def _frame(page: str) -> str:
    # Only the delimiter and ampersands need escaping, which keeps the many quotation marks of the data short.
    source = page.replace("&", "&amp;").replace("'", "&#39;")
    label = html.escape(tr("Run"), quote=True)
    style = f"width:100%;height:{_HEIGHT}px;border:0;border-radius:8px"
    return f'<iframe title="{label}" style="{style}" loading="lazy" srcdoc=\'{source}\'></iframe>'


def no_runs() -> str:
    """Return what a capture without runs shows."""
    return f"<p>{html.escape(tr('No generate call was captured.'))}</p>"
