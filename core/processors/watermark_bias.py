"""Green-list watermark: at each step a part of the vocabulary, seeded by the previous tokens, is preferred."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from decodescope.core.parameter import WATERMARK, Parameter
from decodescope.core.processors.base import Context, Processor
from decodescope.resources.language import mark

if TYPE_CHECKING:
    import torch

    from decodescope.core.parameter import Settings
    from decodescope.core.processors.base import ProcessorModel, StageObserver
    from decodescope.core.processors.watermarking.scores import GreenListScorer

RATIO = Parameter(
    "watermark_ratio", mark("Green fraction"), "float", 0.25,
    mark("Fraction of the vocabulary that is green at each step."),
    minimum=0.01, maximum=0.99, soft_maximum=0.9, step=0.05, option=True, advanced=True, group=WATERMARK,
)  # fmt: skip
KEY = Parameter(
    "watermark_key", mark("Watermark key"), "int", 15485863,
    mark("Secret seed of the green lists; the watermark can only be detected with it."),
    minimum=1, maximum=2_147_483_647, step=1, option=True, advanced=True, group=WATERMARK,
)  # fmt: skip
SCHEME = Parameter(
    "watermark_scheme", mark("Watermark hash"), "choice", "lefthash",
    mark("Whether the list depends on the previous tokens only, or also on the token itself, which is "
        "slower but harder to forge."),
    choices=("lefthash", "selfhash"), option=True, advanced=True, group=WATERMARK,
)  # fmt: skip
WIDTH = Parameter(
    "watermark_width", mark("Watermark width"), "int", 1,
    mark("How many previous tokens determine the list (with selfhash including the token itself)."),
    minimum=1, maximum=16, soft_maximum=4, step=1, option=True, advanced=True, group=WATERMARK,
)  # fmt: skip


def create_detector(bias: float, options: Settings, model: ProcessorModel) -> GreenListScorer:
    """Create the detector of green tokens for these settings, whatever the bias."""
    from transformers import WatermarkLogitsProcessor

    from decodescope.core.processors.watermarking.scores import GreenListScorer

    ratio, key, scheme, width = (options.get(p.name, p.default) for p in (RATIO, KEY, SCHEME, WIDTH))
    processor = WatermarkLogitsProcessor(
        model.vocabulary, model.device, float(ratio), float(bias), int(key), str(scheme), int(width)
    )
    return GreenListScorer(processor, float(ratio))


class GreenListProcessor:
    """Adds a bias to the scores of the green list with transformers' processor, and reports which tokens were green."""

    def __init__(self, bias: float, context: Context) -> None:
        self._signs = create_detector(bias, context.settings, context.model)
        self._start = context.start
        self._texts: list[list[int]] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] with the green tokens of the texts `ids` [B, T] raised."""
        width = self._signs.width + 1
        self._texts = ids[:, max(self._start, ids.shape[1] - width) :].tolist()
        raised: torch.Tensor = self._signs.processor(ids, scores)
        return raised

    def make_observer(self) -> StageObserver:
        """Return an observer of the texts of this step."""
        texts = self._texts

        from decodescope.core.events import StageDetail  # created on demand

        return lambda row, before, after, chosen: partial(
            StageDetail, sign=self._signs.score_token(texts[row], chosen, False)
        )


def make(value: float, context: Context) -> GreenListProcessor:
    """Create the watermark of one run."""
    return GreenListProcessor(float(value), context)


PROCESSOR = Processor(
    name="watermark_bias",
    make=make,
    order=242,
    label=mark("watermark δ {v}"),
    phrase=mark("the watermark of {v}"),
    plain_phrase=mark("the hidden watermark"),
    parameter=Parameter(
        "watermark_bias", mark("Watermark"), "float", 0.0,
        mark("Above 0, a secret part of the vocabulary gains this much score at every step, so that the "
            "text can be recognized. 2 is usual."),
        minimum=0.0, maximum=50.0, soft_maximum=6.0, step=0.25, option=True, advanced=True, group=WATERMARK,
    ),
    extra_parameters=(RATIO, KEY, SCHEME, WIDTH),
    panel="more",
    shown=200,
    drafts=False,
    observe=GreenListProcessor.make_observer,
    make_detector=create_detector,
)  # fmt: skip
