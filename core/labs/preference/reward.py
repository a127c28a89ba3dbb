"""Training a reward model: pairwise logistic loss, all pairs of a prompt in one batch (InstructGPT, equation 1)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn import functional

from core.arguments import cancel_event_or_new
from core.errors import PreferenceError
from core.labs.arguments import lab_object_list
from core.labs.preference.checkpoint import Checkpoint
from core.labs.preference.events import Begun, Kept, LabEvent, RewardChecked, RewardStep
from core.labs.preference.lab_folders import writable_lab_folder
from core.labs.preference.limits import check_training
from core.labs.preference.model_cards import reward_card
from core.labs.preference.model_saving import save_model
from core.labs.preference.ranking_files import bundled_rankings, read_rankings
from core.labs.preference.rankings import Ranking
from core.labs.preference.reward_model import RewardModel, new_reward_model
from core.labs.preference.tokenized_texts import prompt_ids, text_ids
from core.labs.preference.training_digest import digest, weights_digest
from core.labs.preference.training_loop import (
    TrainingLoop,
    default_learning_rate,
    learning_rate_at,
    load_source,
    optimizer_step,
    set_learning_rate,
    training_context,
)
from core.models.loaded_model import LoadedModel
from core.plain_values import to_plain_value
from resources.language import tr

HELD_OUT_INTERVAL = 5
"""One ranking in that many is only measured on."""
RANKINGS_PER_STEP = 2
LEARNING_RATE = 2e-4
MAX_EVALUATIONS = 6
"""How often the held-out pairs are scored in a training, at most."""


class TokenizedRanking(NamedTuple):
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
    cancel = cancel_event_or_new(cancel)
    steps, seed, rate = to_plain_value((steps, seed, rate))
    check_training(1 if steps is None else steps, seed, LEARNING_RATE if rate is None else rate)
    target_folder, known = writable_lab_folder(folder, "reward"), _load_rankings(rankings)
    source = load_source(model)
    with training_context(source):
        chosen = default_learning_rate(source, LEARNING_RATE) if rate is None else rate
        yield from _RewardTraining(known, source, target_folder, steps, seed, chosen, cancel).run()


def _load_rankings(rankings: Sequence[Ranking] | str | Path | None) -> list[Ranking]:
    if rankings is None:
        return bundled_rankings()
    return (
        read_rankings(rankings) if isinstance(rankings, (str, Path)) else lab_object_list("rankings", rankings, Ranking)
    )


def split_held_out(rankings: Sequence[Ranking]) -> tuple[list[Ranking], list[Ranking]]:
    """Those to learn from, and those held out; with fewer than five all are learned from and measured on."""
    held = [one for place, one in enumerate(rankings) if place % HELD_OUT_INTERVAL == HELD_OUT_INTERVAL - 1]
    learned = [one for place, one in enumerate(rankings) if place % HELD_OUT_INTERVAL != HELD_OUT_INTERVAL - 1]
    return learned, held or learned


def pairwise_loss(better: torch.Tensor, worse: torch.Tensor) -> torch.Tensor:
    """−mean log σ(r_better − r_worse) of rewards [pairs]."""
    return -functional.logsigmoid(better - worse).mean()


class _RewardTraining:
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
        learned, held = split_held_out(rankings)
        self._source, self._folder, self._rate = source, folder, rate
        self._train_rankings, self._held_out = _tokenize_rankings(source, learned), _tokenize_rankings(source, held)
        self._model = new_reward_model(source, seed)
        self._optimizer = torch.optim.AdamW(self._model.network.parameters(), lr=rate, weight_decay=0.0)
        total = steps if steps is not None else -(-len(self._train_rankings) // RANKINGS_PER_STEP)
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
            "reward", self._source.name, training.step, training.total, len(self._train_rankings), len(self._held_out)
        )  # fmt: skip
        yield from training.steps(self._update)
        if training.is_done:
            yield from self._finish()

    def _update(self, step: int) -> Iterator[LabEvent]:
        chosen = self._step_rankings(step)
        set_learning_rate(self._optimizer, learning_rate_at(step, self._training.total, self._rate))
        losses = [pairwise_loss(*_rewards(self._model, one)) for one in chosen]
        loss = torch.stack(losses).mean()
        optimizer_step(self._optimizer, loss)
        yield RewardStep(step + 1, self._training.total, loss.item(), sum(len(one.better) for one in chosen))
        if (step + 1) % max(1, self._training.total // MAX_EVALUATIONS) == 0 and step + 1 < self._training.total:
            yield self._evaluate(step + 1)

    def _step_rankings(self, step: int) -> list[TokenizedRanking]:
        """The step's rankings: every one comes once before any comes again."""
        each = min(RANKINGS_PER_STEP, len(self._train_rankings))
        begun, place = divmod(step * each, len(self._train_rankings))
        order = [
            *_shuffled_order(self._seed, begun, len(self._train_rankings)),
            *_shuffled_order(self._seed, begun + 1, len(self._train_rankings)),
        ]
        return [self._train_rankings[index] for index in order[place : place + each]]

    @torch.no_grad()
    def _evaluate(self, step: int) -> RewardChecked:
        found = [_rewards(self._model, one) for one in self._held_out]
        better, worse = (torch.cat(side) for side in zip(*found, strict=True))
        right = (better > worse).float().mean().item()
        return RewardChecked(step, self._training.total, pairwise_loss(better, worse).item(), right, len(better))

    def _finish(self) -> Iterator[LabEvent]:
        training = self._training
        checked = self._evaluate(training.total)
        yield checked
        card = reward_card(
            self._source, checked, len(self._train_rankings), training.total, self._seed, training.seconds
        )
        save_model(self._model.classifier, self._source.tokenizer, self._folder, card)
        training.checkpoint.delete()
        yield Kept("reward", str(self._folder), training.seconds)


def _shuffled_order(seed: int, round_: int, count: int) -> list[int]:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1009 + round_)).tolist()


def _tokenize_rankings(source: LoadedModel, rankings: Sequence[Ranking]) -> list[TokenizedRanking]:
    """Rankings as tokens; those in which all tie teach nothing."""
    told = (_tokenize_ranking(source, one) for one in rankings)
    found = [one for one in told if len(one.better)]
    if not found:
        raise PreferenceError(
            tr("There is no pair in these rankings: all their completions tie."),
            tr("Put at least two completions of a prompt in order."),
        )
    return found


def _tokenize_ranking(source: LoadedModel, ranking: Ranking) -> TokenizedRanking:
    prompt = prompt_ids(source, ranking.prompt)
    places = range(len(ranking.ranks))
    sides = [(a, b) for a in places for b in places if ranking.ranks[a] < ranking.ranks[b]]
    better, worse = zip(*sides, strict=True) if sides else ((), ())
    texts = tuple(text_ids(source, ranking.prompt, text)[len(prompt) :] for text in ranking.completions)
    return TokenizedRanking(
        prompt, texts, torch.tensor(better, dtype=torch.long), torch.tensor(worse, dtype=torch.long)
    )


def _rewards(model: RewardModel, one: TokenizedRanking) -> tuple[torch.Tensor, torch.Tensor]:
    """Rewards [pairs] of the better and the worse; each text is read once, in however many pairs it stands."""
    rewards = model.shared_rewards(one.prompt, one.texts)
    return rewards[one.better], rewards[one.worse]
