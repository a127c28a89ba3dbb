"""Render a chat to text with the model's template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal

from jinja2 import Template, meta

from decodescope.core.models.model_files import Json, JsonObject
from decodescope.core.models.template_sandbox import BUDGET, MeteredEnvironment, TemplateBudget, TemplateLimitError
from decodescope.resources.language import tr

ContentForm = Literal["text", "parts", "both"]
Messages = Sequence[Mapping[str, object]]
_PROBE = "7340918265"
"""Digits look the same in any case and in JSON."""
_QUESTION = "5"
_WRITTEN_OUT = re.compile(rf"text\\*['\"]\s*:\s*\\*['\"]{_PROBE}")


def content_forms(render: Callable[[Messages], str], roles: Sequence[str]) -> dict[str, ContentForm]:
    """Return the form of each role's content. `render` renders messages unchanged. Raises TemplateLimitError."""
    user = _detect_form(render, lambda content: [_message("user", content)])
    forms: dict[str, ContentForm] = {"user": user}
    question = _message("user", _as_content(_QUESTION, user))
    for role in roles:
        if role not in forms:
            forms[role] = _detect_form(render, partial(_chat, role, question))
    return forms


def adapt_message(message: Mapping[str, object], forms: Mapping[str, ContentForm]) -> Mapping[str, object]:
    """Return the message with its content in the form the template supports. Images stay in place."""
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
    """Return whether the text contains the list of parts as Python or JSON source."""
    return _WRITTEN_OUT.search(text) is not None


def _try_render(render: Callable[[Messages], str], chat: Messages) -> str:
    try:
        return render(chat)
    except TemplateLimitError:
        raise
    except Exception:  # the template rejects this form with any exception
        return ""


def _chat(role: str, question: Mapping[str, object], content: object) -> Messages:
    if role in ("system", "developer"):
        return [_message(role, content), question]
    return [question, _message(role, content), question]


def _message(role: str, content: object) -> Mapping[str, object]:
    return {"role": role, "content": content}


def _as_content(text: str, form: ContentForm) -> object:
    return [{"type": "text", "text": text}] if form == "parts" else text


_MAX_LENGTH = 2**19
"""Maximum characters of a template; those of the largest models have 30,000."""
_BASE, _PER_CHARACTER = 2**23, 400
"""Budget of a template in units: a base, and an amount per character of the messages."""
_REASONING = ("reasoning_content", "thinking", "reasoning")
"""Keys of a message's reasoning; templates read the first or the second."""


def render_chat(template: str, messages: Sequence[Mapping[str, object]], special_tokens: Mapping[str, object]) -> str:
    """Render the chat up to the model's answer. `special_tokens`: they, and further variables of the template, by name.

    The content of each message is passed in the form the template supports: a text or a list of parts. Raises whatever
    the template raises, and TemplateLimitError.
    """
    if len(template) > _MAX_LENGTH:
        raise TemplateLimitError(
            tr("it has {characters:,} characters; the maximum is {most:,}").format(
                characters=len(template), most=_MAX_LENGTH
            )
        )
    given = [{name: value for name, value in message.items() if value is not None} for message in messages]
    chat = [_add_reasoning_aliases(_to_json_object(message)) for message in given]
    forms = _forms_of(template, chat, special_tokens)
    return _render(template, [_to_json_object(adapt_message(message, forms)) for message in chat], special_tokens)


@lru_cache(maxsize=8)
def template_variables(template: str) -> frozenset[str]:
    """Return the variables that a template reads and does not set itself. Raises what its parser raises."""
    return frozenset(meta.find_undeclared_variables(MeteredEnvironment().parse(template)))


def requires_parts(template: str, special_tokens: Mapping[str, object]) -> bool:
    """Return whether the template requires the content of a user's message as a list of parts. Raises
    TemplateLimitError.
    """
    return _forms(template, (), _frozen(special_tokens))["user"] != "text"


def _forms_of(
    template: str, chat: Sequence[Mapping[str, object]], special_tokens: Mapping[str, object]
) -> Mapping[str, ContentForm]:
    roles = {str(message.get("role")) for message in chat} & {"system", "developer", "assistant", "tool"}
    return _forms(template, tuple(sorted(roles)), _frozen(special_tokens))


def _frozen(special_tokens: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), str(value)) for name, value in special_tokens.items()))


@lru_cache(maxsize=64)
def _forms(
    template: str, roles: tuple[str, ...], special_tokens: tuple[tuple[str, str], ...]
) -> Mapping[str, ContentForm]:
    return content_forms(
        lambda chat: _render(template, [_to_json_object(message) for message in chat], dict(special_tokens)), roles
    )


def _render(template: str, chat: Sequence[JsonObject], special_tokens: Mapping[str, object]) -> str:
    token = BUDGET.set(TemplateBudget(2**40))
    try:
        BUDGET.set(TemplateBudget(_BASE + _PER_CHARACTER * BUDGET.get().charge_read(list(chat))))
        compiled = _compile(template)
        return compiled.render(
            messages=list(chat), tools=None, documents=None, add_generation_prompt=True,
            **_to_json_object(special_tokens),
        )  # fmt: skip
    finally:
        BUDGET.reset(token)


@lru_cache(maxsize=8)
def _compile(template: str) -> Template:
    return MeteredEnvironment().from_string(template)


def _add_reasoning_aliases(message: JsonObject) -> JsonObject:
    reasoning = next((message[name] for name in _REASONING if name in message), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _to_json_object(settings: Mapping[str, object]) -> JsonObject:
    return {str(name): _to_json(item) for name, item in settings.items()}


def _to_json(value: object) -> Json:
    """Convert to JSON types, because a template could call the methods of other objects."""
    if isinstance(value, Mapping):
        return _to_json_object(value)
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or (isinstance(value, (int, float)) and type(value) in (bool, int, float)):
        return value
    return f"<{type(value).__name__}>"
