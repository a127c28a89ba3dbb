"""The preference lab: from rankings to a reward model to a model tuned with it (InstructGPT), small but complete.

    core.labs.preference.pairs(["best", ["as good", "as this"], "worst"])
    for event in core.labs.preference.train_reward(folder=…): ...
    for event in core.labs.preference.ppo(reward=…, folder=…): ...

Importing this package imports no torch; the trainings import it when they begin.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.labs.preference.completion_sampling import best_of, completions, kl_bound
    from core.labs.preference.dataset_files import bundled_rankings, read_rankings, write_pairs, write_rankings
    from core.labs.preference.events import (
        Begun,
        BestOf,
        Compared,
        Kept,
        LabEvent,
        PpoChecked,
        PpoStep,
        RewardChecked,
        RewardStep,
        SftChecked,
        SftStep,
        Stopped,
    )
    from core.labs.preference.fine_tuning import Example, read_examples, sft
    from core.labs.preference.ppo_training import PpoSettings, ppo
    from core.labs.preference.rankings import Pair, Ranking, Verdict, judge, pairs, rank_by_rule, ranked
    from core.labs.preference.reward_model import (
        RewardModel,
        TokenReward,
        load_reward_model,
        rank_completions,
        score_tokens,
        train_reward,
    )

__all__ = [
    "Begun",
    "BestOf",
    "Compared",
    "Example",
    "Kept",
    "LabEvent",
    "Pair",
    "PpoChecked",
    "PpoSettings",
    "PpoStep",
    "Ranking",
    "RewardChecked",
    "RewardModel",
    "RewardStep",
    "SftChecked",
    "SftStep",
    "Stopped",
    "TokenReward",
    "Verdict",
    "best_of",
    "bundled_rankings",
    "completions",
    "judge",
    "kl_bound",
    "load_reward_model",
    "pairs",
    "ppo",
    "rank_by_rule",
    "rank_completions",
    "ranked",
    "read_examples",
    "read_rankings",
    "score_tokens",
    "sft",
    "train_reward",
    "write_pairs",
    "write_rankings",
]

_HOMES = {
    "Begun": "events",
    "BestOf": "events",
    "Compared": "events",
    "Example": "fine_tuning",
    "Kept": "events",
    "LabEvent": "events",
    "Pair": "rankings",
    "PpoChecked": "events",
    "PpoSettings": "ppo_training",
    "PpoStep": "events",
    "Ranking": "rankings",
    "RewardChecked": "events",
    "RewardModel": "reward_model",
    "RewardStep": "events",
    "SftChecked": "events",
    "SftStep": "events",
    "Stopped": "events",
    "TokenReward": "reward_model",
    "Verdict": "rankings",
    "best_of": "completion_sampling",
    "bundled_rankings": "dataset_files",
    "completions": "completion_sampling",
    "judge": "rankings",
    "kl_bound": "completion_sampling",
    "load_reward_model": "reward_model",
    "pairs": "rankings",
    "ppo": "ppo_training",
    "rank_by_rule": "rankings",
    "rank_completions": "reward_model",
    "ranked": "rankings",
    "read_examples": "fine_tuning",
    "read_rankings": "dataset_files",
    "score_tokens": "reward_model",
    "sft": "fine_tuning",
    "train_reward": "reward_model",
    "write_pairs": "dataset_files",
    "write_rankings": "dataset_files",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'core.labs.preference' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"core.labs.preference.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
