"""DRY: penalizes tokens that would continue a repetition of an earlier passage, more for longer passages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.common.claim import GREEDY_CELL, Claim, greedy_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import MAX_DETAIL_TOKENS, Context, Processor
from decodescope.core.processors.score_stats import add_at_tokens, find_passages
from decodescope.resources.language import mark

if TYPE_CHECKING:
    import numpy as np
    import torch

    from decodescope.core.events import StageDetail
    from decodescope.core.processors.base import ProcessorModel, StageObserver, TokenTextSource

BASE = Parameter(
    "dry_base", mark("DRY base"), "float", 1.75,
    mark("Factor by which the penalty grows with every further token of the repeated passage."),
    minimum=1.0, maximum=10.0, soft_maximum=4.0, step=0.05, option=True, advanced=True,
)  # fmt: skip
ALLOWED = Parameter(
    "dry_allowed_length", mark("DRY allowed length"), "int", 2,
    mark("Passages shorter than this many tokens may be repeated."),
    minimum=1, maximum=10_000, soft_maximum=20, step=1, option=True, advanced=True,
)  # fmt: skip
RANGE = Parameter(
    "dry_range", mark("DRY range"), "int", 0,
    mark("How many of the last tokens are searched for the passage; 0: the full text."),
    minimum=0, maximum=1_000_000, soft_maximum=2000, step=1, option=True, advanced=True,
)  # fmt: skip
BREAKERS = (b"\n", b":", b'"', b"*")
"""A passage does not extend across these (p-e-w, text-generation-webui #5677)."""
MIN_FOLLOWED = 150
"""Minimum length to which passages are followed; further, until the penalty exceeds every score."""
_KEY = "dry_breaks"
_NOTHING = -1
"""Not a token id."""
_UNKNOWN, _UNKNOWN_BYTE = -1, b"\xff"
"""Marks a token that was not looked up yet, as a number and as a byte."""
MAX_PENALTY = 1e6
"""A penalty that exceeds every logit."""


def find_repeats(text: np.ndarray, breaks: np.ndarray, max_length: int) -> Iterator[tuple[int, int]]:
    """Yield (position, length) of each earlier passage of `text` [T] with which the text ends.

    The position is that of the token after the passage; `length` is `max_length` at most; `breaks` [T] marks tokens
    that end a passage.
    """
    import numpy as np

    last = len(text) - 1
    if last < 1 or breaks[last]:
        return
    held = np.where(breaks, _NOTHING, text)  # a token that ends a passage matches no token
    places = (text[:-1] == text[last]).nonzero()[0]
    length = 1
    while places.size and length < max_length:
        goes_on = (held[places - length] == text[last - length]) & (places >= length)
        yield from ((place + 1, length) for place in places[~goes_on].tolist())
        places = places[goes_on]
        length += 1
    yield from ((place + 1, length) for place in places.tolist())


class _BreakTable:
    """The tokens of a model that end a passage; each is looked up once, on first use."""

    def __init__(self, pieces: TokenTextSource, vocabulary: int) -> None:
        import numpy as np

        self._pieces = pieces
        self._table = np.full(vocabulary + 1, _UNKNOWN, np.int8)
        """Per token: 1 if it does, 0 if not. The last entry is for ids that are not tokens."""
        self._table[vocabulary] = 1
        self.address = int(self._table.ctypes.data), vocabulary
        """Address of the table, and the number of tokens."""

    def is_break(self, text: np.ndarray) -> np.ndarray:
        """Return bool [T] for tokens [T]."""
        import numpy as np

        text = np.minimum(text, len(self._table) - 1)
        flags: np.ndarray = self._table[text]
        if _UNKNOWN_BYTE in flags.tobytes():
            for token in set(text[flags == _UNKNOWN].tolist()):
                data = self._pieces.data(token) or b""
                self._table[token] = any(breaker in data for breaker in BREAKERS)
            flags = self._table[text]
        return flags.view(bool)


def _cached_breaks(model: ProcessorModel) -> _BreakTable:
    """Return the table, cached with the model for later runs."""
    known = model.strategy_data.setdefault(_KEY, _BreakTable(model.pieces, model.vocabulary))
    assert isinstance(known, _BreakTable)
    return known


class RepeatMatch(NamedTuple):
    """The longest repeated passage that a token would continue."""

    length: int
    distance: int
    """Distance in tokens from its latest occurrence to the next token."""
    penalty: float


class DryPenalty:
    """Logit − multiplier · base^(n − allowed) for tokens that continue a repeated passage of n ≥ allowed tokens."""

    def __init__(self, multiplier: float, context: Context) -> None:
        self._multiplier, self._model = multiplier, context.model
        self._base = float(context.settings.get(BASE.name, BASE.default))
        self._allowed = int(context.settings.get(ALLOWED.name, ALLOWED.default))
        self._window = int(context.settings.get(RANGE.name, RANGE.default))
        further = (math.log(MAX_PENALTY) - math.log(multiplier)) / math.log(self._base) if self._base > 1 else 0
        self._longest = max(MIN_FOLLOWED, self._allowed + math.ceil(further))
        self._known = _cached_breaks(context.model)
        self._matches: list[dict[int, RepeatMatch]] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] minus the penalties for the texts `ids` [B, T]."""
        self._matches = [self._search(ids, row) for row in range(len(ids))]
        return add_at_tokens(
            scores,
            {
                row: {token: -match.penalty for token, match in matches.items()}
                for row, matches in enumerate(self._matches)
            },
        )

    def _search(self, ids: torch.Tensor, row: int) -> dict[int, RepeatMatch]:
        """Return the match of each penalized token for one of the texts [B, T]."""
        window = min(self._window or ids.shape[1], ids.shape[1])
        pairs = list(self._passages(ids, row, window))
        found: dict[int, RepeatMatch] = {}
        if not pairs:
            return found
        tokens = ids[row, ids.shape[1] - window :][[place for place, _ in pairs]].tolist()
        for token, (place, length) in zip(tokens, pairs, strict=True):
            back = window - place
            known = found.get(token)
            if known is None or (length, -back) > (known.length, -known.distance):
                found[token] = RepeatMatch(length, back, self._penalty(length))
        return found

    def _passages(self, ids: torch.Tensor, row: int, window: int) -> Iterable[tuple[int, int]]:
        """Return the passages at the end of one of the texts [B, T] that have at least the allowed length."""
        quick = find_passages(ids, row, window, self._known.address, (self._allowed, self._longest))
        if quick is not None:
            return quick
        text = ids[row, ids.shape[1] - window :].cpu().numpy()
        pairs = find_repeats(text, self._known.is_break(text), self._longest)
        return ((place, length) for place, length in pairs if length >= self._allowed)

    def _penalty(self, length: int) -> float:
        """Return the penalty, which is never infinite, so that the only remaining token can still be chosen."""
        return min(self._multiplier * self._base ** (length - self._allowed), MAX_PENALTY**5)

    def make_observer(self) -> StageObserver:
        """Return an observer of the passages found at this step."""
        matches, pieces = self._matches, self._model.pieces
        return lambda row, before, after, chosen: partial(_repeat_detail, matches[row], pieces)


def _repeat_detail(matches: dict[int, RepeatMatch], pieces: TokenTextSource) -> StageDetail:
    from decodescope.core.events import Repeat, Repeats, StageDetail  # created on demand

    heaviest = sorted(matches.items(), key=lambda item: (-item[1].length, item[1].distance))
    repeats = (
        Repeat(token, pieces[token], m.distance, m.length, m.penalty, token in pieces.special)
        for token, m in heaviest[:MAX_DETAIL_TOKENS]
    )
    return StageDetail(repeats=Repeats(tuple(repeats), len(heaviest)))


def make(value: float, context: Context) -> DryPenalty:
    """Create the penalty of one run."""
    return DryPenalty(value, context)


CLAIMS = (
    Claim(
        name="dry-repeats-less",
        title=mark("DRY stops passages from repeating"),
        plain=mark("Making a word less likely if it would continue an earlier passage keeps a text from looping."),
        exact=mark("The share of repeated 4-grams is lower with greedy decoding and DRY 0.8 than without it."),
        source="p-e-w 2024, DRY: A modern repetition penalty that reliably prevents looping",
        address="https://github.com/oobabooga/text-generation-webui/pull/5677",
        baseline=GREEDY_CELL,
        tested=greedy_cell(mark("DRY 0.8"), dry_multiplier=0.8),
        measure="repetition", expects="lower", margin=0.05, max_new_tokens=160,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="dry_multiplier",
    make=make,
    order=155,
    label=mark("DRY {v}"),
    phrase=mark("the DRY penalty of {v}"),
    plain_phrase=mark("the penalty on repeated passages"),
    claims=CLAIMS,
    parameter=Parameter(
        "dry_multiplier", mark("DRY"), "float", 0.0,
        mark("Above 0, a token that would continue repeating an earlier passage loses score, more for "
            "longer passages (DRY, don't repeat yourself). 0.8 is usual."),
        minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.05, option=True, advanced=True,
    ),
    extra_parameters=(BASE, ALLOWED, RANGE),
    panel="penalties",
    shown=30,
    observe=DryPenalty.make_observer,
    score_rule="token",
)  # fmt: skip
