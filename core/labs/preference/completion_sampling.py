"""Sample completions from a model, and measure the best of n."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import DynamicCache

from decodescope.core.checks.arguments import (
    cancel_event_or_new,
    check_integer,
    check_iterable,
    check_number,
    check_text,
)
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.labs.arguments import check_lab_object
from decodescope.core.labs.preference.events import BestOf
from decodescope.core.labs.preference.reward_model import RewardModel
from decodescope.core.labs.preference.tokenized_texts import PaddedTexts, end_token_ids, pad_texts, prompt_ids
from decodescope.core.labs.preference.training_arguments import check_max_tokens, check_seed, check_text_count
from decodescope.core.labs.preference.training_loop import load_source, training_context
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.text_decoder import cache_name
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0
"""Range of temperatures; dividing logits by smaller ones gives no finite numbers."""


class SampledCompletions(NamedTuple):
    """Texts sampled after prompts: prompts are left-padded, so that all answers start at the same column."""

    ids: torch.Tensor
    """[B, P + T]"""
    mask: torch.Tensor
    """[B, P + T]: 1 for tokens of the prompt or the answer, including the end token."""
    start: int
    """P: the first column of the answers."""
    ended: torch.Tensor
    """[B]: whether the text ended with an end token."""

    @property
    def answer_mask(self) -> torch.Tensor:
        """[B, T]: where a token was sampled."""
        return self.mask[:, self.start :].bool()

    @property
    def lengths(self) -> torch.Tensor:
        """[B]: number of sampled tokens, including the end token."""
        return self.answer_mask.sum(1)

    def token_ids(self, row: int) -> tuple[list[int], list[int]]:
        """Return the ids of the prompt and the answer of one row, both without the end token."""
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
    """Sample a text after each prompt; return None if cancelled before all have ended."""
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
    """Return the logits [B, T, V] from which the answers' tokens were sampled, for all rows or those given."""
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
    """Return up to `count` distinct completions of `prompt` by plain sampling; fewer if the model is very certain.

    Returns none if cancelled. Raises ParameterError, PreferenceError, ModelError.
    """
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


COUNTS = (1, 2, 4, 8, 16)
MAX_COUNT = 1_000_000


def kl_bound(n: int) -> float:
    """Return ln n − (n − 1)/n nats. Raises ParameterError."""
    n = to_plain_value(n)
    check_integer("n", n, 1, MAX_COUNT)
    return math.log(n) - (n - 1) / n


def best_of(
    model: LoadedModel | str,
    judge: RewardModel,
    prompt: str,
    *,
    counts: Sequence[int] = COUNTS,
    texts: int = 64,
    longest: int = 90,
    seed: int = 0,
    cancel: threading.Event | None = None,
) -> Iterator[BestOf]:
    """Measure the best of n texts after `prompt` for each n of `counts`, estimated from `texts` samples drawn once.

    Raises ParameterError, PreferenceError, ModelError.
    """
    cancel = cancel_event_or_new(cancel)
    check_lab_object("judge", judge, RewardModel)
    check_text("prompt", prompt)
    counts = checked_counts(counts)
    texts, longest, seed = to_plain_value((texts, longest, seed))
    check_text_count("texts", texts)
    check_max_tokens(longest)
    check_seed(seed)
    source = load_source(model)
    with training_context(source):
        ids = [prompt_ids(source, prompt)] * texts
        generator = torch.Generator().manual_seed(seed)
        drawn = sample_batch(source.model, ids, end_token_ids(source), longest, generator, cancel)
        if drawn is None:
            return
        written = [drawn.token_ids(row) for row in range(texts)]
        rewards = judge.score([[*before, *after] for before, after in written])
        groups = _group_texts(rewards, [tuple(after) for _, after in written])
        for n in counts:
            yield BestOf(n, *expected_best(groups, n), texts)


def checked_counts(counts: Iterable[int]) -> list[int]:
    """Return the checked numbers of texts to choose from. Raises ParameterError."""
    check_iterable("counts", counts, tr("Pass a list of whole numbers."))
    found: list[int] = to_plain_value(list(counts))
    for n in found:
        check_integer("counts", n, 1, MAX_COUNT)
    return found


def _group_texts(rewards: Sequence[float], completions: Sequence[tuple[int, ...]]) -> list[tuple[float, float]]:
    """Return (reward, fraction) of each distinct text, the worst first."""
    count: dict[tuple[float, tuple[int, ...]], int] = {}
    for one in zip(rewards, completions, strict=True):
        count[one] = count.get(one, 0) + 1
    return [(reward, number / len(rewards)) for (reward, _), number in sorted(count.items())]


def expected_best(groups: Sequence[tuple[float, float]], n: int) -> tuple[float, float, float]:
    """Return (mean reward, bound, divergence in nats) of the best of n samples from texts with these rewards and
    fractions, the worst first: each is the best with probability F^n − F_before^n.
    """
    reward = nats = below = 0.0
    for worth, share in groups:
        upto = min(1.0, below + share)
        chance = upto**n - below**n
        reward += chance * worth
        nats += chance * math.log(chance / share) if chance > 0 else 0.0
        below = upto
    return reward, kl_bound(n), nats
