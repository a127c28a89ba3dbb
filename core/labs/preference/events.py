"""Events of the preference lab's trainings: plain values, one small class for each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["sft", "reward", "ppo"]


@dataclass(frozen=True, slots=True)
class TrainingStarted:
    """A training starts, or resumes after `step`."""

    stage: Stage
    model: str
    step: int
    total: int
    examples: int
    """Texts, rankings or prompts used for training."""
    held_out: int
    """Those used only for evaluation."""


@dataclass(frozen=True, slots=True)
class RewardStep:
    """One update of a reward model."""

    step: int
    total: int
    loss: float
    """Nats per pair: −log σ(r_chosen − r_rejected), the mean over the pairs of the step's rankings."""
    pairs: int


@dataclass(frozen=True, slots=True)
class RewardChecked:
    """Evaluation of a reward model on held-out rankings."""

    step: int
    total: int
    loss: float
    accuracy: float
    """Fraction of held-out pairs whose chosen text has the higher score."""
    pairs: int


@dataclass(frozen=True, slots=True)
class SftStep:
    """One update of supervised fine-tuning."""

    step: int
    total: int
    loss: float
    """Nats per token of the answers."""
    tokens: int


@dataclass(frozen=True, slots=True)
class SftChecked:
    """Evaluation of the model on held-out texts."""

    step: int
    total: int
    loss: float
    """Nats per token of the answers."""


@dataclass(frozen=True, slots=True)
class PpoStep:
    """One round of PPO: sample texts, score them, and train on them. Values are means over the round's texts."""

    step: int
    total: int
    reward: float
    """Raw score of the reward model."""
    gain: float
    """Increase over the initial model, in standard deviations of that model's rewards."""
    kl: float
    """Nats per text: KL(π ‖ π_SFT), summed exactly over the vocabulary at each sampled token."""
    entropy: float
    """Nats per token."""
    loss: float
    """Clipped policy loss, averaged over all updates of the round."""
    value_loss: float
    clipped: float
    """Fraction of tokens whose ratio was clipped."""
    length: float
    """Tokens per text."""
    text: str
    """The first text of the round."""


@dataclass(frozen=True, slots=True)
class TextComparison:
    """One held-out prompt, completed before and after the training with the same random numbers."""

    prompt: str
    before: str
    after: str
    reward_before: float
    reward_after: float


@dataclass(frozen=True, slots=True)
class PpoChecked:
    """Comparison of both models on held-out prompts."""

    step: int
    reward_before: float
    reward_after: float
    deviation: float
    """Standard deviation of the rewards before the training."""
    kl: float
    """Nats per text."""
    texts: int

    @property
    def gain(self) -> float:
        """Increase of the reward, in standard deviations."""
        return (self.reward_after - self.reward_before) / self.deviation


@dataclass(frozen=True, slots=True)
class TrainingSaved:
    """The training is done and its result is saved in `folder`."""

    stage: Stage
    folder: str
    seconds: float
    """Computing time, including earlier interrupted attempts."""


@dataclass(frozen=True, slots=True)
class TrainingStopped:
    """The training was stopped; with the same settings it resumes after `step`."""

    stage: Stage
    step: int
    total: int


@dataclass(frozen=True, slots=True)
class BestOf:
    """Best of n: the mean reward of the best of n texts, and its divergence from the model, bounded and measured."""

    n: int
    reward: float
    bound: float
    """ln n − (n − 1)/n nats."""
    kl: float
    """Measured divergence of the chosen texts from the model, in nats; at most `bound`."""
    texts: int


LabEvent = (
    TrainingStarted
    | RewardStep
    | RewardChecked
    | SftStep
    | SftChecked
    | PpoStep
    | TextComparison
    | PpoChecked
    | TrainingSaved
    | TrainingStopped
    | BestOf
)
