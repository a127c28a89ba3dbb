"""The page of a run inside a notebook: a frame that contains everything and needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from core.events import Event
from core.trace.page.html_page import page_text
from resources.language import tr

_HEIGHT = 640
"""Height of the frame in pixels; the page scrolls inside it."""


def inline_page(events: Iterable[Event], title: str = "") -> str:
    """Return a frame with the interactive page; it follows the notebook's theme."""
    page = page_text(events, title=title, is_inline=True)
    # Only the delimiter and ampersands need escaping, which keeps the many quotation marks of the data short.
    source = page.replace("&", "&amp;").replace("'", "&#39;")
    label = html.escape(tr("Run"), quote=True)
    style = f"width:100%;height:{_HEIGHT}px;border:0;border-radius:8px"
    return f'<iframe title="{label}" style="{style}" loading="lazy" srcdoc=\'{source}\'></iframe>'


def inline_pages(runs: Sequence[Iterable[Event]]) -> str:
    """Return the frames of several runs, one below the other."""
    return "".join(map(inline_page, runs)) or f"<p>{html.escape(tr('No generate call was captured.'))}</p>"
