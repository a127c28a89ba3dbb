"""Training a reward model: pairwise logistic loss, all pairs of a prompt in one batch (InstructGPT, equation 1)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn import functional

from core.arguments import cancel_of
from core.errors import PreferenceError
from core.labs.arguments import all_made
from core.labs.preference.checkpoint import Checkpoint
from core.labs.preference.events import Begun, Kept, LabEvent, RewardChecked, RewardStep
from core.labs.preference.lab_folders import new_home
from core.labs.preference.limits import check_training
from core.labs.preference.model_cards import reward_card
from core.labs.preference.model_saving import save_model
from core.labs.preference.ranking_files import bundled_rankings, read_rankings
from core.labs.preference.rankings import Ranking
from core.labs.preference.reward_model import RewardModel, new_reward_model
from core.labs.preference.tokenized_texts import prompt_ids, text_ids
from core.labs.preference.training_digest import digest, weights_digest
from core.labs.preference.training_loop import TrainingLoop, as_model, descend, learning, rate_at, set_rate, usual_rate
from core.models.loaded_model import LoadedModel
from core.plain_values import plain_value
from resources.language import tr

HELD_OUT = 5
"""One ranking in that many is only measured on."""
RANKINGS_A_STEP = 2
RATE = 2e-4
CHECKS = 6
"""How often the held-out pairs are scored in a training, at most."""


class RankingSet(NamedTuple):
    """A ranking as tokens, and its pairs as places among its completions."""

    prompt: list[int]
    texts: tuple[list[int], ...]
    better: torch.Tensor
    """[pairs]"""
    worse: torch.Tensor
    """[pairs]"""


def train_reward(
    rankings: Sequence[Ranking] | str | Path | None = None,
    *,
    model: LoadedModel | str = "storyteller",
    folder: str | Path | None = None,
    steps: int | None = None,
    seed: int = 0,
    rate: float | None = None,
    cancel: threading.Event | None = None,
) -> Iterator[LabEvent]:
    """Train a reward model from `model` on rankings (the bundled ones, a JSONL, or these) and keep it in `folder`.

    Events: Begun, RewardStep for each update, RewardChecked now and then, Kept or Stopped at the end. One ranking in
    five is held out. Begun again with the same settings it goes on where it was killed or stopped.
    `steps`: once through the rankings unless given. Raises ParameterError, PreferenceError, ModelError,
    FileNotWrittenError.
    """
    cancel = cancel_of(cancel)
    steps, seed, rate = plain_value((steps, seed, rate))
    check_training(1 if steps is None else steps, seed, RATE if rate is None else rate)
    kept, known = new_home(folder, "reward"), _rankings(rankings)
    source = as_model(model)
    with learning(source):
        chosen = usual_rate(source, RATE) if rate is None else rate
        yield from _Reward(known, source, kept, steps, seed, chosen, cancel).run()


def _rankings(given: Sequence[Ranking] | str | Path | None) -> list[Ranking]:
    if given is None:
        return bundled_rankings()
    return read_rankings(given) if isinstance(given, (str, Path)) else all_made("rankings", given, Ranking)


def split(rankings: Sequence[Ranking]) -> tuple[list[Ranking], list[Ranking]]:
    """Those to learn from, and those held out; with fewer than five all are learned from and measured on."""
    held = [one for place, one in enumerate(rankings) if place % HELD_OUT == HELD_OUT - 1]
    learned = [one for place, one in enumerate(rankings) if place % HELD_OUT != HELD_OUT - 1]
    return learned, held or learned


def pairwise_loss(better: torch.Tensor, worse: torch.Tensor) -> torch.Tensor:
    """−mean log σ(r_better − r_worse) of rewards [pairs]."""
    return -functional.logsigmoid(better - worse).mean()


class _Reward:
    """One training of a reward model."""

    def __init__(
        self,
        rankings: Sequence[Ranking],
        source: LoadedModel,
        folder: Path,
        steps: int | None,
        seed: int,
        rate: float,
        cancel: threading.Event,
    ) -> None:
        learned, held = split(rankings)
        self._source, self._folder, self._rate = source, folder, rate
        self._learned, self._held = _sets(source, learned), _sets(source, held)
        self._model = new_reward_model(source, seed)
        self._optimizer = torch.optim.AdamW(self._model.network.parameters(), lr=rate, weight_decay=0.0)
        total = steps if steps is not None else -(-len(self._learned) // RANKINGS_A_STEP)
        plan = {
            "stage": "reward", "model": weights_digest(source), "rankings": digest(rankings), "steps": total,
            "seed": seed, "rate": rate,
        }  # fmt: skip
        checkpoint = Checkpoint(folder, plan, self._model.network, self._optimizer)
        self._training = TrainingLoop("reward", total, checkpoint, cancel)
        self._seed = seed

    def run(self) -> Iterator[LabEvent]:
        """All of it."""
        training = self._training
        training.resume()
        yield Begun(
            "reward", self._source.name, training.step, training.total, len(self._learned), len(self._held)
        )  # fmt: skip
        yield from training.steps(self._update)
        if training.is_done:
            yield from self._keep()

    def _update(self, step: int) -> Iterator[LabEvent]:
        chosen = self._drawn(step)
        set_rate(self._optimizer, rate_at(step, self._training.total, self._rate))
        losses = [pairwise_loss(*_rewards(self._model, one)) for one in chosen]
        loss = torch.stack(losses).mean()
        descend(self._optimizer, loss)
        yield RewardStep(step + 1, self._training.total, loss.item(), sum(len(one.better) for one in chosen))
        if (step + 1) % max(1, self._training.total // CHECKS) == 0 and step + 1 < self._training.total:
            yield self._check(step + 1)

    def _drawn(self, step: int) -> list[RankingSet]:
        """The step's rankings: every one comes once before any comes again."""
        each = min(RANKINGS_A_STEP, len(self._learned))
        begun, place = divmod(step * each, len(self._learned))
        order = [*_order(self._seed, begun, len(self._learned)), *_order(self._seed, begun + 1, len(self._learned))]
        return [self._learned[index] for index in order[place : place + each]]

    @torch.no_grad()
    def _check(self, step: int) -> RewardChecked:
        found = [_rewards(self._model, one) for one in self._held]
        better, worse = (torch.cat(side) for side in zip(*found, strict=True))
        right = (better > worse).float().mean().item()
        return RewardChecked(step, self._training.total, pairwise_loss(better, worse).item(), right, len(better))

    def _keep(self) -> Iterator[LabEvent]:
        training = self._training
        checked = self._check(training.total)
        yield checked
        card = reward_card(self._source, checked, len(self._learned), training.total, self._seed, training.seconds)
        save_model(self._model.classifier, self._source.tokenizer, self._folder, card)
        training.checkpoint.drop()
        yield Kept("reward", str(self._folder), training.seconds)


def _order(seed: int, round_: int, count: int) -> list[int]:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1009 + round_)).tolist()


def _sets(source: LoadedModel, rankings: Sequence[Ranking]) -> list[RankingSet]:
    """Rankings as tokens; those in which all tie teach nothing."""
    told = (_set(source, one) for one in rankings)
    found = [one for one in told if len(one.better)]
    if not found:
        raise PreferenceError(
            tr("There is no pair in these rankings: all their completions tie."),
            tr("Put at least two completions of a prompt in order."),
        )
    return found


def _set(source: LoadedModel, ranking: Ranking) -> RankingSet:
    prompt = prompt_ids(source, ranking.prompt)
    places = range(len(ranking.ranks))
    sides = [(a, b) for a in places for b in places if ranking.ranks[a] < ranking.ranks[b]]
    better, worse = zip(*sides, strict=True) if sides else ((), ())
    texts = tuple(text_ids(source, ranking.prompt, text)[len(prompt) :] for text in ranking.completions)
    return RankingSet(prompt, texts, torch.tensor(better, dtype=torch.long), torch.tensor(worse, dtype=torch.long))


def _rewards(model: RewardModel, one: RankingSet) -> tuple[torch.Tensor, torch.Tensor]:
    """Rewards [pairs] of the better and the worse; each text is read once, in however many pairs it stands."""
    rewards = model.shared_rewards(one.prompt, one.texts)
    return rewards[one.better], rewards[one.worse]
