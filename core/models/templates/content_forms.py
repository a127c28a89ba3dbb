"""Whether a chat template takes the content of a message as one text or as a list of parts.

Templates of models that see or hear loop over parts; over a text they loop letter by letter and lose it. What a
template takes is found out by rendering a probe both ways, for each role.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from core.models.templates.template_budget import TemplateLimitError

ContentForm = Literal["text", "parts", "both"]
Messages = Sequence[Mapping[str, object]]
_PROBE = "7340918265"
"""Digits stay the same in every case, and in JSON."""
_QUESTION = "5"
_WRITTEN_OUT = re.compile(rf"text\\*['\"]\s*:\s*\\*['\"]{_PROBE}")


def content_forms(render: Callable[[Messages], str], roles: Sequence[str]) -> dict[str, ContentForm]:
    """Return the form of each role's content. `render` renders messages as they are. Raises TemplateLimitError."""
    user = _detect_form(render, lambda content: [_message("user", content)])
    forms: dict[str, ContentForm] = {"user": user}
    question = _message("user", _as_content(_QUESTION, user))
    for role in roles:
        if role not in forms:
            forms[role] = _detect_form(render, partial(_chat, role, question))
    return forms


def adapt_message(message: Mapping[str, object], forms: Mapping[str, ContentForm]) -> Mapping[str, object]:
    """Return the message with its content in the form that the template takes. Pictures stay where they are."""
    content, form = message.get("content"), forms.get(str(message.get("role")), "both")
    if form == "parts" and isinstance(content, str):
        return {**message, "content": _as_content(content, form)}
    if form == "text" and isinstance(content, (list, tuple)) and content and all(map(_is_text, content)):
        return {**message, "content": "".join(str(part["text"]) for part in content)}
    return message


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _detect_form(render: Callable[[Messages], str], chat: Callable[[object], Messages]) -> ContentForm:
    takes_text = _PROBE in _try_render(render, chat(_PROBE))
    written = _try_render(render, chat(_as_content(_PROBE, "parts")))
    takes_parts = _PROBE in written and not _is_written_out(written)
    if takes_text and takes_parts:
        return "both"
    return "parts" if takes_parts else "text"


def _is_written_out(text: str) -> bool:
    """Whether a list of parts stands in the text as Python or JSON writes it."""
    return _WRITTEN_OUT.search(text) is not None


def _try_render(render: Callable[[Messages], str], chat: Messages) -> str:
    try:
        return render(chat)
    except TemplateLimitError:
        raise
    except Exception:  # a form that the template refuses, in whichever way
        return ""


def _chat(role: str, question: Mapping[str, object], content: object) -> Messages:
    if role in ("system", "developer"):
        return [_message(role, content), question]
    return [question, _message(role, content), question]


def _message(role: str, content: object) -> Mapping[str, object]:
    return {"role": role, "content": content}


def _as_content(text: str, form: ContentForm) -> object:
    return [{"type": "text", "text": text}] if form == "parts" else text
