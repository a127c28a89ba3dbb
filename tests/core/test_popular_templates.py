"""Chat templates with the features of popular models' public ones, written for this test: what is rendered is what
transformers renders, and a conversation grows only at its end.

The features, by the models whose templates use them: a default system prompt (Qwen 2.5, SmolLM2); the system prompt
inside the first user turn (Mistral, Llama 2, Gemma); roles with other names (Gemma's “model”); roles that must
alternate (Mistral, Gemma); the current date (Llama 3, gpt-oss); reasoning of earlier answers dropped (Qwen 3, DeepSeek
R1, SmolLM3); a switch inside the system prompt (SmolLM3); content as parts (Llama 3.2 vision, Gemma 3); end marks
only after answers (Phi-3, Mistral); tools rendered as JSON where they are given (Qwen, Llama 3); white space control
throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from decodescope.core.models.chat_templates import render_chat
from tests.core.test_text import byte_level

TEMPLATES = {
    "qwen 2.5, smollm2": """{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are a small assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first)
        or (message.role == 'assistant' and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}""",
    "llama 3": """{{- bos_token }}
{%- if not date_string is defined %}{%- set date_string = '26 Jul 2024' %}{%- endif %}
{%- if messages[0].role == 'system' %}
    {%- set system_message = messages[0].content | trim %}{%- set messages = messages[1:] %}
{%- else %}{%- set system_message = '' %}{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nCutting Knowledge Date: December 2023\\n' }}
{{- 'Today Date: ' + date_string + '\\n\\n' + system_message + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}""",
    "mistral": """{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}
{%- else %}{%- set loop_messages = messages %}{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('After the optional system message, roles must alternate user/assistant') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {%- if loop.last and system_message is defined %}
            {{- '[INST] ' + system_message + '\\n\\n' + message['content'] + '[/INST]' }}
        {%- else %}{{- '[INST] ' + message['content'] + '[/INST]' }}{%- endif %}
    {%- elif message['role'] == 'assistant' %}{{- ' ' + message['content'] | trim + eos_token }}
    {%- else %}{{- raise_exception('Only user and assistant roles are supported') }}{%- endif %}
{%- endfor %}""",
    "gemma 3": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}{%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}{%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}{%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}{%- set first_user_prefix = '' -%}{%- set loop_messages = messages -%}{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif -%}
    {%- if message['role'] == 'assistant' -%}{%- set role = 'model' -%}
    {%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else '') }}
    {%- if message['content'] is string -%}{{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}{{ raise_exception('Invalid content type') }}{%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}""",
    "phi 3": """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}
{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}
{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}
{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}""",
    "qwen 3, deepseek r1": """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == 'user' and message.content is string
        and not (message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}{%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == 'assistant' %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}{%- set reasoning_content = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) %}
            {{- '<|im_start|>assistant\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content }}
        {%- else %}{{- '<|im_start|>assistant\\n' + content }}{%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}""",
    "smollm3": """{%- set enable_thinking = enable_thinking if enable_thinking is defined else true -%}
{%- set mode = '/think' if enable_thinking else '/no_think' -%}
{%- set custom = '' -%}
{%- if messages[0].role == 'system' -%}
    {%- set system_message = messages[0].content -%}
    {%- if '/no_think' in system_message -%}{%- set mode = '/no_think' -%}
    {%- elif '/think' in system_message -%}{%- set mode = '/think' -%}{%- endif -%}
    {%- set custom = system_message.replace('/no_think', '').replace('/think', '').rstrip() -%}
{%- endif -%}
{{- '<|im_start|>system\\n## Metadata\\n\\nReasoning Mode: ' ~ mode ~ '\\n\\n' ~ custom ~ '<|im_end|>\\n' -}}
{%- for message in messages if message.role != 'system' -%}
    {%- if message.role == 'assistant' and mode == '/no_think' -%}
        {{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n' + message.content.lstrip('\\n') + '<|im_end|>\\n' -}}
    {%- else -%}{{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}""",
    "gpt-oss": """{%- macro render_builtin(names) -%}{%- for name in names | unique | sort -%}
{{- '## ' + name + '\\n\\n' -}}{%- endfor -%}{%- endmacro -%}
{%- macro build_system() -%}
    {{- 'You are a small model.\\nCurrent date: ' + strftime_now('%Y') + '\\n\\n' -}}
    {%- if reasoning_effort is not defined -%}{%- set reasoning_effort = 'medium' -%}{%- endif -%}
    {{- 'Reasoning: ' + reasoning_effort + '\\n\\n' -}}
    {%- if builtin_tools -%}{{- render_builtin(builtin_tools) -}}{%- endif -%}
    {{- '# Valid channels: analysis, commentary, final.' -}}
{%- endmacro -%}
{{- '<|start|>system<|message|>' + build_system() + '<|end|>' -}}
{%- if messages[0].role in ('system', 'developer') -%}
    {{- '<|start|>developer<|message|># Instructions\\n\\n' + messages[0].content + '<|end|>' -}}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}{%- set loop_messages = messages -%}{%- endif -%}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if loop.last and not add_generation_prompt and 'thinking' in message -%}
            {{- '<|start|>assistant<|channel|>analysis<|message|>' + message.thinking + '<|end|>' -}}
        {%- endif -%}
        {{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' -}}
    {%- else -%}{{- '<|start|>' ~ message.role ~ '<|message|>' ~ message.content ~ '<|end|>' -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start|>assistant' -}}{%- endif -%}""",
}
TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "  Who was “Ada”?\n<b>Tell</b> me & {{ me }}. "},
    {"role": "assistant", "content": "A mathematician.\n"},
    {"role": "user", "content": "她会写诗吗？ 🦊"},
    {"role": "assistant", "content": "<think>\nPoems? No.\n</think>\n\nShe wrote programs."},
    {"role": "user", "content": "Why /no_think?"},
]
SYSTEM = {"role": "system", "content": "Be kind. /no_think "}
IN_THE_MIDDLE = "a system prompt in the middle"
CHATS = {
    "one turn": TURNS[:1], "three turns": TURNS, "with a system prompt": [SYSTEM, *TURNS],
    "with reasoning of its own": [*TURNS[:1], {**TURNS[1], "reasoning_content": "Countess."}, *TURNS[2:]],
    "two questions in turn": [TURNS[0], TURNS[2]], IN_THE_MIDDLE: [*TURNS[:2], SYSTEM, *TURNS[2:]],
}  # fmt: skip


def tokenizer_with(template: str) -> PreTrainedTokenizerFast:
    tokenizer = byte_level()
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_rendered_template_equals_that_of_transformers(name: str, chat: list[dict[str, Any]]) -> None:
    tokenizer = tokenizer_with(TEMPLATES[name])
    expected = _outcome(lambda: tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    assert _outcome(lambda: render_chat(TEMPLATES[name], chat, tokenizer.special_tokens_map)) == expected
    raises = name in ("mistral", "gemma 3") and chat in (CHATS["two questions in turn"], CHATS[IN_THE_MIDDLE])
    assert isinstance(expected, tuple) == raises


def _outcome(render: Callable[[], object]) -> object:
    """Return the text, or the kind and words of the error that the template raises."""
    try:
        return render()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name not in ("mistral", "gpt-oss")])
def test_a_conversation_grows_only_at_its_end(name: str) -> None:
    """The prompt of one turn is the beginning of the next one, so that the cache can be reused."""
    tokens = tokenizer_with(TEMPLATES[name]).special_tokens_map
    plain = [{**turn, "content": turn["content"].rpartition("</think>")[2].strip()} for turn in TURNS]
    rendered = [render_chat(TEMPLATES[name], plain[: 2 * turn + 1], tokens) for turn in range(3)]
    for before, after in pairwise(rendered):
        assert after.startswith(before)
