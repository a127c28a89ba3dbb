"""What each bundled model is: its shape, its corpus and its training budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import bpe

BOS, EOS, PAD, END = 1, 2, 0, 3


@dataclass(frozen=True)
class Shape:
    """A model to train: ``steps`` fix the training in tokens, not in hours; ``hills`` are lower ones after it.

    ``batch`` counts the tokens of a step; with sounds and pictures it counts those.
    """

    name: str
    family: str
    title: str
    width: int
    layers: int
    heads: int
    inner: int
    steps: int
    batch: int = 2048
    rate: float = 3e-3
    hills: tuple[int, ...] = ()
    decay: float = 0.4
    seed: int = 0
    second_mix: bool = False
    teacher: str | None = None
    start_from: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def all_steps(self) -> int:
        """The steps of the first training and of all lower hills after it."""
        return self.steps + sum(self.hills)

    def hill_at(self, step: int) -> tuple[int, int]:
        """Which hill a step belongs to (0 is the first training), and its number within it."""
        hill = 0
        for length in (self.steps, *self.hills[:-1]) if self.hills else ():
            if step < length:
                break
            hill, step = hill + 1, step - length
        return hill, step


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("storyteller", "llama", "The default storyteller", 192, 12, 6, 512, steps=2700, hills=(500, 450)),
        Shape(
            "summarizer",
            "t5",
            "Summaries and French",
            192,
            4,
            6,
            512,
            steps=3400,
            hills=(1500, 500, 300),
            decay=0.45,
            extra={"decoder_layers": 2},
        ),
        Shape("storyteller-draft", "llama", "A small draft model", 96, 3, 3, 256, steps=3000, teacher="storyteller"),
        Shape(
            "storyteller-draft-b", "llama", "A second draft model", 96, 3, 3, 256, steps=1200, seed=7, second_mix=True
        ),
        Shape(
            "storyteller-window",
            "mistral",
            "The storyteller with a window of 64",
            192,
            12,
            6,
            512,
            steps=300,
            rate=1e-3,
            start_from="storyteller",
            extra={"sliding_window": 64},
        ),
        Shape(
            "storyteller-mamba",
            "mamba",
            "A storyteller with a constant-size state",
            160,
            6,
            1,
            320,
            steps=1500,
            extra={"state_size": 8},
        ),
        Shape(
            "listener",
            "whisper",
            "Writes down spoken numbers, times and simple commands",
            128,
            4,
            4,
            512,
            steps=900,
            batch=24,
            extra={"decoder_layers": 3},
        ),
        Shape(
            "describer",
            "git",
            "Puts drawn scenes of shapes and colours into words",
            128,
            3,
            4,
            512,
            steps=900,
            batch=32,
            extra={"decoder_layers": 3},
        ),
    )
}


def _common(shape: Shape) -> dict[str, Any]:
    return {
        "vocab_size": bpe.VOCABULARY,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "tie_word_embeddings": True,
    }


def _attention(shape: Shape) -> dict[str, Any]:
    return {
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "max_position_embeddings": bpe.CONTEXT,
        "rms_norm_eps": 1e-5,
        **shape.extra,
    }


def _t5(shape: Shape) -> dict[str, Any]:
    common = {**_common(shape), "decoder_start_token_id": PAD}
    common.pop("bos_token_id")
    return common | {
        "d_model": shape.width,
        "d_kv": shape.width // shape.heads,
        "d_ff": shape.inner,
        "num_layers": shape.layers,
        "num_decoder_layers": shape.extra["decoder_layers"],
        "num_heads": shape.heads,
        "dropout_rate": 0.0,
        "feed_forward_proj": "relu",
        "n_positions": bpe.CONTEXT,
    }


def new_model(shape: Shape) -> Any:
    """A model of this shape with fresh weights, drawn from the shape's seed."""
    import torch
    import transformers as hf

    torch.manual_seed(shape.seed)
    if shape.family == "llama":
        return hf.LlamaForCausalLM(hf.LlamaConfig(**_common(shape), **_attention(shape)))
    if shape.family == "mistral":
        return hf.MistralForCausalLM(hf.MistralConfig(**_common(shape), **_attention(shape)))
    if shape.family == "mamba":
        sizes = {
            "hidden_size": shape.width,
            "num_hidden_layers": shape.layers,
            "intermediate_size": shape.inner,
            **shape.extra,
        }
        return hf.MambaForCausalLM(hf.MambaConfig(**_common(shape), **sizes))
    if shape.family == "whisper":
        from listener.model import new_listener

        return new_listener(shape)
    if shape.family == "git":
        from describer.model import new_describer

        return new_describer(shape)
    return hf.T5ForConditionalGeneration(hf.T5Config(**_t5(shape)))


DEFAULT_NAMES = ("storyteller", "summarizer", "storyteller-draft")
