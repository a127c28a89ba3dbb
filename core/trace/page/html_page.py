"""Write a run as one HTML file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from decodescope.core.checks.arguments import check_events, check_kind, check_path
from decodescope.core.events import Event
from decodescope.core.system.file_writing import save_text
from decodescope.core.trace.page.json_values import PageValues
from decodescope.core.trace.page.page_data import collect_page_data
from decodescope.core.trace.page.search_values import with_node_columns
from decodescope.resources.language import ENGLISH, current_language, tr, trn

_TEXT = r'\s*("(?:[^"\\]|\\.)*")'
_CALLS = re.compile(rf"\b(?:tr|trAround)\({_TEXT}|\btrn\({_TEXT},{_TEXT}")
_PLACES = re.compile(r"\{\{(.+?)\}\}")

Message = str | tuple[str, str]
"""A text, or its singular and plural."""


def script_messages(script: str) -> Iterator[Message]:
    """Yield the texts of a script in order."""
    for call in _CALLS.finditer(script):
        plain, one, many = (json.loads(text) if text else "" for text in call.groups())
        yield plain or (one, many)


def skeleton_messages(skeleton: str) -> Iterator[Message]:
    """Yield the texts of the skeleton in order."""
    yield from _PLACES.findall(skeleton)


def script_translations(script: str) -> dict[str, str]:
    """Return the translations of a script's texts; empty for English, which is in the script."""
    if current_language() == ENGLISH:
        return {}
    found = {}
    for message in script_messages(script):
        if isinstance(message, str):
            found[message] = tr(message)
        else:
            one, many = message
            found |= {one: trn(one, many, 1), many: trn(one, many, 2)}
    return found


def translate_skeleton(skeleton: str) -> str:
    """Translate the texts of the skeleton."""
    return _PLACES.sub(lambda place: html.escape(tr(place[1])), skeleton)


_STYLES = ("base.css", "text.css", "panel.css", "drawings.css", "narrow.css")
_SCRIPTS = (
    "words.js", "elements.js", "state.js", "said.js", "tokens.js", "text.js", "bars.js", "panel.js", "layout.js",
    "tree.js", "beams.js", "rounds.js", "memory.js", "timeline.js", "facts.js", "main.js",
)  # fmt: skip
_NOTEBOOK_SCRIPT = "notebook.js"
_ESCAPED = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def render_document(runs: Sequence[PageValues], is_inline: bool = False) -> str:
    """Return the complete page for data from `collect_page_data`, with a selector for several runs; `is_inline`: for a
    frame inside a notebook, in which the data is compressed.
    """
    run = runs[0]
    scripts = (*_SCRIPTS, _NOTEBOOK_SCRIPT) if is_inline else _SCRIPTS
    style, script = _join_parts(_STYLES), _join_parts(scripts)
    shown = [with_node_columns(one) for one in runs] if is_inline else list(runs)
    values: PageValues = {**(shown[0] if len(shown) == 1 else {"runs": shown}), "said": script_translations(script)}
    data = to_script_json(values)
    return Template(translate_skeleton(read_part("page.html"))).substitute(
        language=current_language().replace("_", "-"),
        title=html.escape(encodable(str(run["title"]))),
        policy=content_security_policy(style, script),
        style=style,
        script=script,
        text=html.escape(encodable(str(run["plain"]))),
        kind="application/gzip" if is_inline else "application/json",
        data=_compressed(data) if is_inline else data,
    )


def to_script_json(value: PageValues) -> str:
    """Return JSON for a script element, escaped so that it cannot end that element or start another."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _compressed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def content_security_policy(style: str, script: str) -> str:
    """Return a content security policy that allows only this style and this script."""
    own = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def encodable(text: str) -> str:
    """Replace lone surrogates, which no file can contain, by question marks."""
    return text.encode("utf-8", "replace").decode()


@cache
def read_part(name: str) -> str:
    return files("decodescope.core.trace.page").joinpath("parts", name).read_text(encoding="utf-8")


@cache
def _join_parts(names: tuple[str, ...]) -> str:
    """Join the files with line breaks: exactly the text whose digest the policy contains."""
    return "\n" + "\n".join(read_part(name).strip() for name in names) + "\n"


def page(events: Iterable[Event], path: str | Path, *, title: str = "") -> Path:
    """Write the run as a self-contained page and return its path.

    `events` are those of `core.stream` or `core.replay`, also of an interrupted run. `title` is the page's heading; if
    it is empty, the beginning of the prompt is used. Raises FileNotWrittenError if the file cannot be written.
    """
    check_path("path", path)
    return save_text(page_text(events, title=title), Path(path))


def runs_page(runs: Iterable[PageRun], path: str | Path) -> Path:
    """Write several runs as one page with a selector and return its path. Raises FileNotWrittenError."""
    return save_text(runs_page_text(runs), Path(path))


def page_text(events: Iterable[Event], *, title: str = "", is_inline: bool = False) -> str:
    """Return the page as text in UTF-8; `is_inline`: for a frame inside a notebook, whose theme it follows."""
    check_events(events)
    check_kind("title", title, str, tr("Pass a text, which may be empty."))
    return render_document([collect_page_data(events, title)], is_inline)


class PageRun(NamedTuple):
    """A run of a page with several."""

    events: Sequence[Event]
    failure: str = ""
    """The error that ended it."""


def runs_page_text(runs: Iterable[PageRun], *, is_inline: bool = False) -> str:
    """Return a page of one or more runs with a selector, as `page_text` does."""
    return render_document([_run_values(run) for run in runs], is_inline)


def _run_values(run: PageRun) -> PageValues:
    found = collect_page_data(run.events)
    if not run.failure:
        return found
    failed = tr("The call failed: {error}").format(error=run.failure)
    return {**found, "notices": [failed, *_list_of(found["notices"])]}


def _list_of(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
