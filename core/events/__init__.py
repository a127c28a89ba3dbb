"""Events of a run: frozen dataclasses of plain numbers, strings and tuples, never tensors.

A strategy is a generator of these events; the window, the recorder, the tests and the benchmarks consume them.
Probabilities are between 0 and 1, log-probabilities natural logarithms, times in seconds, sizes in bytes.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.events.event_classes import EVENTS
    from decodescope.core.events.run import (
        AdapterUsed,
        CacheMeasured,
        CachePlan,
        CallFacts,
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
    from decodescope.core.events.search import (
        BeamCandidate,
        BeamFate,
        BeamFunnel,
        BeamsRanked,
        BeamStep,
        ChoiceReason,
        CostCurve,
        DrafterChoice,
        DraftFate,
        DraftNode,
        DraftRound,
        ExtraKind,
        Hypothesis,
        NgramPool,
        Overruled,
    )
    from decodescope.core.events.tokens import (
        MAX_METHOD_LENGTH,
        Alternative,
        LayerChoice,
        Likely,
        Method,
        Origin,
        Repeat,
        Repeats,
        ScoreSpread,
        Stage,
        StageDetail,
        StageKind,
        StepTemperature,
        SurpriseAim,
        TokenChosen,
        TokenCompared,
        TopCut,
        WatermarkSign,
        WithdrawnPhrase,
        WithdrawnToken,
        is_method_name,
    )

__all__ = sorted(_PUBLIC_NAMES)
