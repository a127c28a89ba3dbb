"""SynthID: a tournament among the likely tokens, whose winners carry a sign that can be found again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor, is_given
from resources.language import mark, tr

if TYPE_CHECKING:
    import torch
    from transformers import SynthIDTextWatermarkLogitsProcessor
    from transformers.generation.logits_process import SynthIDTextWatermarkState

    from core.parameter import Settings
    from core.processors.base import ProcessorModel, StageObserver
    from core.processors.watermarking.scores import SynthIdScorer

KEYS = Parameter(
    "synthid_keys", mark("SynthID's keys"), "text",
    "654 400 836 123 340 443 597 160 57 29 590 639 13 715 468 990 966 226 324 585 118 504 421 521 129 669 732 225 90 "
    "960",
    mark("Whole numbers, one for each round of the tournament: only who knows them finds the watermark."),
    option=True, advanced=True,
)  # fmt: skip
HISTORY = Parameter(
    "synthid_history", mark("SynthID's memory"), "int", 1024,
    mark("How many steps back a repeated context is recognised; behind one the text is left as it is."),
    minimum=1, maximum=100_000, soft_maximum=4096, step=1, option=True, advanced=True,
)  # fmt: skip
MAX_KEY_DIGITS = 18
"""Letters of a key: more digits do not fit into the 64 bits that it is kept in."""
_TABLE_SEED, _TABLE_SIZE = 0, 2**16
"""transformers' defaults."""


def parse_keys(text: str) -> list[int]:
    """The keys that are written there. Raises ValueError for what is no whole number."""
    words = text.replace(",", " ").split()
    if not words or not all(word.removeprefix("-").isdecimal() and len(word) <= MAX_KEY_DIGITS for word in words):
        raise ValueError(tr("its keys have to be whole numbers of {most} digits at most").format(most=MAX_KEY_DIGITS))
    return [int(word) for word in words]


def create_processor(length: int, options: Settings, device: torch.device) -> SynthIDTextWatermarkLogitsProcessor:
    """transformers' processor with these settings."""
    from transformers import SynthIDTextWatermarkLogitsProcessor

    keys = parse_keys(str(options.get(KEYS.name, KEYS.default)))
    history = int(options.get(HISTORY.name, HISTORY.default))
    return SynthIDTextWatermarkLogitsProcessor(int(length), keys, _TABLE_SIZE, _TABLE_SEED, history, device)


def create_detector(length: int, options: Settings, model: ProcessorModel) -> SynthIdScorer:
    """Who knows the g-values by these settings. Raises ValueError for keys that are none."""
    from core.processors.watermarking.scores import SynthIdScorer

    return SynthIdScorer(create_processor(length, options, model.device))


class SynthIDProcessor:
    """transformers' processor, and the readings of what each text shows."""

    def __init__(self, length: int, context: Context) -> None:
        self._processor = create_processor(length, context.options, context.model.device)
        self._signs = create_detector(length, context.options, context.model)
        self._start, self._seen = context.start, list[set[tuple[int, ...]]]()
        self._texts: list[list[int]] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [B, V] behind the tournament; it remembers the texts `ids` [B, T]."""
        self._texts = ids[:, max(self._start, ids.shape[1] - self._signs.width) :].tolist()
        told: torch.Tensor = self._processor(ids, scores)
        return told.masked_fill(scores.isneginf(), -float("inf"))

    def make_observer(self) -> StageObserver:
        """Of the texts of this step."""
        texts = self._texts
        if len(self._seen) != len(texts):
            self._seen = [set() for _ in texts]
        decides = [tuple(text) if len(text) == self._signs.width else () for text in texts]
        repeated = [bool(one) and one in seen for one, seen in zip(decides, self._seen, strict=True)]
        for one, seen in zip(decides, self._seen, strict=True):
            seen.add(one)

        from core.events import StageDetail  # made when something runs

        return lambda row, before, after, chosen: partial(
            StageDetail, sign=self._signs.score_token(texts[row], chosen, repeated[row])
        )

    def reorder(self, rows: torch.Tensor) -> None:
        """Row i was row `rows[i]`."""
        state: SynthIDTextWatermarkState | None = self._processor.state
        if state is not None:
            state.context = state.context.index_select(0, rows)
            state.context_history = state.context_history.index_select(0, rows)


def make(value: int, context: Context) -> SynthIDProcessor:
    """The watermark of one run. Raises ValueError for keys that are none."""
    return SynthIDProcessor(int(value), context)


PROCESSOR = Processor(
    name="synthid_length",
    make=make,
    order=244,
    label=mark("SynthID {v}"),
    phrase=mark("SynthID's watermark"),
    parameter=Parameter(
        "synthid_length", mark("SynthID"), "int", None,
        mark("How many tokens in a row, the next one among them, decide a tournament whose winner is chosen more "
             "often, by which the text can be recognised. 5 is usual."),
        minimum=2, maximum=64, soft_maximum=10, step=1, option=True, advanced=True,
    ),
    beside=(KEYS, HISTORY),
    panel="sampling_advanced",
    shown=200,
    is_on=is_given,
    samples=True,
    drafts=False,
    in_turn=True,
    follow=SynthIDProcessor.reorder,
    observe=SynthIDProcessor.make_observer,
    signs=create_detector,
)  # fmt: skip
