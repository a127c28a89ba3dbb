"""Queries of the window on likelihoods: bounds of a pattern's probability, and the posterior of settings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import ModelError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core.likelihood import Order, PatternProbability, PosteriorProgress, SettingPosterior, TextPattern

_REPORT_SECONDS = 0.2
"""Interval of partial results."""
AUTOMATIC, PLAIN, WITHOUT_START, CHAT = "automatic", "text", "without start token", "chat"
"""Ways to read a prompt; the last three are names of `core.prompt_readings`."""


class _LocalQuery(Query):
    """A query that needs all scores of a model."""

    def remote_result(self, model: str) -> object:
        """Raise ModelError: an engine does not return all scores."""
        raise ModelError(
            tr("{model} returns only some probabilities, and all are needed here.").format(model=model),
            tr("Select a model on this computer."),
        )


@plain(frozen=True)
class PatternQuery(_LocalQuery):
    """Query for the probability that the answer to a request matches one of several patterns."""

    yields_to_runs = True

    request: RunRequest
    patterns: tuple[TextPattern, ...]
    tolerance: float
    max_prefixes: int

    def run(self, models: LocalModels, report: Report) -> PatternProbability:
        """Search with the model of the request; report the result so far several times a second."""
        from decodescope import core
        from decodescope.app.session.worker_jobs import with_phrase_ids

        models.load(self.load)
        model, last = models.loaded_for(self.load), time.monotonic()

        def show(progress: core.PatternProgress) -> None:
            nonlocal last
            if time.monotonic() - last >= _REPORT_SECONDS:
                report(progress.snapshot())
                last = time.monotonic()

        return core.pattern_probability(
            model, with_phrase_ids(model, self.request), self.patterns, tolerance=self.tolerance,
            max_prefixes=self.max_prefixes, progress=show, cancel=self.cancel,
        )  # fmt: skip


@plain(frozen=True)
class PosteriorQuery(_LocalQuery):
    """Query for the settings that wrote a text."""

    yields_to_runs = True

    text: str
    """The text; ignored if there are ids."""
    prompt: str
    ids: tuple[int, ...] = ()
    """The tokens that were written."""
    prompt_ids: tuple[int, ...] = ()
    reading: str = AUTOMATIC
    order: Order = "temperature_first"
    known: dict[str, Any] = field(default_factory=dict)
    """Settings besides the four."""

    def run(self, models: LocalModels, report: Report) -> SettingPosterior:
        """Infer with the selected model; report the progress several times a second."""
        from decodescope import core

        models.load(self.load)
        model, last = models.loaded_for(self.load), time.monotonic()

        def show(progress: PosteriorProgress) -> None:
            nonlocal last
            if time.monotonic() - last >= _REPORT_SECONDS:
                report(progress)
                last = time.monotonic()

        text: str | Sequence[int] = list(self.ids) if self.ids else self.text
        readings = self._readings(model)
        given = next(iter(readings.values()), None) if len(readings) < 2 else None
        return core.infer_settings(
            model, text, given=given, readings=readings if given is None and readings else None, known=self.known,
            order=self.order, progress=show, cancel=self.cancel,
        )  # fmt: skip

    def _readings(self, model: Any) -> dict[str, object]:
        """Return the prompts to try, by name; none for a text without a prompt."""
        from decodescope import core

        if self.prompt_ids:
            return {PLAIN: list(self.prompt_ids)}
        if not self.prompt:
            return {}
        if self.reading == CHAT:
            return {CHAT: [{"role": "user", "content": self.prompt}]}
        known = core.prompt_readings(model, self.prompt)
        return known if self.reading == AUTOMATIC else {self.reading: known.get(self.reading, known[PLAIN])}
