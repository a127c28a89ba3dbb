"""SynthID watermark: a tournament among likely tokens whose winners can be detected later."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from decodescope.core.parameter import WATERMARK, Parameter
from decodescope.core.processors.base import Context, Processor, is_given
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch
    from transformers import SynthIDTextWatermarkLogitsProcessor
    from transformers.generation.logits_process import SynthIDTextWatermarkState

    from decodescope.core.parameter import Settings
    from decodescope.core.processors.base import ProcessorModel, StageObserver
    from decodescope.core.processors.watermarking.scores import SynthIdScorer

KEYS = Parameter(
    "synthid_keys", mark("SynthID keys"), "text",
    "654 400 836 123 340 443 597 160 57 29 590 639 13 715 468 990 966 226 324 585 118 504 421 521 129 669 732 225 90 "
    "960",
    mark("Integers, one for each tournament round; the watermark can only be detected with them."),
    option=True, advanced=True, group=WATERMARK,
)  # fmt: skip
HISTORY = Parameter(
    "synthid_history", mark("SynthID history"), "int", 1024,
    mark("How many steps back a repeated context is detected; after such a context no watermark is added."),
    minimum=1, maximum=100_000, soft_maximum=4096, step=1, option=True, advanced=True, group=WATERMARK,
)  # fmt: skip
MAX_KEY_DIGITS = 18
"""Maximum digits of a key, so that it fits into 64 bits."""
_TABLE_SEED, _TABLE_SIZE = 0, 2**16
"""transformers' defaults."""


def parse_keys(text: str) -> list[int]:
    """Parse the keys. Raises ValueError for anything but integers."""
    words = text.replace(",", " ").split()
    if not words or not all(word.removeprefix("-").isdecimal() and len(word) <= MAX_KEY_DIGITS for word in words):
        raise ValueError(tr("its keys must be integers of at most {most} digits").format(most=MAX_KEY_DIGITS))
    return [int(word) for word in words]


def create_processor(length: int, options: Settings, device: torch.device) -> SynthIDTextWatermarkLogitsProcessor:
    """Create transformers' processor with these settings."""
    from transformers import SynthIDTextWatermarkLogitsProcessor

    keys = parse_keys(str(options.get(KEYS.name, KEYS.default)))
    history = int(options.get(HISTORY.name, HISTORY.default))
    return SynthIDTextWatermarkLogitsProcessor(int(length), keys, _TABLE_SIZE, _TABLE_SEED, history, device)


def create_detector(length: int, options: Settings, model: ProcessorModel) -> SynthIdScorer:
    """Create the detector of g-values for these settings. Raises ValueError for invalid keys."""
    from decodescope.core.processors.watermarking.scores import SynthIdScorer

    return SynthIdScorer(create_processor(length, options, model.device))


class SynthIDProcessor:
    """transformers' SynthID processor, which also keeps the texts for its observer."""

    def __init__(self, length: int, context: Context) -> None:
        self._processor = create_processor(length, context.settings, context.model.device)
        self._signs = create_detector(length, context.settings, context.model)
        self._start, self._seen = context.start, list[set[tuple[int, ...]]]()
        self._texts: list[list[int]] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities [B, V] after the tournament, and keep the texts `ids` [B, T]."""
        self._texts = ids[:, max(self._start, ids.shape[1] - self._signs.width) :].tolist()
        processed: torch.Tensor = self._processor(ids, scores)
        return processed.masked_fill(scores.isneginf(), -float("inf"))

    def make_observer(self) -> StageObserver:
        """Return an observer of the texts of this step."""
        texts = self._texts
        if len(self._seen) != len(texts):
            self._seen = [set() for _ in texts]
        decides = [tuple(text) if len(text) == self._signs.width else () for text in texts]
        repeated = [bool(one) and one in seen for one, seen in zip(decides, self._seen, strict=True)]
        for one, seen in zip(decides, self._seen, strict=True):
            seen.add(one)

        from decodescope.core.events import StageDetail  # created on demand

        return lambda row, before, after, chosen: partial(
            StageDetail, sign=self._signs.score_token(texts[row], chosen, repeated[row])
        )

    def reorder(self, rows: torch.Tensor) -> None:
        """Reorder the rows: new row i is old row `rows[i]`."""
        state: SynthIDTextWatermarkState | None = self._processor.state
        if state is not None:
            state.context = state.context.index_select(0, rows)
            state.context_history = state.context_history.index_select(0, rows)


def make(value: int, context: Context) -> SynthIDProcessor:
    """Create the watermark of one run. Raises ValueError for invalid keys."""
    return SynthIDProcessor(int(value), context)


PROCESSOR = Processor(
    name="synthid_length",
    make=make,
    order=244,
    label=mark("SynthID {v}"),
    phrase=mark("the SynthID watermark"),
    plain_phrase=mark("the hidden tournament watermark"),
    parameter=Parameter(
        "synthid_length", mark("SynthID"), "int", None,
        mark("Number of consecutive tokens, including the next one, that determine a tournament whose "
            "winner is chosen more often, so that the text can be recognized. 5 is usual."),
        minimum=2, maximum=64, soft_maximum=10, step=1, option=True, advanced=True, group=WATERMARK,
    ),
    extra_parameters=(KEYS, HISTORY),
    panel="sampling_advanced",
    shown=200,
    is_on=is_given,
    samples=True,
    drafts=False,
    needs_every_token=True,
    reorder_rows=SynthIDProcessor.reorder,
    observe=SynthIDProcessor.make_observer,
    make_detector=create_detector,
)  # fmt: skip
