"""Queries of the pages: atlas, effects and twins are computed on the worker, between runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from decodescope.app.features.same_noise.state import (
    AtlasInput,
    AtlasResult,
    EffectsResult,
    TwinInput,
    TwinResult,
    varied_setting,
)
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import DecodescopeError, ModelError
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core.events import Event

_REPORT_SECONDS = 0.1
"""Minimum time between two reports of progress."""


def _throttled(report: Report) -> Callable[[object], None]:
    """Return a function that reports at most ten times a second."""
    last = 0.0

    def send(progress: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _REPORT_SECONDS:
            last = now
            report(progress)

    return send


@plain(frozen=True)
class _SameNoiseQuery(Query):
    """A query about other settings. A run that starts ends it; the result so far is kept."""

    yields_to_runs = True

    request: RunRequest

    def _load_model(self, models: LocalModels) -> core.LoadedModel:
        """Return the model of the request, loaded as selected. Raises ModelError if another one is selected."""
        if self.load.model != self.request.model:
            raise ModelError(
                tr("The model of this run, {model}, is not selected.").format(model=self.request.model),
                tr("Select it, or repeat the run."),
            )
        models.load(self.load)
        model = models.loaded_for(self.load)
        model.adapters.set(self.request.adapters or (), self.request.load.allow_pickle)
        return model

    def _prepared(self, model: core.LoadedModel, request: RunRequest) -> RunRequest:
        from decodescope.app.session.worker_jobs import trim_chat, with_phrase_ids

        return with_phrase_ids(model, trim_chat(model, request))

    def remote_result(self, model: str) -> object:
        """Raise ModelError, as the engine does not return all scores."""
        raise ModelError(
            tr("{model} returns only some probabilities, not the scores of all tokens.").format(model=model),
            tr("Choose a model on this computer."),
        )


@plain(frozen=True)
class AtlasQuery(_SameNoiseQuery):
    """Query for all texts of a seed."""

    wanted: AtlasInput

    def run(self, models: LocalModels, report: Report) -> AtlasResult:
        """Return the atlas; report its progress. Raises DecodescopeError."""
        from decodescope import core

        model, wanted, begin = self._load_model(models), self.wanted, time.monotonic()
        setting = varied_setting(wanted.setting)
        atlas = core.map_setting(
            model, self._prepared(model, self.request), wanted.setting, wanted.low, wanted.high,
            word=wanted.word if setting is not None and setting.has_word else None, max_passes=wanted.passes,
            progress=_throttled(report), cancel=self.cancel,
        )  # fmt: skip
        pieces = {token: model.pieces[token] for interval in atlas for token in interval.ids}
        return AtlasResult(atlas, pieces, time.monotonic() - begin)


@plain(frozen=True)
class EffectsQuery(_SameNoiseQuery):
    """Query for what each setting of a run did, from its events or exactly."""

    events: tuple[Event, ...]
    sequence: int
    ids: tuple[int, ...]
    is_exact: bool

    def run(self, models: LocalModels, report: Report) -> EffectsResult | None:
        """Return the effects: exact ones from the scores of the last run, or after reading the text once more."""
        from decodescope import core

        if not self.is_exact:
            return EffectsResult(core.setting_effects(self.events, sequence=self.sequence), False)
        model = self._load_model(models)
        request = self._prepared(model, self.request)
        stored = self._from_stored(models, model, request)
        if stored is None:
            scores = core.read_scores(
                model, request, self.ids, sequence=self.sequence, progress=_throttled(report), cancel=self.cancel
            )
            if self.cancel.is_set():
                return None
            stored = core.setting_effects(self.events, scores, model, request, sequence=self.sequence)
        return EffectsResult(stored, True)

    def _from_stored(
        self, models: LocalModels, model: core.LoadedModel, request: RunRequest
    ) -> core.SettingEffects | None:
        """Return the effects from the scores of the last run; None if they are of another run, or not of all tokens."""
        from decodescope import core

        if models.scores is None:
            return None
        try:
            found = core.setting_effects(self.events, models.scores, model, request, sequence=self.sequence)
        except core.errors.ParameterError:
            return None
        return found if all(one.steps == len(self.ids) for one in found) else None

    def remote_result(self, model: str) -> object:
        """Return what the events contain; raise ModelError for exact effects."""
        if self.is_exact:
            return super().remote_result(model)
        from decodescope import core

        return EffectsResult(core.setting_effects(self.events, sequence=self.sequence), False)


@plain(frozen=True)
class TwinQuery(_SameNoiseQuery):
    """Query for two runs that differ in one thing."""

    changed: RunRequest
    wanted: TwinInput
    ids: tuple[int, ...]
    """Tokens of the shown text, which is compared if nothing is drawn."""

    def run(self, models: LocalModels, report: Report) -> TwinResult:
        """Return the comparison; report the number of compared tokens. Raises DecodescopeError."""
        from decodescope import core

        model = self._load_model(models)
        other = model
        if self.wanted.kind == "model":
            other = models.load_drafters(replace(self.request, draft_names=(self.wanted.name,)))[0]
        sides = ((model, self._prepared(model, self.request)), (other, self._prepared(other, self.changed)))
        twin = core.twin(
            *sides, ids=None if self.wanted.draws else self.ids, realign=self.wanted.realigns,
            progress=_throttled(report), cancel=self.cancel,
        )  # fmt: skip
        flips, problem = self._flips(model, sides[0][1], twin)
        pieces = tuple(tuple(one.pieces[token] for token in ids) for (one, _), ids in zip(sides, twin.ids, strict=True))
        assert len(pieces) == 2
        return TwinResult(twin, flips, problem, pieces)

    def _flips(self, model: core.LoadedModel, request: RunRequest, twin: core.Twin) -> tuple[core.FlipMap | None, str]:
        """Return where the words flip for all values of the setting, or why that is not known."""
        from decodescope import core

        setting = varied_setting(self.wanted.name, model.vocabulary) if self.wanted.kind == "setting" else None
        if setting is None or setting.has_word or not self.wanted.draws or not twin.ids[0]:
            return None, ""
        try:
            return core.map_flips(
                model, request, twin.ids[0], setting.name, realign=self.wanted.realigns, cancel=self.cancel
            ), ""
        except DecodescopeError as error:
            return None, join_sentences(error.cause, error.remedy)
