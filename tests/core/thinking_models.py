"""Tiny random models whose tokenizer and chat template have marks of thinking."""

from __future__ import annotations

import copy
from functools import cache

from tokenizers import AddedToken

from decodescope import core
from tests.core import spelling_models, tiny

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<bot>{% if m.reasoning_content %}<think>"
    "{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}</s>{% else %}<user>{{ m.content }}</s>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<bot><think>{% endif %}"
)


@cache
def model(seed: int = 0, *, are_tokens: bool = True, scale: float = 2.0) -> core.LoadedModel:
    """A model that thinks; its marks are single tokens, or else spelled with several. Do not change it."""
    tokenizer = copy.deepcopy(spelling_models.tokenizer("byte level"))
    names = ["<bot>", "<user>", *(["<think>", "</think>"] if are_tokens else [])]
    tokenizer.add_tokens([AddedToken(name, special=name in ("<bot>", "<user>"), normalized=False) for name in names])
    tokenizer.chat_template = TEMPLATE
    network = tiny.make("llama", seed=seed, scale=scale, vocab_size=len(tokenizer)).model
    return core.wrap(network, tokenizer, name=f"thinking-{seed}-{are_tokens}")
