"""Tiny random models of many architectures, created without a download."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import transformers as t

from decodescope import core

VOCABULARY = 61
_SMALL = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_SOURCES = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 3}


def _gpt2(**more: Any) -> Any:
    config = t.GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=4, n_head=4, n_positions=256, bos_token_id=1, eos_token_id=2, **more
    )
    return t.GPT2LMHeadModel(config)


def _llama(**more: Any) -> Any:
    return t.LlamaForCausalLM(t.LlamaConfig(**{**_SMALL, **more}))


def _qwen3(**more: Any) -> Any:
    return t.Qwen3ForCausalLM(t.Qwen3Config(**{**_SMALL, "head_dim": 8, **more}))


def _mistral(**more: Any) -> Any:
    return t.MistralForCausalLM(t.MistralConfig(**{**_SMALL, "sliding_window": 8, **more}))


def _gemma2(**more: Any) -> Any:
    return t.Gemma2ForCausalLM(t.Gemma2Config(**{**_SMALL, "head_dim": 8, "sliding_window": 8, **more}))


def _gemma3(**more: Any) -> Any:
    config = t.Gemma3TextConfig(**{**_SMALL, "head_dim": 8, "sliding_window": 8, "sliding_window_pattern": 2, **more})
    return t.Gemma3ForCausalLM(config)


def _t5(**more: Any) -> Any:
    config = t.T5Config(
        d_model=32, d_kv=8, d_ff=64, num_layers=3, num_heads=4, **{"vocab_size": VOCABULARY, **_SOURCES, **more}
    )
    return t.T5ForConditionalGeneration(config)


def _bart(**more: Any) -> Any:
    config = t.BartConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=256,
        forced_eos_token_id=None, **{**_SOURCES, **more},
    )  # fmt: skip
    return t.BartForConditionalGeneration(config)


def _mamba(**more: Any) -> Any:
    config = t.MambaConfig(
        hidden_size=32, num_hidden_layers=3, state_size=4,
        **{"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, **more},
    )  # fmt: skip
    return t.MambaForCausalLM(config)


_MAKERS = {
    "gpt2": _gpt2, "llama": _llama, "qwen3": _qwen3, "mistral": _mistral, "gemma2": _gemma2, "gemma3": _gemma3,
    "t5": _t5, "bart": _bart, "mamba": _mamba,
}  # fmt: skip
ALL = tuple(_MAKERS)
DECODERS = ("gpt2", "llama", "qwen3", "mistral", "gemma2", "gemma3")
ENCODER_DECODERS = ("t5", "bart")


@torch.random.fork_rng()  # keeps the state of the global random generator
def make(kind: str, seed: int = 0, scale: float = 6.0, **more: Any) -> core.LoadedModel:
    """A fresh tiny model; its logits are sharpened by `scale` so that argmax is far from a tie."""
    torch.manual_seed(seed)
    network = _MAKERS[kind](**more).float().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale if kind not in ENCODER_DECODERS else scale / 2)
    return core.wrap(network, name=f"tiny-{kind}")


@cache
def shared(kind: str) -> core.LoadedModel:
    """The same, made once; do not change it."""
    return make(kind)


def prompt(length: int = 12, seed: int = 0) -> list[int]:
    """Token ids that are not special."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, VOCABULARY, (length,), generator=generator).tolist()


def reference(model: core.LoadedModel, ids: list[int], config: Any, **more: Any) -> Any:
    """transformers' own generate on the same model, as lists of new tokens."""
    tensor = torch.tensor([ids])
    more.setdefault("attention_mask", torch.ones_like(tensor))
    out = model.model.generate(tensor, generation_config=config, **more)
    start = 1 if model.is_encoder_decoder else len(ids)
    return [row[start:].tolist() for row in out]
