"""What is asked of the preference lab: plain data that crosses to the thread that trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from resources.language import mark

Task = Literal["sft", "reward", "ppo", "tokens", "best_of", "draw"]
STAGES: tuple[tuple[Task, str], ...] = (
    ("sft", mark("Fine-tuning")),
    ("reward", mark("Reward model")),
    ("ppo", mark("PPO")),
)
"""The paper's three steps, in their order."""
BUNDLED, USER_RANKINGS = "bundled", "mine"
"""Data that ships with the program; rankings of one's own."""
BASE_MODEL = "storyteller"
"""The model that all three begin from."""


@dataclass(frozen=True, slots=True)
class LabRequest:
    """One piece of work."""

    task: Task
    data: str = BUNDLED
    """`BUNDLED`, `USER_RANKINGS`, or a JSONL file."""
    tuned: bool = False
    """Begin from the fine-tuned model, not from storyteller."""
    steps: int = 0
    """0: as many as the core takes by itself."""
    beta: float = 0.1
    seed: int = 0
    prompt: str = ""
    text: str = ""
    count: int = 4
    """Completions that are drawn to be put in order."""


@dataclass(frozen=True, slots=True)
class ScoredTokens:
    """A text with the reward after each of its tokens."""

    tokens: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class CompletionsToRank:
    """What is to be put in order."""

    prompt: str
    completions: tuple[str, ...]
