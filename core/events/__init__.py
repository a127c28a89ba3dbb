"""What a run says of itself: frozen dataclasses of plain numbers, strings and tuples, never tensors.

A strategy is a generator of these events; the window, the recorder, the tests and the benchmarks consume them.
Probabilities are shares of 1, log-probabilities natural logarithms, times seconds, sizes bytes.
"""

# Annotations are types here, not strings: dataclasses are made of them sooner.

from core.events.beams import BeamCandidate, BeamFate, BeamsRanked, BeamStep, Hypothesis, Overruled
from core.events.caches import CacheMeasured, CachePlan
from core.events.drafts import (
    ChoiceReason,
    CostCurve,
    DrafterChoice,
    DraftFate,
    DraftNode,
    DraftRound,
    ExtraKind,
    NgramPool,
)
from core.events.run import (
    Ending,
    Event,
    Finished,
    MediumKind,
    MediumPlace,
    MediumRead,
    Metrics,
    ModelIdentity,
    Notice,
    NoticeKind,
    Prefilled,
    PromptToken,
    RunEnd,
    RunStarted,
    SequenceFinished,
)
from core.events.stages import (
    Likely,
    Repeat,
    Repeats,
    ScoreSpread,
    Stage,
    StageDetail,
    StageKind,
    StepTemperature,
    SurpriseAim,
    TopCut,
    WatermarkSign,
)
from core.events.tokens import Alternative, LayerChoice, Method, Origin, TokenChosen, TokenCompared

__all__ = [
    "EVENTS",
    "Alternative",
    "BeamCandidate",
    "BeamFate",
    "BeamStep",
    "BeamsRanked",
    "CacheMeasured",
    "CachePlan",
    "ChoiceReason",
    "CostCurve",
    "DraftFate",
    "DraftNode",
    "DraftRound",
    "DrafterChoice",
    "Ending",
    "Event",
    "ExtraKind",
    "Finished",
    "Hypothesis",
    "LayerChoice",
    "Likely",
    "MediumKind",
    "MediumPlace",
    "MediumRead",
    "Method",
    "Metrics",
    "ModelIdentity",
    "NgramPool",
    "Notice",
    "NoticeKind",
    "Origin",
    "Overruled",
    "Prefilled",
    "PromptToken",
    "Repeat",
    "Repeats",
    "RunEnd",
    "RunStarted",
    "ScoreSpread",
    "SequenceFinished",
    "Stage",
    "StageDetail",
    "StageKind",
    "StepTemperature",
    "SurpriseAim",
    "TokenChosen",
    "TokenCompared",
    "TopCut",
    "WatermarkSign",
]

EVENTS: tuple[type[Event], ...] = (
    RunStarted,
    Prefilled,
    TokenChosen,
    TokenCompared,
    BeamStep,
    BeamsRanked,
    DraftRound,
    CostCurve,
    SequenceFinished,
    CacheMeasured,
    CachePlan,
    Notice,
    Finished,
)
"""Every event, in the order in which the format of files lists them."""
