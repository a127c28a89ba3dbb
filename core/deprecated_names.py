"""Former public names. `core` and `decodescope` still resolve them and emit a DeprecationWarning."""

from __future__ import annotations

import warnings

DEPRECATED_NAMES = {
    "Foretold": "ThroughputEstimate",
    "KeptScores": "ScoreCache",
    "Occluded": "OcclusionProgress",
    "Quickened": "BuildResult",
    "Saying": "SentenceTemplate",
    "Takes": "Modalities",
    "WhatIf": "StepCounterfactual",
    "foretell": "estimate_throughput",
    "has_quick_step": "has_native_step",
    "quick_standing": "kernel_status",
    "quicken": "build_kernels",
    "switch_quick_steps": "enable_native_steps",
    "what_if": "replay_step",
}
"""Former name → current name. Every current name is in `core.__all__`; the former ones are not."""
SUBPACKAGE_NAMES = {
    "core.labs.scale": {
        "MOST_MICRO_BATCHES": "MAX_MICRO_BATCHES",
        "MOST_PROCESSES": "MAX_PROCESSES",
        "Reckoning": "SetupEstimate",
        "reckon": "estimate_setup",
        "remembering": "measuring_memory",
    },
}
"""The same for other public modules, by module."""


def current_name(module: str, name: str) -> str:
    """Return the current name of a former one, with a DeprecationWarning; any other name is returned unchanged.

    Call it from a module's `__getattr__`: the warning then refers to the line that used the former name.
    """
    current = SUBPACKAGE_NAMES.get(module, DEPRECATED_NAMES).get(name)
    if current is None:
        return name
    warnings.warn(f"{module}.{name} is deprecated. Use {module}.{current}.", DeprecationWarning, stacklevel=3)
    return current
