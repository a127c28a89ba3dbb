"""Tokenizer of all models: byte-level BPE with 2,048 tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chat import BOS, EOS, PAD, SPECIAL_TOKENS, TEMPLATE
from corpus import tokenizer_texts
from lexicon import language as chosen_language

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

VOCABULARY = 2048
LONGEST = {"chinese": 12}
"""Bytes of the longest token, four characters: there are no spaces that would end a word."""
CONTEXT = 2048
TEXTS = 6000


def _pieces() -> Iterator[str]:
    marks = re.compile("|".join(re.escape(mark) for mark in SPECIAL_TOKENS))
    for text in tokenizer_texts(TEXTS):
        yield from (piece for piece in marks.split(text) if piece)


@cache
def learn(language: str) -> Tokenizer:
    """Learn the merges from the corpus in this language; special tokens take the first ids."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        max_token_length=LONGEST.get(language),
    )
    tokenizer.train_from_iterator(_pieces(), trainer)
    return tokenizer


def for_decoder() -> PreTrainedTokenizerFast:
    """The tokenizer as the decoders use it: plain text starts with the begin token."""
    from tokenizers import processors

    tokenizer = _wrap(BOS, TEMPLATE)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, tokenizer.bos_token_id)]
    )
    return tokenizer


def for_encoder_decoder() -> PreTrainedTokenizerFast:
    """The tokenizer as the encoder-decoder uses it: every text closes with the end token."""
    from tokenizers import processors

    tokenizer = _wrap(None, None)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", pair=f"$A $B {EOS}", special_tokens=[(EOS, tokenizer.eos_token_id)]
    )
    return tokenizer


def tokenizer_for(family: str) -> PreTrainedTokenizerFast:
    """The tokenizer in the form that a family of models needs."""
    return for_encoder_decoder() if family == "t5" else for_decoder()


def _wrap(bos: str | None, template: str | None) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(learn(chosen_language()).to_str()),
        pad_token=PAD,
        eos_token=EOS,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
        **({"bos_token": bos} if bos else {}),
    )
    tokenizer.chat_template = template
    return tokenizer


def save(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write the tokenizer's files, the chat template inside its configuration."""
    tokenizer.save_pretrained(folder, save_jinja_files=False)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8")) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
