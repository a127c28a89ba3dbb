"""Best of n: n texts are drawn, the one with the highest reward is taken; what that gains, and how far it leads away.

The bound is that of Stiennon et al., "Learning to summarize from human feedback" (2020), and of Nakano et al., "WebGPT"
(2021): KL ≤ ln n − (n − 1)/n. It is met where no two texts are the same; of texts that come more than once the choice
tells less, and the divergence is smaller. That is what is measured here.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence

import torch

from core.arguments import cancel_event_or_new, check_integer, check_iterable, check_text
from core.labs.arguments import check_lab_object
from core.labs.preference.completion_sampling import sample_batch
from core.labs.preference.events import BestOf
from core.labs.preference.limits import check_max_tokens, check_seed, check_text_count
from core.labs.preference.reward_model import RewardModel
from core.labs.preference.tokenized_texts import end_token_ids, prompt_ids
from core.labs.preference.training_loop import load_source, training_context
from core.models.loaded_model import LoadedModel
from core.plain_values import to_plain_value
from resources.language import tr

COUNTS = (1, 2, 4, 8, 16)
MAX_COUNT = 1_000_000


def kl_bound(n: int) -> float:
    """ln n − (n − 1)/n nats. Raises ParameterError."""
    n = to_plain_value(n)
    check_integer("n", n, 1, MAX_COUNT)
    return math.log(n) - (n - 1) / n


def best_of(
    model: LoadedModel | str,
    judge: RewardModel,
    prompt: str,
    *,
    counts: Sequence[int] = COUNTS,
    texts: int = 64,
    longest: int = 90,
    seed: int = 0,
    cancel: threading.Event | None = None,
) -> Iterator[BestOf]:
    """What the best of n texts is worth behind `prompt`, for each n of `counts`, told by `texts` that are drawn once.

    Raises ParameterError, PreferenceError, ModelError.
    """
    cancel = cancel_event_or_new(cancel)
    check_lab_object("judge", judge, RewardModel)
    check_text("prompt", prompt)
    counts = checked_counts(counts)
    texts, longest, seed = to_plain_value((texts, longest, seed))
    check_text_count("texts", texts)
    check_max_tokens(longest)
    check_seed(seed)
    source = load_source(model)
    with training_context(source):
        ids = [prompt_ids(source, prompt)] * texts
        generator = torch.Generator().manual_seed(seed)
        drawn = sample_batch(source.model, ids, end_token_ids(source), longest, generator, cancel)
        if drawn is None:
            return
        written = [drawn.token_ids(row) for row in range(texts)]
        rewards = judge.score([[*before, *after] for before, after in written])
        groups = _group_texts(rewards, [tuple(after) for _, after in written])
        for n in counts:
            yield BestOf(n, *expected_best(groups, n), texts)


def checked_counts(counts: Iterable[int]) -> list[int]:
    """How many texts each choice is made from. Raises ParameterError."""
    check_iterable("counts", counts, tr("Give a list of whole numbers."))
    found: list[int] = to_plain_value(list(counts))
    for n in found:
        check_integer("counts", n, 1, MAX_COUNT)
    return found


def _group_texts(rewards: Sequence[float], written: Sequence[tuple[int, ...]]) -> list[tuple[float, float]]:
    """(reward, share) of each different text, the worst first."""
    count: dict[tuple[float, tuple[int, ...]], int] = {}
    for one in zip(rewards, written, strict=True):
        count[one] = count.get(one, 0) + 1
    return [(reward, number / len(rewards)) for (reward, _), number in sorted(count.items())]


def expected_best(groups: Sequence[tuple[float, float]], n: int) -> tuple[float, float, float]:
    """(mean reward, bound, divergence in nats) of the best of n drawn from texts with these rewards and shares, the
    worst first: each is the best with probability F^n − F_before^n."""
    reward = nats = below = 0.0
    for worth, share in groups:
        upto = min(1.0, below + share)
        chance = upto**n - below**n
        reward += chance * worth
        nats += chance * math.log(chance / share) if chance > 0 else 0.0
        below = upto
    return reward, kl_bound(n), nats
