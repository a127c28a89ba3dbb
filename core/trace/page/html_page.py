"""A run written as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from core.checks.arguments import check_events, check_kind, check_path
from core.errors import FileNotWrittenError
from core.events import Event
from core.system.file_writing import atomic_write
from core.trace.page.json_values import PageValues
from core.trace.page.page_data import collect_page_data
from resources.language import ENGLISH, current_language, tr, trn

_TEXT = r'\s*("(?:[^"\\]|\\.)*")'
_CALLS = re.compile(rf"\b(?:tr|trAround)\({_TEXT}|\btrn\({_TEXT},{_TEXT}")
_PLACES = re.compile(r"\{\{(.+?)\}\}")

Message = str | tuple[str, str]
"""A sentence, or its forms for one and for many."""


def script_messages(script: str) -> Iterator[Message]:
    """What a script says, in its order."""
    for said in _CALLS.finditer(script):
        plain, one, many = (json.loads(text) if text else "" for text in said.groups())
        yield plain or (one, many)


def skeleton_messages(skeleton: str) -> Iterator[Message]:
    """What the skeleton says, in its order."""
    yield from _PLACES.findall(skeleton)


def script_translations(script: str) -> dict[str, str]:
    """What the script says it as; empty in English, which stands in it."""
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
    """The skeleton with its words said."""
    return _PLACES.sub(lambda place: html.escape(tr(place[1])), skeleton)


_STYLES = ("base.css", "text.css", "panel.css", "drawings.css", "narrow.css")
_SCRIPTS = (
    "words.js", "elements.js", "state.js", "said.js", "tokens.js", "text.js", "bars.js", "panel.js", "layout.js",
    "tree.js", "beams.js", "rounds.js", "memory.js", "timeline.js", "facts.js", "main.js",
)  # fmt: skip
_ESCAPED = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def render_document(run: PageValues) -> str:
    """The whole page for what `collect` has gathered."""
    style, script = _join_parts(_STYLES), _join_parts(_SCRIPTS)
    return Template(translate_skeleton(_read_part("page.html"))).substitute(
        language=current_language().replace("_", "-"),
        title=html.escape(_encodable(str(run["title"]))),
        policy=_content_security_policy(style, script),
        style=style,
        script=script,
        text=html.escape(_encodable(str(run["plain"]))),
        data=to_script_json({**run, "said": script_translations(script)}),
    )


def to_script_json(value: PageValues) -> str:
    """JSON that can stand in a script element: no character of it can end that element, or begin another."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _content_security_policy(style: str, script: str) -> str:
    """A content security policy: this style, this script, and nothing else from anywhere."""
    own = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _encodable(text: str) -> str:
    """Half a pair of surrogates, which no file can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


@cache
def _read_part(name: str) -> str:
    return files("core.trace.page").joinpath("parts", name).read_text(encoding="utf-8")


@cache
def _join_parts(names: tuple[str, ...]) -> str:
    """The files in a row, between line breaks: the very text whose digest the policy names."""
    return "\n" + "\n".join(_read_part(name).strip() for name in names) + "\n"


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
