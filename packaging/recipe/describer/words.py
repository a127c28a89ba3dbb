"""The describer's tokenizer and processor: one token a word, in the form GIT uses (BERT's)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from describer.drawing import SIDE
from describer.scenes import vocabulary

if TYPE_CHECKING:
    from transformers import BertTokenizer, CLIPImageProcessorPil

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, BEGIN, END = 0, 2, 3


@cache
def tokenizer() -> BertTokenizer:
    """Marks first, then every word of the captions."""
    from transformers import BertTokenizer

    words = {word: number for number, word in enumerate((*MARKS, *vocabulary()))}
    return BertTokenizer(vocab=words, do_lower_case=True)


@cache
def image_processor() -> CLIPImageProcessorPil:
    """Any picture as values from -1 to 1, its shorter side 96 pixels, the middle kept."""
    from transformers import CLIPImageProcessorPil

    half = [0.5, 0.5, 0.5]
    size = {"height": SIDE, "width": SIDE}
    return CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=size, image_mean=half, image_std=half)


def save(folder: Path) -> None:
    """Write the files of the tokenizer and of the image processor."""
    tokenizer().save_pretrained(folder)
    image_processor().save_pretrained(folder)
