"""Compare two models on the same prompts with the same random numbers, to show the effect of a training."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from decodescope.core.labs.preference.completion_sampling import SampledCompletions, answer_logits, sample_batch
from decodescope.core.labs.preference.events import PpoChecked, TextComparison
from decodescope.core.labs.preference.reward_model import RewardModel
from decodescope.core.labs.preference.tokenized_texts import end_token_ids, pad_texts, prompt_ids
from decodescope.core.models.loaded_model import LoadedModel


class RewardBaseline(NamedTuple):
    """Mean and deviation of the initial model's rewards."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: torch.Tensor) -> RewardBaseline:
        """Compute the baseline of rewards [B]."""
        return cls(scores.mean().item(), max(scores.std(unbiased=False).item(), 1e-3))

    def normalize(self, reward: float) -> float:
        """Return the reward in standard deviations above the mean."""
        return (reward - self.mean) / self.deviation

    def normalize_all(self, rewards: torch.Tensor) -> torch.Tensor:
        """Return rewards [B] in standard deviations above the mean."""
        return (rewards - self.mean) / self.deviation


class RewardScorer:
    """Scores sampled texts with a reward model, without their end token, which the rankings lack too."""

    def __init__(self, judge: RewardModel) -> None:
        self._judge = judge

    @torch.no_grad()
    def scores(self, sampled: SampledCompletions) -> torch.Tensor:
        """Return the reward [B] of each text."""
        texts = [sampled.token_ids(row) for row in range(len(sampled.ids))]
        return torch.tensor(self._judge.score([[*before, *after] for before, after in texts]))

    @torch.no_grad()
    def scores_and_states(self, sampled: SampledCompletions) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rewards [B], and the states [B, T, D] before each token of the answers."""
        texts = [sampled.token_ids(row) for row in range(len(sampled.ids))]
        batch = pad_texts([[*before, *after] for before, after in texts])
        states = self._judge.hidden(batch)
        everyone = torch.arange(len(states))
        scores = self._judge.classifier.score(states[everyone, batch.last]).squeeze(-1)
        starts = torch.tensor([len(before) - 1 for before, _ in texts])
        places = starts[:, None] + torch.arange(sampled.ids.shape[1] - sampled.start)
        return scores, states[everyone[:, None], places.clamp(max=states.shape[1] - 1)]


BATCH_SIZE = 24


class ModelComparison(NamedTuple):
    """A model before and after a training, and how texts are sampled from both."""

    before: LoadedModel
    after: LoadedModel
    scorer: RewardScorer
    max_tokens: int
    seed: int
    cancel: threading.Event

    def evaluate(self, prompts: Sequence[str], texts: int, step: int) -> PpoChecked | None:
        """Return both models' rewards and their KL divergence over that number of texts; None if cancelled."""
        old: list[float] = []
        new: list[float] = []
        nats: list[float] = []
        for first in range(0, texts, BATCH_SIZE):
            some = [prompts[place % len(prompts)] for place in range(first, min(texts, first + BATCH_SIZE))]
            if (both := self._sample(some, self.seed + first)) is None:
                return None
            old += self.scorer.scores(both[0]).tolist()
            new += self.scorer.scores(both[1]).tolist()
            nats += kl_divergence(self.after.model, self.before.model, both[1]).tolist()
        mean, deviation = RewardBaseline.of(torch.tensor(old))
        return PpoChecked(step, mean, sum(new) / len(new), deviation, sum(nats) / len(nats), len(new))

    def compare_texts(self, prompts: Sequence[str]) -> Iterator[TextComparison]:
        """Yield the texts of both models after each prompt; nothing if cancelled."""
        if (both := self._sample(prompts, self.seed)) is None:
            return
        rewards = zip(*(self.scorer.scores(drawn).tolist() for drawn in both), strict=True)
        for row, (old, new) in enumerate(rewards):
            was, now = (self.before.tokenizer.decode(drawn.token_ids(row)[1]) for drawn in both)
            yield TextComparison(prompts[row], was, now, old, new)

    def _sample(self, prompts: Sequence[str], seed: int) -> tuple[SampledCompletions, SampledCompletions] | None:
        """Sample from both models with the same random numbers; None if cancelled."""
        ids, ends = [prompt_ids(self.before, prompt) for prompt in prompts], end_token_ids(self.before)
        one, other = (
            sample_batch(model.model, ids, ends, self.max_tokens, torch.Generator().manual_seed(seed), self.cancel)
            for model in (self.before, self.after)
        )
        return None if one is None or other is None else (one, other)


@torch.no_grad()
def kl_divergence(policy: torch.nn.Module, reference: torch.nn.Module, sampled: SampledCompletions) -> torch.Tensor:
    """Return KL(policy ‖ reference) of each text [B] in nats, summed exactly over the vocabulary at each sampled
    token.
    """
    now = answer_logits(policy, sampled).log_softmax(-1)
    before = answer_logits(reference, sampled).log_softmax(-1)
    nats: torch.Tensor = ((now.exp() * (now - before)).sum(-1) * sampled.answer_mask).sum(1)
    return nats
