"""Tiny models whose tokens spell text, in the three ways that tokenizers use."""

from __future__ import annotations

import copy
from functools import cache

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from decodescope import core
from tests.core import tiny

_SPECIAL = ["<pad>", "<s>", "</s>"]
_LETTERS = [chr(code) for code in range(0x21, 0x7F)]
_MORE = ["ab", "ba", "abc", "bb", '":', '{"', '",', '"}', "cat", "dog", "na", "me", "name", "12", "red"]
KINDS = ("byte level", "pieces", "words")


@cache
def tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """Letters, a few words, spaces: `byte level` as GPT-2's (Ġ), `pieces` as SentencePiece's (▁, bytes for the rest),
    `words` as WordPiece's (##)."""
    made = {"byte level": _byte_level, "pieces": _pieces, "words": _words}[kind]()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", clean_up_tokenization_spaces=False
    )


@cache
def model(kind: str = "byte level", architecture: str = "llama", seed: int = 0) -> core.LoadedModel:
    """A random network with that tokenizer; do not change it."""
    spelled = tokenizer(kind)
    network = tiny.make(architecture, seed=seed, scale=2.0, vocab_size=len(spelled) + 3).model  # some ids have no token
    return core.wrap(network, spelled, name=f"spelled-{kind}-{architecture}-{seed}")


@cache
def similar_model(kind: str = "byte level") -> core.LoadedModel:
    """One that agrees with `model(kind)` often, but not always."""
    import torch

    network = copy.deepcopy(model(kind).model)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * parameter.std() * 0.05)
    return core.wrap(network, tokenizer(kind), name=f"near-{kind}")


def _byte_level() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*_SPECIAL, *alphabet, *_MORE, *("Ġ" + word for word in ("a", "cat", "dog", '"', "red"))]
    made = Tokenizer(models.BPE(_numbered(words), []))
    made.decoder = decoders.ByteLevel()
    return made


def _pieces() -> Tokenizer:
    words = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *_LETTERS, *_MORE, "▁a", "▁cat", "▁dog", '▁"']
    made = Tokenizer(models.BPE(_numbered(words), [], byte_fallback=True))
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


def _words() -> Tokenizer:
    words = [*_SPECIAL, "[UNK]", *_LETTERS, *_MORE, *("##" + word for word in [*_LETTERS, *_MORE])]
    made = Tokenizer(models.WordPiece(_numbered(words), unk_token="[UNK]"))
    made.decoder = decoders.WordPiece(cleanup=False)
    return made


def _numbered(words: list[str]) -> dict[str, int]:
    return {word: place for place, word in enumerate(dict.fromkeys(words))}
