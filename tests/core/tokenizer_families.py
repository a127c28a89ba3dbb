"""Small tokenizers of every family, made here: their decoders are those of real models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

_CORPUS = ("the cat sat on the mat, naïve café 日本語 text", "ing ed un hello world 你好 мир", "a b c d e f abcdef") * 4
ORDINARY = ("<b>", "<｜tool▁calls▁begin｜>", "日é")
"""Added tokens that are part of the text."""
SPECIAL = "<|im_end|>"


def _byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=340, show_progress=False, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"]
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def _sentencepiece(strips: bool) -> Tokenizer:
    words = [
        "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)),
        *"▁ ▁the ▁cat e t h 日 本 ▁▁ ▁a 👩 ( cat".split(" "), "\ufffd", "\n",
    ]  # fmt: skip
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if strips else [])])
    return tokenizer


def _wordpiece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(prefix="##")
    trainer = trainers.WordPieceTrainer(vocab_size=120, show_progress=False, special_tokens=["[UNK]", "[SEP]"])
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def _unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, show_progress=False, special_tokens=["<unk>", "</s>"], unk_token="<unk>"
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def _suffixed() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Whitespace(), decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=160, show_progress=False, end_of_word_suffix="</w>", special_tokens=["<unk>"]
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def _wrapped(tokenizer: Tokenizer) -> Any:
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in ORDINARY])
    tokenizer.add_special_tokens([SPECIAL])  # known to the decoder alone, as with gpt-oss and Llama 3
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)


def _byt5() -> Any:
    tokenizer = ByT5Tokenizer()
    tokenizer.add_tokens(list(ORDINARY))
    return tokenizer


FAMILIES: dict[str, Callable[[], Any]] = {
    "byte level": lambda: _wrapped(_byte_level()),
    "sentencepiece": lambda: _wrapped(_sentencepiece(strips=True)),
    "sentencepiece without prefix": lambda: _wrapped(_sentencepiece(strips=False)),
    "wordpiece": lambda: _wrapped(_wordpiece()),
    "unigram": lambda: _wrapped(_unigram()),
    "suffix": lambda: _wrapped(_suffixed()),
    "byt5": _byt5,
}


def decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    """The reference: what the tokenizer makes of all ids at once."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))
