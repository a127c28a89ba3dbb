"""Replays one step of a finished run under other settings (“What if”)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.run import Run
from decodescope.app.state.setting_changes import changed_settings
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core import strategies
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import ModelError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.app.session.local_models import LocalModels


@plain(frozen=True)
class StepReplayQuery(Query):
    """Query to replay one step of a finished run under other settings."""

    replaces_earlier = True

    request: RunRequest
    """The run's request."""
    ids: tuple[int, ...]
    """Tokens of the shown text."""
    step: int
    sequence: int
    changes: Mapping[str, Any]
    """Changed settings by name, as `core.replay_step` expects them."""

    def run(self, models: LocalModels, report: Report) -> core.StepCounterfactual:
        """Replay the step from the stored logits, or with a forward pass if the model is loaded. Raises
        DecodescopeError.
        """
        from decodescope import core
        from decodescope.app.session.worker_jobs import with_phrase_ids

        model = models.find(self.request.model)
        if model is None:
            raise ModelError(
                tr("The model of this run, {model}, is not loaded, so this step cannot be recalculated.").format(
                    model=self.request.model
                ),
                tr("Select it, or repeat the run."),
            )
        changed = with_phrase_ids(model, replace(self.request, config=self.changes, options={}))
        drafters = tuple(models.load_drafters(self.request))
        return core.replay_step(
            model,
            replace(with_phrase_ids(model, self.request), drafters=drafters),
            self.ids,
            self.step,
            changed.settings,
            sequence=self.sequence,
            scores=models.scores,
        )

    def remote_result(self, model: str) -> object:
        """Raise ModelError, as the engine does not return all logits."""
        raise ModelError(
            tr("{model} returns only some probabilities, not the scores that other settings would change.").format(
                model=model
            ),
            tr("Run again with these settings."),
        )


def make_replay_query(run: Run | None, current: RunRequest) -> StepReplayQuery | None:
    """Return a replay of the selected step under the current settings; None if no step is selected or the result would
    not differ.
    """
    if run is None or run.selected is None or run.outcome is None or run.is_scored:
        return None
    if run.request.strategy != current.strategy or not _has_funnel(run, run.selected):
        return None
    changes = changed_settings(strategies.registry[current.strategy], run.request.settings, current.settings)
    if not changes:
        return None
    token, ids = run.tokens[run.selected], tuple(each.id for each in run.tokens)
    return StepReplayQuery(run.request, ids, token.step, token.sequence, changes, load=run.request.load)


def _has_funnel(run: Run, index: int) -> bool:
    return index < len(run.tokens) and bool(run.tokens[index].funnel)
