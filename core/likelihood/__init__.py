"""Compute how likely an answer is, and which settings wrote it.

    bounds = core.pattern_probability(model, request, ["Yes", "No"])
    found = core.infer_settings(model, text, given=prompt)

Importing this package imports no torch.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _NAMES:
    from decodescope.core.likelihood.pattern_probability import (
        AnswerPrefix,
        PatternProbability,
        PatternProgress,
        ProbabilityBounds,
        pattern_probability,
    )
    from decodescope.core.likelihood.sentences import (
        bounds_text,
        explain_pattern,
        explain_posterior,
        probability_text,
        setting_name,
        value_text,
    )
    from decodescope.core.likelihood.setting_posterior import (
        OFF,
        ORDERS,
        SETTINGS,
        Order,
        PosteriorProgress,
        Reading,
        Ridge,
        SettingPosterior,
        TokenEvidence,
        infer_settings,
        prompt_readings,
    )
    from decodescope.core.likelihood.text_pattern import PLACES, Place, TextPattern, as_patterns
