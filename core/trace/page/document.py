"""The page put together: a skeleton, one style sheet, one script, and the run as data that nothing in it can leave."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from string import Template

from core.trace.page.json_values import Plain
from core.trace.page.page_text import dictionary, spoken
from resources.language import current

_STYLES = ("base.css", "text.css", "panel.css", "drawings.css", "narrow.css")
_SCRIPTS = (
    "words.js", "elements.js", "state.js", "said.js", "tokens.js", "text.js", "bars.js", "panel.js", "layout.js",
    "tree.js", "beams.js", "rounds.js", "memory.js", "timeline.js", "facts.js", "main.js",
)  # fmt: skip
_ESCAPED = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def document(run: Plain) -> str:
    """The whole page for what `collect` has gathered."""
    style, script = _joined(_STYLES), _joined(_SCRIPTS)
    return Template(spoken(_part("page.html"))).substitute(
        language=current().replace("_", "-"),
        title=html.escape(_encodable(str(run["title"]))),
        policy=_policy(style, script),
        style=style,
        script=script,
        text=html.escape(_encodable(str(run["plain"]))),
        data=as_data({**run, "said": dictionary(script)}),
    )


def as_data(value: Plain) -> str:
    """JSON that can stand in a script element: no character of it can end that element, or begin another."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _policy(style: str, script: str) -> str:
    """A content security policy: this style, this script, and nothing else from anywhere."""
    own = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _encodable(text: str) -> str:
    """Half a pair of surrogates, which no file can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


@cache
def _part(name: str) -> str:
    return files("core.trace.page").joinpath("parts", name).read_text(encoding="utf-8")


@cache
def _joined(names: tuple[str, ...]) -> str:
    """The files in a row, between line breaks: the very text whose digest the policy names."""
    return "\n" + "\n".join(_part(name).strip() for name in names) + "\n"
