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

from core.trace.page.json_values import PageValues
from core.trace.page.page_text import script_translations, translate_skeleton
from resources.language import current_language

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
