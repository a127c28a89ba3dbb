"""The chat format: special tokens, the template, and its exact twin in Python.

A conversation is the begin token and then, for every message, a role token, the content and the
end-of-turn token. Training text comes from ``render``; ``TEMPLATE`` gives the same text to anyone
who calls ``tokenizer.apply_chat_template``.
"""

from __future__ import annotations

PAD, BOS, EOS, END = "<|pad|>", "<|begin|>", "<|eos|>", "<|end|>"
ROLES = ("system", "user", "assistant")
SPECIAL_TOKENS = [PAD, BOS, EOS, END, *(f"<|{role}|>" for role in ROLES)]
TEMPLATE = (
    "{{- bos_token -}}"
    "{%- for message in messages -%}"
    "{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)

Message = dict[str, str]


def turn(role: str, content: str) -> str:
    """One message as the model reads it."""
    return f"<|{role}|>{content}{END}"


def render(messages: list[Message], add_generation_prompt: bool = False) -> str:
    """A whole conversation as the model reads it."""
    text = BOS + "".join(turn(message["role"], message["content"]) for message in messages)
    return text + "<|assistant|>" * add_generation_prompt
