"""One token at a time, against transformers' generate, and what tracing costs."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from decodescope import core
from tests.benchmarks.timing import speed_ratio

PROMPT = "Once upon a time, there was a little fox named Mia. She lived in a den under the hill."


_SHAPES = {97: (640, 1728, 12), 400: (1280, 3456, 16)}
"""By millions of weights: width, that of the feed-forward half, layers."""


def random_llama(millions: int = 97) -> core.LoadedModel:
    """Create a random Llama of about the given number of millions of parameters (from `_SHAPES`)."""
    torch.manual_seed(0)
    width, wide, layers = _SHAPES[millions]
    config = LlamaConfig(
        vocab_size=32_000, hidden_size=width, intermediate_size=wide, num_hidden_layers=layers,
        num_attention_heads=width // 64, num_key_value_heads=width // 64, max_position_embeddings=1024,
        tie_word_embeddings=False, bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return core.wrap(LlamaForCausalLM(config), name=f"random-{millions}M")


def decode_ratio(model: core.LoadedModel, ids: list[int], tokens: int, rounds: int) -> dict[str, float]:
    """Tokens/s with top-10 tracing ÷ generate's, and tracing on ÷ off."""
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
    tensor = torch.tensor([ids])

    def traced() -> Any:
        return core.run(model, core.Request(ids, config, top_n=10))

    def plain() -> Any:
        return core.run(model, core.Request(ids, config, top_n=0))

    def generate() -> Any:
        return model.model.generate(tensor, generation_config=config, attention_mask=torch.ones_like(tensor))

    return {"vs_generate": speed_ratio(traced, generate, rounds), "traced_vs_plain": speed_ratio(traced, plain, rounds)}


def measure(quick: bool = False) -> dict[str, float]:
    """All ratios of this module; higher is better."""
    torch.set_num_threads(1)  # as the program does for models this small
    story = core.load("storyteller")
    ids = story.tokenizer(PROMPT)["input_ids"]
    small = decode_ratio(story, ids, 60 if quick else 120, 3 if quick else 31)  # pairs scatter by 0.06
    torch.set_num_threads(2)
    large = decode_ratio(random_llama(), list(range(5, 25)), 12 if quick else 24, 3 if quick else 5)
    return {
        "decode ÷ generate, storyteller": small["vs_generate"],
        "tracing on ÷ off, storyteller": small["traced_vs_plain"],
        "decode ÷ generate, 97 M Llama": large["vs_generate"],
        "tracing on ÷ off, 97 M Llama": large["traced_vs_plain"],
    }
