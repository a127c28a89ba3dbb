"""What a training of the preference lab tells while it goes on: plain values, one small class for each thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["sft", "reward", "ppo"]


@dataclass(frozen=True, slots=True)
class Begun:
    """A training begins, or goes on behind `step` where it was killed or stopped."""

    stage: Stage
    model: str
    step: int
    total: int
    examples: int
    """Texts, rankings or prompts that it learns from."""
    held_out: int
    """Those that it is only measured on."""


@dataclass(frozen=True, slots=True)
class RewardStep:
    """One update of a reward model."""

    step: int
    total: int
    loss: float
    """Nats a pair: −log σ(r_chosen − r_rejected), the mean over the pairs of the step's rankings."""
    pairs: int


@dataclass(frozen=True, slots=True)
class RewardChecked:
    """A reward model held against rankings that it does not learn from."""

    step: int
    total: int
    loss: float
    accuracy: float
    """Share of the held-out pairs whose chosen one it scores higher."""
    pairs: int


@dataclass(frozen=True, slots=True)
class SftStep:
    """One update of supervised fine-tuning."""

    step: int
    total: int
    loss: float
    """Nats a token of the answers."""
    tokens: int


@dataclass(frozen=True, slots=True)
class SftChecked:
    """The model held against texts that it does not learn from."""

    step: int
    total: int
    loss: float
    """Nats a token of the answers."""


@dataclass(frozen=True, slots=True)
class PpoStep:
    """One round of PPO: texts written, rewarded, and learned from. Means over the round's texts."""

    step: int
    total: int
    reward: float
    """Of the reward model, as it gives it."""
    gain: float
    """How far that lies above the model it began from, in standard deviations of that one's rewards."""
    kl: float
    """Nats a text: KL(π ‖ π_SFT), summed exactly over the vocabulary at each token that was written."""
    entropy: float
    """Nats a token."""
    loss: float
    """The clipped policy loss, before the update's first and after its last pass averaged."""
    value_loss: float
    clipped: float
    """Share of tokens whose ratio was cut."""
    length: float
    """Tokens a text."""
    text: str
    """The first text of the round."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One prompt that it did not learn from, told before and after with the same random numbers."""

    prompt: str
    before: str
    after: str
    reward_before: float
    reward_after: float


@dataclass(frozen=True, slots=True)
class PpoChecked:
    """Both models held against each other on prompts that PPO has not seen."""

    step: int
    reward_before: float
    reward_after: float
    deviation: float
    """Standard deviation of the rewards before."""
    kl: float
    """Nats a text."""
    texts: int

    @property
    def gain(self) -> float:
        """How far the reward rose, in standard deviations."""
        return (self.reward_after - self.reward_before) / self.deviation


@dataclass(frozen=True, slots=True)
class Kept:
    """The training is done, and what came of it lies in `folder`."""

    stage: Stage
    folder: str
    seconds: float
    """Of computing, those before a kill included."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """It was stopped; begun again with the same settings it goes on behind `step`."""

    stage: Stage
    step: int
    total: int


@dataclass(frozen=True, slots=True)
class BestOf:
    """Best of n: the mean reward of the best of n texts, and how far that is from the model at most, and measured."""

    n: int
    reward: float
    bound: float
    """ln n − (n − 1)/n nats."""
    kl: float
    """Measured: what choosing moves the chance of each rank, in nats; at most `bound`."""
    texts: int


LabEvent = (
    Begun
    | RewardStep
    | RewardChecked
    | SftStep
    | SftChecked
    | PpoStep
    | Compared
    | PpoChecked
    | Kept
    | Stopped
    | BestOf
)
