"""Texts as they were drawn, read by a reward model."""

from __future__ import annotations

from typing import NamedTuple

import torch

from core.labs.preference.completion_sampling import SampledCompletions
from core.labs.preference.reward_model import RewardModel
from core.labs.preference.tokenized_texts import end_token_ids, pad_texts
from core.models.loaded_model import LoadedModel


class RewardBaseline(NamedTuple):
    """The rewards of the model that PPO begins from."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: torch.Tensor) -> RewardBaseline:
        """From rewards [B]."""
        return cls(scores.mean().item(), max(scores.std(unbiased=False).item(), 1e-3))

    def normalize(self, reward: float) -> float:
        """How far a reward lies above the mean, in standard deviations."""
        return (reward - self.mean) / self.deviation

    def normalize_all(self, rewards: torch.Tensor) -> torch.Tensor:
        """The same of many."""
        return (rewards - self.mean) / self.deviation


class RewardScorer:
    """Reads drawn texts by a reward model; the end token is not read, which the rankings do not have either."""

    def __init__(self, source: LoadedModel, judge: RewardModel) -> None:
        self._judge, self._end_ids = judge, end_token_ids(source)

    @torch.no_grad()
    def scores(self, sampled: SampledCompletions) -> torch.Tensor:
        """[B]: the reward of each text."""
        texts = [sampled.token_ids(row) for row in range(len(sampled.ids))]
        return torch.tensor(self._judge.score([[*before, *after] for before, after in texts]))

    @torch.no_grad()
    def scores_and_states(self, sampled: SampledCompletions) -> tuple[torch.Tensor, torch.Tensor]:
        """Rewards [B], and the states [B, T, D] in front of each token of the answers."""
        texts = [sampled.token_ids(row) for row in range(len(sampled.ids))]
        batch = pad_texts([[*before, *after] for before, after in texts])
        states = self._judge.hidden(batch)
        everyone = torch.arange(len(states))
        scores = self._judge.classifier.score(states[everyone, batch.last]).squeeze(-1)
        starts = torch.tensor([len(before) - 1 for before, _ in texts])
        places = starts[:, None] + torch.arange(sampled.ids.shape[1] - sampled.start)
        return scores, states[everyone[:, None], places.clamp(max=states.shape[1] - 1)]
