"""The preference lab: from rankings to a reward model to a model tuned with it (InstructGPT), small but complete.

    core.labs.preference.pairs(["best", ["as good", "as this"], "worst"])
    for event in core.labs.preference.train_reward(folder=…): ...
    for event in core.labs.preference.ppo(reward=…, folder=…): ...

Importing this package imports no torch; the trainings import it when they begin.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.labs.preference.completion_sampling import best_of, completions, kl_bound
    from decodescope.core.labs.preference.dataset_files import (
        bundled_rankings,
        read_rankings,
        write_pairs,
        write_rankings,
    )
    from decodescope.core.labs.preference.events import (
        BestOf,
        LabEvent,
        PpoChecked,
        PpoStep,
        RewardChecked,
        RewardStep,
        SftChecked,
        SftStep,
        TextComparison,
        TrainingSaved,
        TrainingStarted,
        TrainingStopped,
    )
    from decodescope.core.labs.preference.fine_tuning import Example, read_examples, sft
    from decodescope.core.labs.preference.ppo_training import PpoSettings, ppo
    from decodescope.core.labs.preference.rankings import Pair, Ranking, Verdict, judge, pairs, rank_by_rule, ranked
    from decodescope.core.labs.preference.reward_model import (
        RewardModel,
        TokenReward,
        load_reward_model,
        rank_completions,
        score_tokens,
        train_reward,
    )

__all__ = sorted(_PUBLIC_NAMES)
