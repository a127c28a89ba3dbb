"""Early exit (LayerSkip, Elhoushi et al. 2024): the target's lowest layers draft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.decoding.speculation.drafters.base import Drafter, DrafterKind
from decodescope.core.decoding.speculation.drafters.draft_model import build_model_drafter
from decodescope.core.decoding.speculation.drafters.model_drafter import build_early_exit_model

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun


def build_early_exit_drafter(run: DecodingRun, number: int) -> Drafter:
    """Build a drafter from the target's first `assistant_early_exit` layers; the reduced model is kept for later
    runs.
    """
    count = int(run.settings["assistant_early_exit"])
    key = f"lower_layers/{count}"
    lower = run.model.strategy_data.get(key) or run.model.strategy_data.setdefault(
        key, build_early_exit_model(run.model, count)
    )
    return build_model_drafter(run, lower, number)


DRAFTER = DrafterKind("early_exit", build_early_exit_drafter, order=40)
