"""Texts as they were drawn, read by a reward model."""

from __future__ import annotations

from typing import NamedTuple

import torch

from core.labs.preference.completion_sampling import SampledCompletions
from core.labs.preference.reward_model import RewardModel
from core.labs.preference.tokenized_texts import ends_of, rows
from core.models.loaded_model import LoadedModel


class Baseline(NamedTuple):
    """The rewards of the model that PPO begins from."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: torch.Tensor) -> Baseline:
        """From rewards [B]."""
        return cls(scores.mean().item(), max(scores.std(unbiased=False).item(), 1e-3))

    def unit(self, reward: float) -> float:
        """How far a reward lies above the mean, in standard deviations."""
        return (reward - self.mean) / self.deviation

    def units(self, rewards: torch.Tensor) -> torch.Tensor:
        """The same of many."""
        return (rewards - self.mean) / self.deviation


class RewardScorer:
    """Reads drawn texts by a reward model; the end token is not read, which the rankings do not have either."""

    def __init__(self, source: LoadedModel, judge: RewardModel) -> None:
        self._judge, self._ends = judge, ends_of(source)

    @torch.no_grad()
    def scores(self, drawn: SampledCompletions) -> torch.Tensor:
        """[B]: the reward of each text."""
        texts = [drawn.texts(row) for row in range(len(drawn.ids))]
        return torch.tensor(self._judge.score([[*before, *after] for before, after in texts]))

    @torch.no_grad()
    def scores_and_states(self, drawn: SampledCompletions) -> tuple[torch.Tensor, torch.Tensor]:
        """Rewards [B], and the states [B, T, D] in front of each token of the answers."""
        texts = [drawn.texts(row) for row in range(len(drawn.ids))]
        batch = rows([[*before, *after] for before, after in texts])
        states = self._judge.hidden(batch)
        everyone = torch.arange(len(states))
        scores = self._judge.classifier.score(states[everyone, batch.last]).squeeze(-1)
        starts = torch.tensor([len(before) - 1 for before, _ in texts])
        places = starts[:, None] + torch.arange(drawn.ids.shape[1] - drawn.start)
        return scores, states[everyone[:, None], places.clamp(max=states.shape[1] - 1)]
