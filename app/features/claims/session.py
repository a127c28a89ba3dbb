"""The query that tests a claim on a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import StudyError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core.claims import ClaimOutcome


@plain(frozen=True)
class ClaimQuery(Query):
    """Query to test a claim; reports its progress. A run that starts ends it early, like Stop."""

    yields_to_runs = True
    is_reproducible = False

    claim: str
    """Name of the claim."""
    draft_names: tuple[str, ...] = ()
    """Draft models; none for the bundled one."""

    def run(self, models: LocalModels, report: Report) -> ClaimOutcome:
        """Return the outcome; load the models first. Raises DecodescopeError."""
        from decodescope import core

        models.load(self.load)
        model = models.loaded_for(self.load)
        entry = core.claims.named_claim(self.claim)
        needs_draft = entry.claim.baseline.uses_draft or entry.claim.tested.uses_draft
        names = (self.draft_names or tuple(filter(None, (core.claims.find_draft(model),)))) if needs_draft else ()
        drafters = models.load_drafters(RunRequest("", load=self.load, draft_names=names)) if names else None
        return core.try_claim(model, self.claim, drafters=drafters, cancel=self.cancel, progress=report)

    def remote_result(self, model: str) -> object:
        """Raise StudyError: an engine has its own samplers, and returns only some probabilities."""
        raise StudyError(
            tr("{model} runs in another engine, and claims are tested with this program's own strategies.").format(
                model=model
            ),
            tr("Choose a model on this computer."),
        )
