"""Vocabularies that show where a text is split, and the smallest Llama that llama.cpp loads with them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from decodescope.core.models.gguf.block_formats import to_blocks
from decodescope.core.models.gguf.file_writer import TensorEntry, write_file
from decodescope.core.models.gguf.tokenizer_samples import TEXTS

WIDTH = 32
SPECIAL = {"<unk>": 2, "<s>": 3, "</s>": 3, "<|im_start|>": 3, "<|im_end|>": 3, "<tool>": 4}
"""Kinds of the special tokens, which come first."""
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


class Vocabulary(NamedTuple):
    """Tokens, their kinds, and merges as GGUF writes them."""

    words: list[str]
    kinds: list[int]
    merges: list[str]

    @property
    def scores(self) -> list[float]:
        """Scores that make SentencePiece merge in the order of the list."""
        ranks: dict[str, int] = {}
        for rank, merge in enumerate(self.merges):
            ranks.setdefault(merge.replace(" ", "", 1), rank)
        return [-float(ranks.get(word, 10**5)) for word in self.words]


def _trained(backend: Tokenizer, special: list[str], alphabet: list[str], size: int) -> tuple[list[str], list[str]]:
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=1, show_progress=False, special_tokens=special, initial_alphabet=alphabet,
        limit_alphabet=900, max_token_length=40,
    )  # fmt: skip
    backend.train_from_iterator([text.replace("\0", "") for text in TEXTS], trainer)
    model = json.loads(backend.to_str())["model"]
    words = [word for word, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    return words, [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]


@cache
def byte_level() -> Vocabulary:
    """Return bytes merged across all words, so that every split of a text changes its tokens."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words, merges = _trained(backend, list(SPECIAL), sorted(pre_tokenizers.ByteLevel.alphabet()), 6000)
    return Vocabulary(words, [*SPECIAL.values(), *[1] * (len(words) - len(SPECIAL))], merges)


@cache
def marked() -> Vocabulary:
    """Return characters merged across all words, with ▁ for spaces and tokens for bytes."""
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^\n]+|\n+"), "isolated")
    words, merges = _trained(backend, [*SPECIAL, *_BYTES], ["▁"], 4000)
    return Vocabulary(words, [*SPECIAL.values(), *[6] * 256, *[1] * (len(words) - len(SPECIAL) - 256)], merges)


def rwkv_metadata() -> dict[str, Any]:
    """Return all bytes and parts of the texts, escaped as in RWKV's vocabulary."""
    parts = {
        text.encode()[start : start + size] for text in TEXTS for start in range(0, 60, 3) for size in (2, 3, 5, 9)
    }
    tokens = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *sorted(parts - {b""})])
    words = ["<s>", *("".join(_escaped(byte) for byte in token) for token in tokens if token != b"<s>")]
    return {
        "tokenizer.ggml.model": "rwkv", "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [3, *[1] * (len(words) - 1)], "tokenizer.ggml.eos_token_id": 0,
    }  # fmt: skip


def plamo_metadata() -> dict[str, Any]:
    """Return parts of the texts with scores by their lengths, and all bytes."""
    numbers = random.Random(7)
    clean = [text.replace("\0", "") for text in TEXTS]
    parts = {text[start : start + size] for text in clean for start in range(0, 40, 2) for size in (1, 2, 3, 5, 8)}
    pieces = sorted(parts - {"", *SPECIAL, *_BYTES})
    words = [*SPECIAL, *_BYTES, *pieces]
    scores = [*[0.0] * len(SPECIAL), *[0.0] * 256, *(-numbers.random() * 12 for _ in pieces)]
    kinds = [*SPECIAL.values(), *[6] * 256, *[1] * len(pieces)]
    return {
        "tokenizer.ggml.model": "plamo2", "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": scores,
    }  # fmt: skip


def _escaped(byte: int) -> str:
    known = {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\", 39: "\\'"}
    return known.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")


def bpe_metadata(vocabulary: Vocabulary, rule: str | None, model: str = "gpt2") -> dict[str, Any]:
    """Return the metadata of a BPE vocabulary; `rule`: None for a file without `tokenizer.ggml.pre`."""
    found: dict[str, Any] = {
        "tokenizer.ggml.model": model, "tokenizer.ggml.tokens": vocabulary.words,
        "tokenizer.ggml.token_type": vocabulary.kinds, "tokenizer.ggml.merges": vocabulary.merges,
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
    }  # fmt: skip
    return found if rule is None else {**found, "tokenizer.ggml.pre": rule}


def sentencepiece_metadata(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the metadata of a SentencePiece vocabulary, without special tokens and flags."""
    return {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": vocabulary.words,
        "tokenizer.ggml.token_type": vocabulary.kinds, "tokenizer.ggml.scores": vocabulary.scores,
    }  # fmt: skip


def write(path: Path, metadata: Mapping[str, Any], size: int | None = None) -> Path:
    """Write a Llama with one layer and a vocabulary; `size`: rows of its embedding, one for each token if None."""
    rows = size if size is not None else len(metadata["tokenizer.ggml.tokens"])
    shape = {
        "context_length": 256, "embedding_length": WIDTH, "block_count": 1, "feed_forward_length": WIDTH,
        "attention.head_count": 2, "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": WIDTH // 2, "rope.freq_base": 10000.0, "vocab_size": rows,
    }  # fmt: skip
    header = {"general.architecture": "llama", **{f"llama.{key}": value for key, value in shape.items()}, **metadata}
    names = {
        "token_embd": (rows, WIDTH),
        "output_norm": (WIDTH,),
        "blk.0.attn_norm": (WIDTH,),
        "blk.0.ffn_norm": (WIDTH,),
    }
    names |= {f"blk.0.{part}": (WIDTH, WIDTH) for part in ("attn_q", "attn_k", "attn_v", "attn_output")}
    names |= {f"blk.0.{part}": (WIDTH, WIDTH) for part in ("ffn_gate", "ffn_up", "ffn_down")}
    generator = torch.Generator().manual_seed(0)
    entries = []
    for name, sizes in names.items():
        values = torch.ones(sizes) if len(sizes) == 1 else torch.randn(sizes, generator=generator) / 5
        entries.append(TensorEntry(f"{name}.weight", sizes, "F32", to_blocks(values, "F32")))
    with path.open("wb") as stream:
        write_file(stream, header, entries)
    return path
