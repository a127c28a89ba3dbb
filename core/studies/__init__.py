"""Studies: many runs from one file, with measures, intervals and a report. Importing this package imports no torch."""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.studies.runner import StudyProgress
    from decodescope.core.studies.statistics import (
        MIN_PROMPTS,
        Difference,
        MeanEstimate,
        Vote,
        best_of_k,
        difference,
        estimate_mean,
        holm,
        majority,
        pass_at_k,
        prompts_for_half_width,
        vote_accuracy,
    )
    from decodescope.core.studies.study import Study
    from decodescope.core.studies.study_file import (
        StudyCell,
        StudyJob,
        StudyModel,
        StudyPlan,
        StudyPrompt,
        format_value,
        label_of,
        parse_study,
        plan_jobs,
        read_study,
    )
    from decodescope.core.studies.study_summary import (
        CellSummary,
        PilotEstimate,
        StudySummary,
        estimate_text,
        interval_text,
        number_text,
        p_text,
        pilot_text,
        summary_text,
    )
    from decodescope.core.studies.study_text import format_toml, set_value, toml_value
    from decodescope.core.studies.text_measures import Row, StudyMeasure, default_measures, make_measure, measure_names

__all__ = sorted(_PUBLIC_NAMES)
