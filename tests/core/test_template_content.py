"""Chat templates that take a message's content as a text, as a list of parts, or either."""

from __future__ import annotations

import pytest

from decodescope.core.models.chat_templates import render_chat, requires_parts

LOOP = (
    "{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% elif p.type == 'image' %}<image>{% endif %}"
    "{% endfor %}"
)
PARTS = "{% for m in messages %}{{ m.role | capitalize }}: " + LOOP + "<end>\n{% endfor %}Assistant:"
SELECTED = (
    "{% for m in messages %}[{{ m.role }}]{% for p in m.content | selectattr('type', 'equalto', 'text') %}"
    "{{ p['text'] }}{% endfor %}{% endfor %}"
)
INDEXED = "{% for m in messages %}({{ m.role }}){{ m.content[0]['text'] }}{% endfor %}"
TEXT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
STRIPPED = "{% for m in messages %}<{{ m.role }}>{{ m.content.strip() }}{% endfor %}"
AS_JSON = "{% for m in messages %}<{{ m.role }}>{{ m.content | tojson }}{% endfor %}"
EITHER = (
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}" + LOOP + "{% endif %}"
    "{% endfor %}"
)
SYSTEM_TEXT = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'system' %}{{ m.content | trim }}{% else %}"
    + LOOP
    + "{% endif %}"
    "{% endfor %}"
)
SYSTEM_PARTS = (
    "{% if messages[0].role == 'system' %}<system>{{ messages[0].content[0].text }}{% set messages = messages[1:] %}"
    "{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content.strip() }}{% endfor %}"
)
ALL = {
    "parts": PARTS, "selected": SELECTED, "indexed": INDEXED, "text": TEXT, "stripped": STRIPPED, "json": AS_JSON,
    "either": EITHER, "system text": SYSTEM_TEXT, "system parts": SYSTEM_PARTS,
}  # fmt: skip
CHAT = (("system", "Be kind."), ("user", "What is the capital?"), ("assistant", "Paris."), ("user", "Sure?"))


def chat(as_parts: bool, roles: tuple[tuple[str, str], ...] = CHAT) -> list[dict[str, object]]:
    return [{"role": role, "content": [{"type": "text", "text": text}] if as_parts else text} for role, text in roles]


@pytest.mark.parametrize("name", ALL)
def test_chat_texts_appear_in_the_prompt_once(name: str) -> None:
    for messages in (CHAT, CHAT[1:], CHAT[1:2]):
        written = [render_chat(ALL[name], chat(as_parts, messages), {}) for as_parts in (False, True)]
        assert written[0] == written[1]
        assert all(written[0].count(text) == 1 for _role, text in messages)
        assert "'type'" not in written[0]
        assert '"type"' not in written[0]


def test_images_keep_their_position_in_the_prompt() -> None:
    parts = [{"type": "image"}, {"type": "text", "text": "What is it?"}]
    text = render_chat(PARTS, [{"role": "system", "content": "Be kind."}, {"role": "user", "content": parts}], {})
    assert text == "System: Be kind.<end>\nUser: <image>What is it?<end>\nAssistant:"


@pytest.mark.parametrize("name", ALL)
def test_content_form_of_a_template_is_detected(name: str) -> None:
    assert requires_parts(ALL[name], {}) == (name in ("parts", "selected", "indexed", "either", "system text"))


def test_template_error_is_passed_through() -> None:
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('No system.') }}{% endif %}" + PARTS
    with pytest.raises(Exception, match="No system"):
        render_chat(refusing, chat(False), {})
    assert "What is the capital?" in render_chat(refusing, chat(False, CHAT[1:]), {})
