"""Green lists: at each step a part of the vocabulary, drawn by the tokens before, is preferred, and found again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import torch

    from core.parameter import Settings
    from core.processors.base import ProcessorModel, StageObserver
    from core.processors.watermarking.scores import GreenListScorer

RATIO = Parameter(
    "watermark_ratio", mark("Green share"), "float", 0.25,
    mark("Which part of the vocabulary is green at each step."),
    minimum=0.01, maximum=0.99, soft_maximum=0.9, step=0.05, option=True, advanced=True,
)  # fmt: skip
KEY = Parameter(
    "watermark_key", mark("Watermark's key"), "int", 15485863,
    mark("The secret from which green lists are drawn: only who knows it finds the watermark."),
    minimum=1, maximum=2_147_483_647, step=1, option=True, advanced=True,
)  # fmt: skip
SCHEME = Parameter(
    "watermark_scheme", mark("Watermark's hash"), "choice", "lefthash",
    mark("Whether the tokens before alone draw the list, or the token itself too: slower, and harder to forge."),
    choices=("lefthash", "selfhash"), option=True, advanced=True,
)  # fmt: skip
WIDTH = Parameter(
    "watermark_width", mark("Watermark's width"), "int", 1,
    mark("How many tokens before draw the list (with selfhash the token itself among them)."),
    minimum=1, maximum=16, soft_maximum=4, step=1, option=True, advanced=True,
)  # fmt: skip


def create_detector(bias: float, options: Settings, model: ProcessorModel) -> GreenListScorer:
    """Who knows green from red by these settings, whatever the bias."""
    from transformers import WatermarkLogitsProcessor

    from core.processors.watermarking.scores import GreenListScorer

    ratio, key, scheme, width = (options.get(p.name, p.default) for p in (RATIO, KEY, SCHEME, WIDTH))
    processor = WatermarkLogitsProcessor(
        model.vocabulary, model.device, float(ratio), float(bias), int(key), str(scheme), int(width)
    )
    return GreenListScorer(processor, float(ratio))


class GreenListProcessor:
    """Adds a bias to the scores of the green list, as transformers does it, and knows which token was green."""

    def __init__(self, bias: float, context: Context) -> None:
        self._signs = create_detector(bias, context.options, context.model)
        self._start = context.start
        self._texts: list[list[int]] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] with the green ones of the texts `ids` [B, T] raised."""
        width = self._signs.width + 1
        self._texts = ids[:, max(self._start, ids.shape[1] - width) :].tolist()
        raised: torch.Tensor = self._signs.processor(ids, scores)
        return raised

    def make_observer(self) -> StageObserver:
        """Of the texts of this step."""
        texts = self._texts

        from core.events import StageDetail  # made when something runs

        return lambda row, before, after, chosen: partial(
            StageDetail, sign=self._signs.score_token(texts[row], chosen, False)
        )


def make(value: float, context: Context) -> GreenListProcessor:
    """The watermark of one run."""
    return GreenListProcessor(float(value), context)


PROCESSOR = Processor(
    name="watermark_bias",
    make=make,
    order=242,
    label=mark("watermark δ {v}"),
    phrase=mark("the watermark of {v}"),
    parameter=Parameter(
        "watermark_bias", mark("Watermark"), "float", 0.0,
        mark("Above 0, a secret part of the vocabulary gains this much score at every step, by which the text can be "
             "recognised. 2 is usual."),
        minimum=0.0, maximum=50.0, soft_maximum=6.0, step=0.25, option=True, advanced=True,
    ),
    beside=(RATIO, KEY, SCHEME, WIDTH),
    panel="more",
    shown=200,
    drafts=False,
    observe=GreenListProcessor.make_observer,
    signs=create_detector,
)  # fmt: skip
