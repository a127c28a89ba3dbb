"""The scores of every place of a text that is there already, from as few passes as the model and memory allow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import torch

from core import caches
from core.caches.tensors.continuation_probe import PROVEN_ARCHITECTURES, are_close, memory_kind, probe_text
from core.decoding.forward.forward_pass import Forward
from core.decoding.given_text import GivenText
from core.decoding.speculation.tree_support import supports_drafts
from core.device_memory import is_out_of_memory
from core.models.loaded_model import LoadedModel

SCORING_CACHE = "dynamic"
"""What a text is read into: the pieces of a long one are read behind each other."""
MAX_PASS_LOGITS = 2**26
"""Numbers that the logits of one pass may have (256 MiB in float32)."""
MAX_STATS_LOGITS = 2**22
"""Numbers that are turned into figures at a time: some ten tensors of that size are made on the way."""


class TextChunks(NamedTuple):
    """How much of a text goes at once through the model, and how much of that is turned into figures."""

    tokens_per_pass: int
    tokens_per_stats_batch: int

    def minimum(self, other: TextChunks) -> TextChunks:
        """What both can bear."""
        return TextChunks(*map(min, self, other))


class FullTextScores:
    """A text under the eyes of a model: `logits()` gives the scores from behind its beginning on, place by place."""

    def __init__(self, model: LoadedModel, given: GivenText) -> None:
        self._model, self._start = model, len(given.start)
        self._ids = torch.tensor([given.decoder_ids], device=model.device)
        self._source = torch.tensor([given.prompt], device=model.device)
        self.forward = self._build_forward()

    def logits(self, chunks: TextChunks, cancel: threading.Event) -> Iterator[torch.Tensor]:
        """Float32 logits [n, V] of the next n places, until the text or the patience ends.

        Read one by one, the beginning still goes at once, as a run reads its prompt.
        """
        size, length, begin = chunks.tokens_per_pass, self._ids.shape[1], 0
        while begin < length and not cancel.is_set():
            end = begin + (self._start if size == 1 and not begin else size)
            logits = self.forward(self._ids[:, begin:end], keep=0).logits[0]
            unscored = max(self._start - 1 - begin, 0)
            scored = logits[-1:] if size == 1 else logits[unscored:]
            for place in range(0, len(scored), chunks.tokens_per_stats_batch):
                yield scored[place : place + chunks.tokens_per_stats_batch]
            begin = end

    def max_chunks(self) -> TextChunks:
        """What model and memory can bear."""
        return TextChunks(self._max_tokens_per_pass(), max(1, MAX_STATS_LOGITS // self._model.vocabulary))

    def _max_tokens_per_pass(self) -> int:
        """All of them where logits take little; a piece behind the other for models that read on as they read at once;
        one by one for those whose whole pass is something else than what they write by."""
        model, length = self._model, self._ids.shape[1]
        if not supports_full_pass(model):
            return 1
        piece = max(1, MAX_PASS_LOGITS // model.vocabulary)
        goes_on = length > piece and not model.is_recurrent and memory_kind(model) == "kept" and supports_drafts(model)
        return piece if goes_on else max(1, length)

    def _build_forward(self) -> Forward:
        cache = caches.registry[SCORING_CACHE].build(self._model, self._ids.shape[1], {})
        forward = Forward(self._model, cache)
        if self._model.is_encoder_decoder:
            forward.encode(self._source)
        return forward


def supports_full_pass(model: LoadedModel) -> bool:
    """Whether one pass over a text scores its tokens as passes one by one do; tried once where it is not known."""
    if model.model.config.model_type in PROVEN_ARCHITECTURES:
        return True
    if "reads_at_once" not in model.remembered:
        model.remembered["reads_at_once"] = _test_full_pass(model)
    return bool(model.remembered["reads_at_once"])


@torch.inference_mode()
def _test_full_pass(model: LoadedModel) -> bool:
    text = probe_text(model)
    given = GivenText(text, text[:1], [*text[1:], text[0]])
    whole, steps = FullTextScores(model, given).forward, FullTextScores(model, given).forward
    row = torch.tensor([text], device=model.device)
    try:
        at_once = whole(row, keep=0).logits
        one_by_one = torch.cat([steps(row[:, place : place + 1]).logits for place in range(len(text))], dim=1)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
    return at_once.shape == one_by_one.shape and are_close(model, at_once, one_by_one)
