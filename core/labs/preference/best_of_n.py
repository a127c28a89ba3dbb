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

from core.arguments import cancel_of, check_several, check_text, check_whole
from core.labs.arguments import check_made
from core.labs.preference.completion_sampling import draw
from core.labs.preference.events import BestOf
from core.labs.preference.limits import check_longest, check_seed, check_texts
from core.labs.preference.reward_model import RewardModel
from core.labs.preference.tokenized_texts import ends_of, prompt_ids
from core.labs.preference.training_loop import as_model, learning
from core.models.loaded_model import LoadedModel
from core.plain_values import plain_value
from resources.language import tr

COUNTS = (1, 2, 4, 8, 16)
MOST = 1_000_000


def kl_bound(n: int) -> float:
    """ln n − (n − 1)/n nats. Raises ParameterError."""
    n = plain_value(n)
    check_whole("n", n, 1, MOST)
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
    cancel = cancel_of(cancel)
    check_made("judge", judge, RewardModel)
    check_text("prompt", prompt)
    counts = counts_of(counts)
    texts, longest, seed = plain_value((texts, longest, seed))
    check_texts("texts", texts)
    check_longest(longest)
    check_seed(seed)
    source = as_model(model)
    with learning(source):
        ids = [prompt_ids(source, prompt)] * texts
        generator = torch.Generator().manual_seed(seed)
        drawn = draw(source.model, ids, ends_of(source), longest, generator, cancel)
        if drawn is None:
            return
        written = [drawn.texts(row) for row in range(texts)]
        rewards = judge.score([[*before, *after] for before, after in written])
        groups = _grouped(rewards, [tuple(after) for _, after in written])
        for n in counts:
            yield BestOf(n, *expected(groups, n), texts)


def counts_of(given: Iterable[int]) -> list[int]:
    """How many texts each choice is made from. Raises ParameterError."""
    check_several("counts", given, tr("Give a list of whole numbers."))
    found: list[int] = plain_value(list(given))
    for n in found:
        check_whole("counts", n, 1, MOST)
    return found


def _grouped(rewards: Sequence[float], written: Sequence[tuple[int, ...]]) -> list[tuple[float, float]]:
    """(reward, share) of each different text, the worst first."""
    count: dict[tuple[float, tuple[int, ...]], int] = {}
    for one in zip(rewards, written, strict=True):
        count[one] = count.get(one, 0) + 1
    return [(reward, number / len(rewards)) for (reward, _), number in sorted(count.items())]


def expected(groups: Sequence[tuple[float, float]], n: int) -> tuple[float, float, float]:
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
