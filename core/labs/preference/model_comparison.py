"""Two models on the same prompts with the same random numbers: what a training has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import torch

from core.labs.preference.completion_sampling import SampledCompletions, answer_logits, draw
from core.labs.preference.events import Compared, PpoChecked
from core.labs.preference.reward_scores import Baseline, RewardScorer
from core.labs.preference.tokenized_texts import ends_of, prompt_ids
from core.models.loaded_model import LoadedModel

BATCH = 24


def held_against(
    before: LoadedModel,
    after: LoadedModel,
    scorer: RewardScorer,
    prompts: Sequence[str],
    texts: int,
    longest: int,
    seed: int,
    step: int,
    cancel: threading.Event,
) -> PpoChecked | None:
    """Rewards of both and the KL divergence between them, over so many texts; None when it was cancelled."""
    old: list[float] = []
    new: list[float] = []
    nats: list[float] = []
    for first in range(0, texts, BATCH):
        some = [prompts[place % len(prompts)] for place in range(first, min(texts, first + BATCH))]
        one = _told(before, before.model, some, longest, seed + first, cancel)
        other = _told(before, after.model, some, longest, seed + first, cancel)
        if one is None or other is None:
            return None
        old += scorer.scores(one).tolist()
        new += scorer.scores(other).tolist()
        nats += divergence(after.model, before.model, other).tolist()
    mean, deviation = Baseline.of(torch.tensor(old))
    return PpoChecked(step, mean, sum(new) / len(new), deviation, sum(nats) / len(nats), len(new))


def compared(
    before: LoadedModel,
    after: LoadedModel,
    scorer: RewardScorer,
    prompts: Sequence[str],
    longest: int,
    seed: int,
    cancel: threading.Event,
) -> Iterator[Compared]:
    """The texts of both behind each prompt."""
    one = _told(before, before.model, prompts, longest, seed, cancel)
    other = _told(before, after.model, prompts, longest, seed, cancel)
    if one is None or other is None:
        return
    rewards = zip(scorer.scores(one).tolist(), scorer.scores(other).tolist(), strict=True)
    for row, (old, new) in enumerate(rewards):
        was, now = (before.tokenizer.decode(drawn.texts(row)[1]) for drawn in (one, other))
        yield Compared(prompts[row], was, now, old, new)


@torch.no_grad()
def divergence(policy: torch.nn.Module, reference: torch.nn.Module, drawn: SampledCompletions) -> torch.Tensor:
    """[B]: KL(policy ‖ reference) of each text in nats, summed exactly over the vocabulary at each token written."""
    now = answer_logits(policy, drawn).log_softmax(-1)
    before = answer_logits(reference, drawn).log_softmax(-1)
    nats: torch.Tensor = ((now.exp() * (now - before)).sum(-1) * drawn.written).sum(1)
    return nats


def _told(
    model: LoadedModel,
    network: torch.nn.Module,
    prompts: Sequence[str],
    longest: int,
    seed: int,
    cancel: threading.Event,
) -> SampledCompletions | None:
    ids = [prompt_ids(model, prompt) for prompt in prompts]
    return draw(network, ids, ends_of(model), longest, torch.Generator().manual_seed(seed), cancel)
