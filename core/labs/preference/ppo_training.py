"""PPO on a reward model's scores, with a penalty on the KL divergence from the initial model.

Schulman et al., "Proximal policy optimization algorithms" (2017), equation 7; InstructGPT, equation 2 without the
pretraining mix. A linear layer reads the values from the frozen reward model's states: InstructGPT also initializes its
value function from the reward model, and a small model needs no more.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from decodescope.core.checks.arguments import (
    argument_error,
    cancel_event_or_new,
    check_kind,
    check_number,
    checked_texts,
)
from decodescope.core.labs.arguments import check_lab_object, with_plain_fields
from decodescope.core.labs.preference.completion_sampling import SampledCompletions, answer_logits, sample_batch
from decodescope.core.labs.preference.dataset_files import bundled_rankings
from decodescope.core.labs.preference.events import LabEvent, PpoStep, TrainingStopped
from decodescope.core.labs.preference.model_comparison import ModelComparison, RewardBaseline, RewardScorer
from decodescope.core.labs.preference.model_saving import ppo_card
from decodescope.core.labs.preference.reward_model import RewardModel, load_reward_model
from decodescope.core.labs.preference.tokenized_texts import end_token_ids, prompt_ids
from decodescope.core.labs.preference.training_arguments import (
    check_max_tokens,
    check_text_count,
    check_training,
    lab_folder,
    writable_lab_folder,
)
from decodescope.core.labs.preference.training_loop import (
    TrainingInterrupted,
    TrainingLoop,
    default_learning_rate,
    digest,
    load_source,
    optimizer_step,
    split_held_out,
    training_context,
)
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.resources.language import tr

GAE_LAMBDA = 0.95
"""λ of Schulman et al., "High-dimensional continuous control using generalized advantage estimation" (2016). There is
no discounting: γ = 1.
"""


def token_rewards(
    scores: torch.Tensor, log_ratio: torch.Tensor, mask: torch.Tensor, beta: float
) -> torch.Tensor:  # fmt: skip
    """Return rewards [B, T]: −β · log(π / π_SFT) at each sampled token, plus the text's score [B] at its last token."""
    spread = -beta * log_ratio * mask
    last = (mask.sum(1) - 1).clamp(min=0)
    spread[torch.arange(len(spread)), last] += scores
    return spread


def generalized_advantages(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return advantages and returns, both [B, T], from rewards and values [B, T]; 0 outside the mask.

    A_t = Σ_k λ^k δ_(t+k) with δ_t = r_t + V_(t+1) − V_t; the value after the last token is 0.
    """
    values = values * mask
    running = torch.zeros(len(rewards))
    found = torch.zeros_like(rewards)
    for t in reversed(range(rewards.shape[1])):
        following = values[:, t + 1] if t + 1 < rewards.shape[1] else torch.zeros(len(rewards))
        running = rewards[:, t] + following - values[:, t] + GAE_LAMBDA * running
        running = running * mask[:, t]
        found[:, t] = running
    return found, found + values


def whiten(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Normalize the values to mean 0 and standard deviation 1 over the mask."""
    among = values[mask]
    return (values - among.mean()) / (among.std(unbiased=False) + 1e-6) * mask


LEARNING_RATE = 1e-4
"""Learning rate for the tiny bundled models."""
PASSES, MINIBATCHES = 2, 2
MAX_BETA = 1_000_000
"""Maximum weight of the KL penalty."""


@dataclass(frozen=True, slots=True)
class PpoSettings:
    """Settings that determine a PPO training."""

    beta: float = 0.1
    """Weight of the KL penalty: standard deviations of reward per nat."""
    steps: int = 16
    texts: int = 24
    """Number of texts sampled in each step."""
    longest: int = 90
    """Maximum tokens of a text."""
    rate: float | None = None
    """Learning rate; by default chosen by model size."""
    clip: float = 0.2
    seed: int = 0
    compared: int = 6
    """Number of texts shown before and after."""
    checked: int = 48
    """Number of texts for the final comparison of both models."""

    def check(self) -> None:
        """Raise ParameterError if a setting is invalid."""
        check_number("beta", self.beta, 0, MAX_BETA)
        check_training(self.steps, self.seed, LEARNING_RATE if self.rate is None else self.rate)
        for name, count in (("texts", self.texts), ("compared", self.compared), ("checked", self.checked)):
            check_text_count(name, count)
        check_max_tokens(self.longest)
        check_number("clip", self.clip, 0, 1)


def ppo(
    reward: RewardModel | str | Path | None = None,
    *,
    model: LoadedModel | str = "storyteller",
    folder: str | Path | None = None,
    prompts: Sequence[str] | None = None,
    settings: PpoSettings | None = None,
    cancel: threading.Event | None = None,
) -> Iterator[LabEvent]:
    """Tune a copy of `model` to maximize `reward` (a reward model or its folder) and save it in `folder`.

    Yields TrainingStarted, PpoStep for each round, then PpoChecked, TextComparison for each text shown, TrainingSaved;
    or TrainingStopped. One prompt in five is held out for the final comparison. Prompts default to those of the bundled
    rankings. Called again with the same settings, it resumes. Raises ParameterError, PreferenceError, ModelError,
    FileNotWrittenError.
    """
    cancel = cancel_event_or_new(cancel)
    chosen = PpoSettings() if settings is None else settings
    check_lab_object("settings", chosen, PpoSettings)
    chosen = with_plain_fields(chosen)
    chosen.check()
    target_folder, known = writable_lab_folder(folder, "ppo"), _load_prompts(prompts)
    source = load_source(model)
    judge = _load_judge(reward)
    with training_context(source):
        yield from _PpoTraining(source, judge, known, target_folder, chosen, cancel).run()


def _load_judge(reward: RewardModel | str | Path | None) -> RewardModel:
    if reward is not None:
        check_kind("reward", reward, (RewardModel, str, PathLike), tr("Pass a reward model or its folder."))
    return reward if isinstance(reward, RewardModel) else load_reward_model(lab_folder(reward, "reward"))


def _load_prompts(prompts: Sequence[str] | None) -> list[str]:
    if prompts is None:
        return [one.prompt for one in bundled_rankings()]
    found = checked_texts("prompts", prompts)
    if not found:
        raise argument_error("prompts", prompts, tr("Pass at least one."))
    return found


class _PolicyAndValue(torch.nn.Module):
    """The trained modules: the policy, and the linear layer that predicts values."""

    def __init__(self, network: Any, width: int) -> None:
        super().__init__()
        self.policy = network
        self.value = torch.nn.Linear(width, 1)
        torch.nn.init.zeros_(self.value.weight)
        torch.nn.init.zeros_(self.value.bias)


class PpoBatch(NamedTuple):
    """A round's sampled texts and everything that stays constant while training on them; [B, T] unless noted
    otherwise.
    """

    sampled: SampledCompletions
    old_log_probs: torch.Tensor
    """Log probability of each token when it was sampled."""
    states: torch.Tensor
    """[B, T, D]: the reward model's states before each token."""
    advantage: torch.Tensor
    returns: torch.Tensor


class _PpoTraining:
    """One PPO training run."""

    def __init__(
        self,
        source: LoadedModel,
        judge: RewardModel,
        prompts: Sequence[str],
        folder: Path,
        settings: PpoSettings,
        cancel: threading.Event,
    ) -> None:
        self._source, self._judge, self._folder, self._settings = source, judge, folder, settings
        self._cancel = cancel
        self._prompts, self._held_out = split_held_out(prompts)
        self._ids = [prompt_ids(source, one) for one in self._prompts]
        self._scorer = RewardScorer(judge)
        network: torch.nn.Module = copy.deepcopy(source.model).train(False)
        self._trained = _PolicyAndValue(network, judge.classifier.score.in_features).requires_grad_(True)
        rate = default_learning_rate(source, LEARNING_RATE) if settings.rate is None else settings.rate
        self._optimizer = torch.optim.AdamW(
            [
                {"params": list(self._trained.policy.parameters()), "lr": rate},
                {"params": list(self._trained.value.parameters()), "lr": 1e-2},
            ],
            weight_decay=0.0,
        )
        plan = {"reward": reward_model_digest(judge), "prompts": digest(prompts), "settings": repr(settings)}
        self._training = TrainingLoop(
            "ppo", source, plan, settings.steps, self._trained, self._optimizer, folder, cancel
        )  # fmt: skip
        self._baseline = RewardBaseline(0.0, 1.0)

    def run(self) -> Iterator[LabEvent]:
        """Run the training."""
        training = self._training
        yield training.resume(self._prompts, self._held_out)
        if not training.figures and not self._cancel.is_set():
            self._measure_baseline()
        if training.figures:
            self._baseline = RewardBaseline(**training.figures)
            yield from training.steps(self._round)
        else:
            yield TrainingStopped("ppo", training.step, training.total)
        if training.is_done:
            yield from self._finish()

    def _measure_baseline(self) -> None:
        """Measure mean and deviation of the initial model's rewards, which are the unit of all reported rewards."""
        found = self._sample(self._source.model, -1)
        if found is not None:
            self._training.figures = RewardBaseline.of(self._scorer.scores(found))._asdict()

    def _sample(self, network: torch.nn.Module, step: int) -> SampledCompletions | None:
        settings = self._settings
        generator = torch.Generator().manual_seed(settings.seed * 100_003 + step + 1)
        places = torch.randint(len(self._ids), (settings.texts,), generator=generator).tolist()
        chosen = [self._ids[place] for place in places]
        return sample_batch(network, chosen, end_token_ids(self._source), settings.longest, generator, self._cancel)

    def _round(self, step: int) -> Iterator[LabEvent]:
        drawn = self._sample(self._trained.policy, step)
        if drawn is None:
            return
        with torch.no_grad():
            batch, stats = self._evaluate_batch(drawn)
        losses = [loss for _ in range(PASSES) for loss in self._train_pass(batch, step)]
        yield self._step_event(step, drawn, stats, losses)

    def _evaluate_batch(self, sampled: SampledCompletions) -> tuple[PpoBatch, dict[str, float]]:
        """Return the batch with its advantages, and the round's statistics."""
        written = sampled.answer_mask
        now = answer_logits(self._trained.policy, sampled).log_softmax(-1)
        before = answer_logits(self._source.model, sampled).log_softmax(-1)
        tokens = sampled.ids[:, sampled.start :, None]
        log_now, log_before = now.gather(-1, tokens)[..., 0], before.gather(-1, tokens)[..., 0]
        scores, states = self._scorer.scores_and_states(sampled)
        values = self._trained.value(states).squeeze(-1)
        spread = token_rewards(self._baseline.normalize_all(scores), log_now - log_before, written, self._settings.beta)
        advantage, returns = generalized_advantages(spread, values, written)
        shares = now.exp()
        stats = {
            "reward": scores.mean().item(),
            "kl": ((shares * (now - before)).sum(-1) * written).sum(1).mean().item(),
            "entropy": (-(shares * now).sum(-1))[written].mean().item(),
        }
        return PpoBatch(sampled, log_now, states, whiten(advantage, written), returns), stats

    def _train_pass(self, batch: PpoBatch, step: int) -> Iterator[tuple[float, float, float]]:
        """Train on the round's texts once, and yield (policy loss, value loss, clipped fraction) of each minibatch."""
        size = len(batch.old_log_probs)
        generator = torch.Generator().manual_seed(self._settings.seed + step)
        for part in torch.randperm(size, generator=generator).chunk(MINIBATCHES):
            if self._cancel.is_set():
                raise TrainingInterrupted
            yield self._update(batch, part)

    def _update(self, batch: PpoBatch, part: torch.Tensor) -> tuple[float, float, float]:
        clip, written = self._settings.clip, batch.sampled.answer_mask[part]
        log_now = answer_logits(self._trained.policy, batch.sampled, part).log_softmax(-1)
        tokens = batch.sampled.ids[part][:, batch.sampled.start :, None]
        ratio = (log_now.gather(-1, tokens)[..., 0] - batch.old_log_probs[part]).exp()[written]
        worth = batch.advantage[part][written]
        policy_loss = -torch.minimum(ratio * worth, ratio.clamp(1 - clip, 1 + clip) * worth).mean()
        values = self._trained.value(batch.states[part]).squeeze(-1)[written]
        value_loss = functional.mse_loss(values, batch.returns[part][written])
        optimizer_step(self._optimizer, policy_loss + value_loss)
        cut = ((ratio - 1).abs() > clip).float().mean().item()
        return policy_loss.item(), value_loss.item(), cut

    def _step_event(
        self, step: int, sampled: SampledCompletions, stats: dict[str, float], losses: list[tuple[float, float, float]]
    ) -> PpoStep:  # fmt: skip
        loss, value_loss, clipped = (sum(side) / len(losses) for side in zip(*losses, strict=True))
        return PpoStep(
            step=step + 1, total=self._settings.steps, gain=self._baseline.normalize(stats["reward"]), loss=loss,
            value_loss=value_loss, clipped=clipped, length=sampled.lengths.float().mean().item(),
            text=self._source.tokenizer.decode(sampled.token_ids(0)[1]), **stats,
        )  # fmt: skip

    def _finish(self) -> Iterator[LabEvent]:
        """Compare both models on held-out prompts and save the tuned one."""
        training, settings = self._training, self._settings
        tuned = LoadedModel(self._trained.policy, self._source.tokenizer, self._folder.name)
        comparison = ModelComparison(
            self._source, tuned, self._scorer, settings.longest, settings.seed, self._cancel
        )  # fmt: skip
        checked = comparison.evaluate(self._held_out, settings.checked, training.total)
        if checked is None:
            yield TrainingStopped("ppo", training.step, training.total)
            return
        yield checked
        yield from comparison.compare_texts(self._held_out[: settings.compared])
        card = ppo_card(self._source, checked, settings.beta, training.total, settings.seed, training.seconds)
        yield training.keep(tuned.model, card)


def reward_model_digest(judge: RewardModel) -> str:
    """Return a digest that identifies a reward model."""
    return digest([judge.classifier.score.weight.detach().flatten().tolist()])
