"""Chat templates are untrusted code: valid ones render as in transformers, and hostile ones are limited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerBase

from decodescope import core
from decodescope.core.errors import PromptError, TokenizerMissingError
from decodescope.core.models.chat_templates import render_chat
from decodescope.core.models.template_sandbox import TemplateLimitError
from decodescope.core.models.tokenizers import load_tokenizer
from tests.core import tiny
from tests.core.test_text import byte_level
from tests.long import every

CHAT = [
    {"role": "system", "content": "  Be kind. "},
    {"role": "user", "content": "Who was “Ada”?\n<b>Tell</b> me."},
    {"role": "assistant", "content": "A poet's daughter.", "reasoning": "short"},
    {"role": "user", "content": "And 100 % more?"},
]

CHATML = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'
+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
LLAMA2 = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}
{% set system = messages[0]['content'] | trim %}{% else %}{% set loop_messages = messages %}{% endif %}
{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate') }}{% endif %}
{% if message.role == 'user' %}{{ '[INST] ' ~ message.content.strip() ~ ' [/INST]' }}
{%- else %}{% generation %} {{ message.content }} {{ eos_token }}{% endgeneration %}{% endif %}{% endfor %}"""
MACROS = """{%- macro show(m, depth=2) -%}{{ m.role | upper }}: {{ m.content | replace('\n', ' / ') | tojson }}
{%- if depth > 1 %} {{ show(m, depth - 1) }}{% endif %}{%- endmacro -%}
{%- set ns = namespace(last='', seen=[]) -%}
{%- for m in messages -%}{%- if m.role in ['system', 'developer'] -%}{%- continue -%}{%- endif -%}
{%- set ns.last = m.content.split(' ')[-1] -%}{%- set ns.seen = ns.seen + [m.role] -%}
{{ show(m) }} {{ loop.index }}/{{ loop.length }} {{ '%s-%d' % (m.role, loop.index) }} {{ '{:>6}'.format(m.role) }}
{%- if m.reasoning_content is defined %} ({{ m.reasoning_content }}){% endif %}
{% endfor -%}{{ ns.seen | join(', ') }} {{ ns.last }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }}
{%- for key, value in messages[0].items() | sort %} {{ key }}={{ value | truncate(9) | indent(2) }}{% endfor %}"""


@pytest.mark.parametrize("template", [CHATML, LLAMA2, MACROS], ids=["chatml", "llama2", "macros"])
@pytest.mark.parametrize("chat", [CHAT, CHAT[1:2], CHAT[1:], [{"role": "user", "content": None}]])
def test_rendered_template_equals_that_of_transformers(template: str, chat: list[dict[str, Any]]) -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = template
    try:
        expected = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    except Exception as error:
        with pytest.raises(type(error)):
            render_chat(template, chat, tokenizer.special_tokens_map)
    else:
        assert render_chat(template, chat, tokenizer.special_tokens_map) == expected


@pytest.mark.parametrize("shown", ["content | tojson", "content | replace('a', 'b') | tojson", "content.center(2)"])
def test_braces_in_a_message_are_not_format_strings(shown: str) -> None:
    """A text with a brace and a large number is not a format string, wherever a template passes it through."""
    chat = [{"role": "user", "content": "{9999999999}"}]
    assert "{9999999999}" in render_chat("{{ messages[0]." + shown + " }}", chat, {})


def test_format_widths_of_bytes_are_limited() -> None:
    with pytest.raises(TemplateLimitError):
        render_chat("{{ '%1000000000d'.encode() % 1 }}", [{"role": "user", "content": "x"}], {})


def test_long_chat_is_rendered() -> None:
    chat = [{"role": ("user", "assistant")[turn % 2], "content": "word " * 4000} for turn in range(101)]
    for template in (CHATML, LLAMA2, MACROS):
        assert len(render_chat(template, chat, {"bos_token": "<s>", "eos_token": "</s>"})) > 2_000_000 // 2


WITH_TOOLS = "{% if tools %}" + "{{ tools[0] }}" * 250 + "{% endif %}"
"""The branch for tools, as long as real templates have it."""
REAL_STYLES = {
    "macro of the whole text": """{% macro shown(content, depth) %}{% if content is string %}{{ content }}
        {%- else %}{% for part in content %}{{ part.text }}{% endfor %}{% endif %}{% endmacro %}
        {%- for m in messages %}<|{{ m.role }}|>{{ shown(m.content, 0) | trim }}<|end|>{% endfor %}""",
    "the last question is searched for": """{% set ns = namespace(last=-1, open=true) %}
        {%- for m in messages[::-1] %}{% set index = messages | length - 1 - loop.index0 %}
        {%- if ns.open and m.role == 'user' and not m.content.startswith('<tool>') %}{% set ns.last = index %}
        {%- set ns.open = false %}{% endif %}{% endfor %}{% for m in messages %}{% set content = m.content %}
        {%- if '</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}
        {%- if loop.index0 > ns.last %}[{{ content.replace('/think', '').replace('/no_think', '').strip() }}]
        {%- else %}{{ content | trim }}{% endif %}{% endfor %}""",
    "every message looks at those before it": """{% for m in messages %}{% set ns = namespace(users=0) %}
        {%- for earlier in messages[:loop.index] %}{% if earlier.role != 'user' %}{% continue %}{% endif %}
        {%- set ns.users = ns.users + 1 %}{% endfor %}{{ ns.users }}:{{ m.content }}
        {%- if loop.index > 100000 %}{% break %}{% endif %}{% endfor %}""",
    "parts are collected": """{% set ns = namespace(parts=[]) %}{% for m in messages %}
        {%- set ns.parts = ns.parts + [m.role ~ ': ' ~ (m.content | replace('|', '/'))] %}{% endfor %}
        {{- ns.parts | join('\n') }}{{ messages | tojson }}{{ strftime_now('') }}""",
}


@pytest.mark.parametrize("name", REAL_STYLES)
def test_very_long_chats_equal_those_of_transformers(name: str) -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = template = REAL_STYLES[name] + WITH_TOOLS
    many = [{"role": ("user", "assistant")[turn % 2], "content": "word " * 100} for turn in range(201)]
    for chat in (many, [{"role": "user", "content": "word " * 20_000}]):
        expected = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert render_chat(template, chat, tokenizer.special_tokens_map) == expected


def test_time_of_other_threads_and_programs_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    later = iter(range(10**9))
    monkeypatch.setattr("time.monotonic", lambda: 3600.0 * next(later))
    monkeypatch.setattr("time.process_time", lambda: 3600.0 * next(later))
    assert len(render_chat(CHATML, CHAT * 200, {})) > 10_000
    monkeypatch.setattr("time.thread_time", lambda: 3600.0 * next(later))
    with pytest.raises(TemplateLimitError, match="longer than 5 seconds"):
        render_chat(CHATML, CHAT * 200, {})


BOMBS = {
    "nested loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9) %}"
    "{% endfor %}{% endfor %}{% endfor %}",
    "silent loops": "{% set x %}{% for a in range(99999) %}{% for b in range(999) %}x{% endfor %}"
    "{% endfor %}{% endset %}",
    "printf": "{{ '%1000000000d' % 1 }}",
    "printf with a star": "{{ '%*d' % (1000000000, 1) }}",
    "printf, long": "{{ '%1000000000d'|format(1) }}",
    "format": "{{ '{:>1000000000}'.format(1) }}",
    "format, inner": "{{ '{:>{}}'.format(1, 1000000000) }}",
    "format_map": "{{ '{a:>1000000000}'.format_map({'a': 1}) }}",
    "repeat": "{{ 'a' * 10**9 }}",
    "repeat, turned": "{{ 1000000000 * 'a' }}",
    "repeat a list": "{{ ([1] * 1000000000) | length }}",
    "power": "{{ 9 ** (9 ** 9) }}",
    "square": "{% set ns = namespace(x=10) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "round": "{{ 1.5 | round(1000000000) }}",
    "center": "{{ 'a' | center(1000000000) }}",
    "ljust": "{{ 'a'.ljust(1000000000) }}",
    "zfill": "{{ 'a'.zfill(1000000000) }}",
    "expandtabs": "{{ '\t'.expandtabs(1000000000) }}",
    "indent": "{{ ('a\n' * 999) | indent(1000000000) }}",
    "json": "{{ [[1]] | tojson(indent=1000000000) }}",
    "batch": "{{ [1] | batch(1000000000, 'x') | list }}",
    "double": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "double, tilde": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "laughs": "{% set ns = namespace(x=['ha']) %}"
    "{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "twins": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
    "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "hash": "{% set ns = namespace(x=(1,)) %}"
    "{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
    "namespaces": "{% set ns = namespace(x=1) %}"
    "{% for i in range(99) %}{% set ns.x = dict(a=ns.x, b=ns.x) %}{% endfor %}{{ ns.x }}",
    "replace": "{% set x = 'a' * 9999 %}{{ x.replace('a', x).replace('a', x) }}",
    "join": "{% set x = 'a' * 99999 %}{{ x | join(x) }}",
    "str.join": "{% set x = 'a' * 99999 %}{{ x.join(x) }}",
    "translate": "{% set x = 'a' * 99999 %}{{ x.translate({97: x}) }}",
    "deep macros": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "recursive loop": "{% for x in [[1]] recursive %}{{ loop([x, x]) }}{% endfor %}",
    "slices": "{% set x = 'a' * 99999 %}{% for i in range(9999) %}{% if x[i:] == 'b' %}{% endif %}{% endfor %}",
    "brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "large": "{# " + "x" * 2_000_000 + " #}",
    "digits": "{{ 1" + "0" * 9999 + " }}",
    "date": "{{ strftime_now('%Y' * 999999) }}",
    "escape": "{{ messages.__class__.__mro__[1].__subclasses__() }}",
    "include": "{% include 'x' %}",
    "append": "{{ messages.append(messages) }}",
    "undefined": "{{ nothing.at.all }}",
}


@pytest.mark.parametrize("name", every(3, BOMBS))
def test_expanding_template_is_refused_with_a_remedy(name: str) -> None:
    model = tiny.make("llama", vocab_size=260)
    model.tokenizer = byte_level()
    model.tokenizer.chat_template = BOMBS[name]
    with pytest.raises(PromptError, match="chat template") as caught:
        core.encode(model, CHAT)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (
            "{{ raise_exception('Only one question.') }}",
            "rejects these messages: Only one question. Check that the roles",
        ),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "exceeds a limit: it produces more text",
        ),
        ("{{ messages[0].nothing.at.all }}", "failed on these messages"),
        ("{{ messages[0].content + 5 }}", "a value in it is missing or has the wrong type"),
        ("{{ 1 / 0 }}", "a value in it is missing or has the wrong type"),
    ],
)
def test_error_distinguishes_template_and_conversation_faults(template: str, words: str) -> None:
    model = tiny.make("llama", vocab_size=260)
    model.tokenizer = byte_level()
    model.tokenizer.chat_template = template
    with pytest.raises(PromptError) as caught:
        core.encode(model, CHAT)
    assert words in str(caught.value)
    assert ("roles alternate" in caught.value.remedy) == ("rejects" in caught.value.cause)


def test_overridden_apply_chat_template_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(type(byte_level())):  # type: ignore[misc]
        def apply_chat_template(self, *args: Any, **kwargs: Any) -> str:
            return "cat"

    assert Own.apply_chat_template is not PreTrainedTokenizerBase.apply_chat_template
    model = tiny.make("llama", vocab_size=260)
    model.tokenizer = byte_level()
    plain = model.tokenizer("cat", add_special_tokens=False)["input_ids"]
    model.tokenizer.__class__ = Own
    model.tokenizer.chat_template = "x"
    assert core.encode(model, CHAT) == plain


def test_several_templates_without_a_default_are_named(tmp_path: Path) -> None:
    """transformers refuses them too; a list with a default uses it."""
    model = core.wrap(tiny.make("llama", vocab_size=512).model, byte_level())
    model.tokenizer.chat_template = {"rag": CHATML, "tool_use": CHATML}
    with pytest.raises(
        PromptError, match=r"several chat templates \(rag, tool_use\), and none .* is the default"
    ) as refused:
        core.run(model, core.Request(CHAT, {"max_new_tokens": 1}))
    assert "default" in refused.value.remedy
    model.tokenizer.chat_template = {"rag": "x", "default": CHATML}
    assert core.run(model, core.Request(CHAT, {"max_new_tokens": 1})).texts


NEWER = {
    "model": {"model": {"type": "Quantum", "vocab": {}}},
    "normalizer": {"normalizer": {"type": "Unicode17"}},
    "pre_tokenizer": {"pre_tokenizer": {"type": "Telepathy"}},
    "decoder": {"decoder": {"type": "Guess"}},
    "post_processor": {"post_processor": {"type": "Frame"}},
    "version": {"version": "2.0"},
}


@pytest.mark.parametrize("part", NEWER)
def test_tokenizer_of_a_newer_library_names_the_update(part: str, tmp_path: Path) -> None:
    tokenizer = byte_level()
    tokenizer.save_pretrained(tmp_path)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | NEWER[part]))
    with pytest.raises(TokenizerMissingError) as refused:
        load_tokenizer(tmp_path, False)
    assert "pip install -U transformers tokenizers" in refused.value.remedy
    file.write_text(file.read_text()[:-30])
    with pytest.raises(TokenizerMissingError) as refused:
        load_tokenizer(tmp_path, False)
    assert refused.value.remedy == "Copy or download the model's tokenizer files again."
