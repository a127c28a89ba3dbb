"""XTC: sometimes removes the likeliest tokens, so that the text becomes less predictable."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import MAX_DETAIL_TOKENS, Context, Processor
from decodescope.core.processors.score_stats import LikelyTokens, add_at_tokens, likely_tokens
from decodescope.resources.language import mark

if TYPE_CHECKING:
    import torch

    from decodescope.core.events import StageDetail
    from decodescope.core.processors.base import DetailFactory, StageObserver, TokenTextSource

THRESHOLD = Parameter(
    "xtc_threshold", mark("XTC threshold"), "float", 0.1,
    mark("Of the tokens with at least this probability, XTC removes all but the least likely one."),
    minimum=0.0, maximum=1.0, soft_maximum=0.5, step=0.01, exclusive=True, option=True, advanced=True,
)  # fmt: skip


def tokens_to_remove(likely_tokens: LikelyTokens) -> list[int]:
    """Return the tokens that XTC removes among those with p ≥ threshold: all but the least likely one (of equal ones,
    the first).
    """
    least_likely = min(zip(likely_tokens.probabilities, likely_tokens.tokens, strict=True), default=None)
    return [
        token
        for share, token in zip(likely_tokens.probabilities, likely_tokens.tokens, strict=True)
        if (share, token) != least_likely
    ]


class XtcProcessor:
    """Removes top choices with a given probability per step, unless that includes the end token or a line break (p-e-w
    2024, text-generation-webui #6335).
    """

    def __init__(self, chance: float, context: Context) -> None:
        self._chance, self._context = chance, context
        self._threshold = float(context.settings.get(THRESHOLD.name, THRESHOLD.default))
        self._ends = set() if context.eos is None else set(context.eos.tolist())
        self._random_numbers: list[float] = []
        self._likely: dict[int, LikelyTokens] = {}
        """Likely tokens by row, for rows in which the removal was drawn."""
        self._removed: dict[int, list[int]] = {}

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] with removed tokens at −∞; each row uses one random number."""
        self._random_numbers, self._likely, self._removed = self._context.rng(len(scores)).tolist(), {}, {}
        for row, die in enumerate(self._random_numbers):
            if die < self._chance:
                self._remove(scores, row)
        if not self._removed:
            return scores
        return add_at_tokens(scores, {row: dict.fromkeys(removed, -math.inf) for row, removed in self._removed.items()})

    def _remove(self, scores: torch.Tensor, row: int) -> None:
        max_count = int(
            min(1 / self._threshold + 1, scores.shape[-1])
        )  # no more tokens than this can reach the threshold
        found = self._likely[row] = likely_tokens(scores, self._threshold, max_count, row)
        removed = tokens_to_remove(found)
        if removed and not self._should_keep(removed):
            self._removed[row] = removed

    def _should_keep(self, removed: list[int]) -> bool:
        pieces = self._context.model.pieces
        return any(token in self._ends or b"\n" in (pieces.data(token) or b"") for token in removed)

    def make_observer(self) -> StageObserver:
        """Return an observer of the random number of this step."""
        dice, known, taken, pieces = self._random_numbers, self._likely, self._removed, self._context.model.pieces

        chance, threshold = self._chance, self._threshold

        def observe(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> DetailFactory:
            found = known.get(row) or likely_tokens(before[None], threshold, MAX_DETAIL_TOKENS)
            return partial(_cut_detail, (chance, dice[row], threshold), found, len(taken.get(row, ())), pieces)

        return observe


def _cut_detail(
    numbers: tuple[float, float, float], likely_tokens: LikelyTokens, removed: int, pieces: TokenTextSource
) -> StageDetail:
    """Create the detail; `numbers`: chance, random number and threshold."""
    from decodescope.core.events import (
        Likely,  # created on demand
        StageDetail,
        TopCut,
    )

    pairs = zip(likely_tokens.tokens[:MAX_DETAIL_TOKENS], likely_tokens.probabilities, strict=False)
    likely = tuple([Likely(token, pieces[token], share, token in pieces.special) for token, share in pairs])
    return StageDetail(top_cut=TopCut(*numbers, likely, likely_tokens.total, removed))


def make(value: float, context: Context) -> XtcProcessor:
    """Create the processor of one run."""
    return XtcProcessor(float(value), context)


PROCESSOR = Processor(
    name="xtc_probability",
    make=make,
    order=235,
    label=mark("XTC {v}"),
    plain_phrase=mark("the random removal of the likeliest"),
    kind="ban",
    parameter=Parameter(
        "xtc_probability", mark("XTC"), "float", 0.0,
        mark("How often the likeliest tokens are removed (XTC, exclude top choices). 0: never; 0.5 is usual."),
        minimum=0.0, maximum=1.0, step=0.05, option=True, advanced=True,
    ),
    extra_parameters=(THRESHOLD,),
    panel="sampling_advanced",
    shown=70,
    samples=True,
    uses_scores_only=True,
    drafts=False,
    uses_rng=True,
    observe=XtcProcessor.make_observer,
)  # fmt: skip
