"""The Scale lab: how a model that is too large for one device is trained by several.

    core.labs.scale.plan(7_500_000_000, 64, "zero1").total        # bytes per device
    core.labs.scale.schedule(stages=4, micro_batches=8)           # who computes what, and when

Importing this imports no torch.
"""

from __future__ import annotations

from core.labs.figures import decimal
from core.labs.scale import words
from core.labs.scale.arena import Arena, Block, arena
from core.labs.scale.cluster import Cluster, Layout, Reckoning, Traffic, Training, reckon
from core.labs.scale.fitting import Remedy, remedies
from core.labs.scale.options import MOST_MICRO_BATCHES, Options
from core.labs.scale.parts import Parts
from core.labs.scale.ranks.expected import PIPELINES, RUNS
from core.labs.scale.ranks.measuring import MOST as MOST_PROCESSES
from core.labs.scale.ranks.measuring import STEPS, measure, measuring
from core.labs.scale.ranks.remembering import SCHEME as ZERO_R
from core.labs.scale.ranks.remembering import Residual, remembering
from core.labs.scale.ranks.residual_words import explain_residual
from core.labs.scale.ranks.result import Measured
from core.labs.scale.ranks.watch import Progress
from core.labs.scale.ranks.words import explain_measured, explain_progress
from core.labs.scale.ring import Chunk, Hand, RingStep, ring
from core.labs.scale.ring_words import RING_TITLES, explain_hand, explain_ring
from core.labs.scale.shape import SHAPES, Shape, shape_of
from core.labs.scale.states import PRECISIONS, SCHEMES, plan, traffic
from core.labs.scale.timetable import Box, idle_share, schedule

__all__ = [
    "MOST_MICRO_BATCHES",
    "MOST_PROCESSES",
    "PIPELINES",
    "PRECISIONS",
    "RING_TITLES",
    "RUNS",
    "SCHEMES",
    "SHAPES",
    "STEPS",
    "ZERO_R",
    "Arena",
    "Block",
    "Box",
    "Chunk",
    "Cluster",
    "Hand",
    "Layout",
    "Measured",
    "Options",
    "Parts",
    "Progress",
    "Reckoning",
    "Remedy",
    "Residual",
    "RingStep",
    "Shape",
    "Traffic",
    "Training",
    "arena",
    "decimal",
    "explain_hand",
    "explain_measured",
    "explain_progress",
    "explain_residual",
    "explain_ring",
    "idle_share",
    "measure",
    "measuring",
    "plan",
    "reckon",
    "remedies",
    "remembering",
    "ring",
    "schedule",
    "shape_of",
    "traffic",
    "words",
]
