"""The listener's tokenizer and processor: byte-level BPE of 640 tokens in Whisper's own form."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from listener.sentences import draw_sentence
from listener.sounds import SECONDS

if TYPE_CHECKING:
    from transformers import WhisperFeatureExtractor, WhisperTokenizer

TOKENS = 640
END, START, NO_TIMES = "<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"
TEXTS = 6000
BANDS, HOP, WINDOW = 80, 400, 512  # samples: a frame each 25 ms, a position of the encoder each 50 ms


@cache
def tokenizer() -> WhisperTokenizer:
    """Learn the merges from sentences of the grammar; the marks take the last ids, as in Whisper."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import WhisperTokenizer

    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS - 3, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    rng = random.Random("words")
    learned.train_from_iterator((f" {draw_sentence(rng, False)}" for _ in range(TEXTS)), trainer)
    model = json.loads(learned.to_str())["model"]
    vocabulary = model["vocab"] | {mark: TOKENS - 3 + place for place, mark in enumerate((END, START, NO_TIMES))}
    made = WhisperTokenizer(vocab=vocabulary, merges=[tuple(pair) for pair in model["merges"]], pad_token=END)
    made.add_special_tokens({"additional_special_tokens": [START, NO_TIMES]})
    made.set_prefix_tokens()
    return made


@cache
def extractor() -> WhisperFeatureExtractor:
    """Log-mel spectrograms of all the seconds heard at once."""
    from transformers import WhisperFeatureExtractor

    return WhisperFeatureExtractor(feature_size=BANDS, hop_length=HOP, n_fft=WINDOW, chunk_length=SECONDS)


def save(folder: Path) -> None:
    """Write the tokenizer's and the extractor's files."""
    tokenizer().save_pretrained(folder)
    extractor().save_pretrained(folder)
