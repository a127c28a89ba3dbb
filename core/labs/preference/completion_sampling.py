"""Texts drawn from a model, many at once, with the probabilities that they had."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import DynamicCache

from core.arguments import cancel_event_or_new, check_number, check_text
from core.labs.preference.limits import check_max_tokens, check_seed, check_text_count
from core.labs.preference.tokenized_texts import PaddedTexts, end_token_ids, pad_texts, prompt_ids
from core.labs.preference.training_loop import load_source, training_context
from core.models.cache_name import cache_name
from core.plain_values import to_plain_value

if TYPE_CHECKING:
    from core.models.loaded_model import LoadedModel

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0
"""Temperatures: below, scores divided by it are no numbers any more."""


class SampledCompletions(NamedTuple):
    """Texts that were written behind prompts: prompt to the left, answer to the right of one column for all."""

    ids: torch.Tensor
    """[B, P + T]"""
    mask: torch.Tensor
    """[B, P + T]: 1 where a token of prompt or answer stands, the end token included."""
    start: int
    """P: the first column of the answers."""
    ended: torch.Tensor
    """[B]: whether the model ended the text itself."""

    @property
    def answer_mask(self) -> torch.Tensor:
        """[B, T]: where a token was drawn."""
        return self.mask[:, self.start :].bool()

    @property
    def lengths(self) -> torch.Tensor:
        """[B]: tokens drawn, the end token included."""
        return self.answer_mask.sum(1)

    def token_ids(self, row: int) -> tuple[list[int], list[int]]:
        """Prompt and answer of one row; the end token belongs to neither."""
        before = self.ids[row, : self.start][self.mask[row, : self.start].bool()].tolist()
        after = self.ids[row, self.start :][self.answer_mask[row]].tolist()
        return before, after[:-1] if self.ended[row] else after


@torch.no_grad()
def sample_batch(
    network: Any,
    prompts: Sequence[Sequence[int]],
    stop_ids: frozenset[int],
    max_tokens: int,
    generator: torch.Generator,
    cancel: threading.Event,
    temperature: float = 1.0,
) -> SampledCompletions | None:
    """A text behind each prompt, by plain sampling; None when it was cancelled before all had ended."""
    batch = pad_texts(prompts, left=True)
    cache, ids, mask = DynamicCache(), batch.ids, batch.mask
    alive = torch.ones(len(ids), dtype=torch.bool)
    end_ids = torch.tensor(sorted(stop_ids))
    new = PaddedTexts(ids, mask)
    for _ in range(max_tokens):
        if cancel.is_set():
            return None
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -new.ids.shape[1] :]
        out = network(
            input_ids=new.ids, attention_mask=mask, position_ids=places, use_cache=True, logits_to_keep=1,
            **{cache_name(network): cache},
        )  # fmt: skip
        token = torch.multinomial((out.logits[:, -1] / temperature).softmax(-1), 1, generator=generator)
        here = alive.long()[:, None]
        token = token * here
        ids, mask = torch.cat([ids, token], 1), torch.cat([mask, here], 1)
        new = PaddedTexts(token, here)
        alive &= ~torch.isin(token[:, 0], end_ids)
        if not alive.any():
            break
    return SampledCompletions(ids, mask, len(batch.ids[0]), ~alive)


def answer_logits(network: Any, sampled: SampledCompletions, row_indices: torch.Tensor | None = None) -> torch.Tensor:
    """[B, T, V]: the scores from which each token of the answers was drawn, of all rows or of these."""
    chosen = slice(None) if row_indices is None else row_indices
    ids, mask = sampled.ids[chosen], sampled.mask[chosen]
    places = (mask.cumsum(1) - 1).clamp(min=0)
    answers = ids.shape[1] - sampled.start
    out = network(
        input_ids=ids, attention_mask=mask, position_ids=places, use_cache=False, logits_to_keep=answers + 1
    )  # fmt: skip
    logits: torch.Tensor = out.logits[:, -answers - 1 : -1].float()
    return logits


def completions(
    model: LoadedModel | str,
    prompt: str,
    count: int,
    *,
    longest: int = 90,
    temperature: float = 1.0,
    seed: int = 0,
    cancel: threading.Event | None = None,
) -> list[str]:
    """So many different completions of `prompt` by plain sampling, fewer where the model is sure of what it writes;
    none when it was cancelled. Raises ParameterError, PreferenceError, ModelError."""
    cancel = cancel_event_or_new(cancel)
    check_text("prompt", prompt)
    count, longest, temperature, seed = to_plain_value((count, longest, temperature, seed))
    check_text_count("count", count)
    check_max_tokens(longest)
    check_number("temperature", temperature, MIN_TEMPERATURE, MAX_TEMPERATURE)
    check_seed(seed)
    source = load_source(model)
    with training_context(source):
        ids = [prompt_ids(source, prompt)] * (2 * count)
        generator = torch.Generator().manual_seed(seed)
        drawn = sample_batch(source.model, ids, end_token_ids(source), longest, generator, cancel, temperature)
        if drawn is None:
            return []
        texts = (source.tokenizer.decode(drawn.token_ids(row)[1]).strip() for row in range(len(drawn.ids)))
        return [text for text in dict.fromkeys(texts) if text][:count]
