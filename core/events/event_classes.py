"""The classes of events that a run consists of."""

from decodescope.core.events.run import (
    CacheMeasured,
    CachePlan,
    Event,
    Finished,
    Notice,
    Prefilled,
    RunStarted,
    SequenceFinished,
)
from decodescope.core.events.search import BeamsRanked, BeamStep, CostCurve, DraftRound
from decodescope.core.events.tokens import TokenChosen, TokenCompared

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
"""Every event class, in the order of the file format."""
