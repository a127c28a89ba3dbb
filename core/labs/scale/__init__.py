"""The Scale lab: how a model that is too large for one device is trained on several.

    core.labs.scale.plan(7_500_000_000, 64, "zero1").total        # bytes per device
    core.labs.scale.schedule(stages=4, micro_batches=8)           # who computes what, and when

Importing this package imports no torch.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    import decodescope.core.labs.scale.words as words
    from decodescope.core.labs.formatting import decimal_bytes
    from decodescope.core.labs.scale.allocator_arena import Arena, Block, arena
    from decodescope.core.labs.scale.cluster import (
        Cluster,
        Layout,
        Remedy,
        SetupEstimate,
        Traffic,
        Training,
        estimate_setup,
        remedies,
    )
    from decodescope.core.labs.scale.model_shape import SHAPES, Shape, shape_of
    from decodescope.core.labs.scale.pipeline_schedule import MAX_MICRO_BATCHES, Box, Options, idle_share, schedule
    from decodescope.core.labs.scale.ranks.expected_load import PIPELINES, RUNS
    from decodescope.core.labs.scale.ranks.measurement_words import explain_measured, explain_progress
    from decodescope.core.labs.scale.ranks.residual_memory import SCHEME as ZERO_R
    from decodescope.core.labs.scale.ranks.residual_memory import Residual, explain_residual, measuring_memory
    from decodescope.core.labs.scale.ranks.run_measurement import MOST as MAX_PROCESSES
    from decodescope.core.labs.scale.ranks.run_measurement import (
        STEPS,
        RankMeasurement,
        RankProgress,
        measure,
        measuring,
    )
    from decodescope.core.labs.scale.ring_collectives import (
        RING_TITLES,
        Chunk,
        Hand,
        RingStep,
        explain_hand,
        explain_ring,
        ring,
    )
    from decodescope.core.labs.scale.zero_states import PRECISIONS, SCHEMES, Parts, plan, traffic

__all__ = sorted(_PUBLIC_NAMES)
