"""Inspects the layers of the model at one step: logit lens, attention, occlusion, effect of adapters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.layer_queries import (
    AdapterFinding,
    LayerAttention,
    LayerQuery,
    LayerResult,
    LayerView,
    PositionWeight,
    TokenChange,
)
from decodescope.app.state.run import Run
from decodescope.core import adapters
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import InsideError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core import AdapterChoice


@plain(frozen=True)
class LayerInspectionQuery(Query):
    """Query about the layers at a step of a run. The parts of its answer are `LayerResult`s, the last has none."""

    yields_to_runs = True

    query: LayerQuery
    ids: tuple[int, ...]
    """Prompt and text up to the queried token; for a page, up to the last token."""
    prompt_length: int
    """Number of prompt tokens; the input of the encoder, if there is one."""
    step: int
    """Index in `ids` of the queried token; for a page, of its first token."""
    media: tuple[str, ...] = ()
    """Audio and images that the run was given."""
    adapters: tuple[AdapterChoice, ...] = ()
    """Adapters of the run."""

    def run(self, models: LocalModels, report: Report) -> None:
        """Report the results in parts, using all processors unless their number is set: full texts are worth sharing,
        single steps of a small model are not. Stops early when cancelled. Raises DecodescopeError.
        """
        model = models.find(self.load)
        if model is None:
            raise InsideError(
                tr("{model} is no longer loaded, so this step cannot be inspected.").format(model=self.load.model),
                tr("Select the model again, or repeat the run."),
            )
        import torch

        from decodescope import core

        model.adapters.set(self.adapters)
        before = torch.get_num_threads()
        torch.set_num_threads(self.load.threads or max(before, core.usable_processors()))
        try:
            for part in _KINDS[self.query.kind](model, self):
                report(part)
        finally:
            torch.set_num_threads(before)

    def remote_result(self, model: str) -> object:
        """Raise InsideError, as remote models cannot be inspected."""
        raise InsideError(
            tr("{model} runs on another machine and cannot be inspected.").format(model=model),
            tr("Load a model on this machine to inspect it."),
        )


def make_inspection_query(run: Run, index: int, query: LayerQuery) -> LayerInspectionQuery:
    """Create the query for token `index` of the shown text; a page covers the whole text."""
    before = [token.id for token in run.before]
    written = [token.id for token in run.tokens]
    step = len(before) + index
    ids = (*before, *written) if query.kind == "page" else (*before, *written[: index + 1])
    if query.kind == "page":
        step = max(1, len(before))
    used, media = adapters.check_adapters(run.request.adapters or ()), tuple(map(str, run.request.media))
    return LayerInspectionQuery(query, ids, len(run.prompt), step, media, used, load=run.request.load)


def _source(model: core.LoadedModel, query: LayerInspectionQuery) -> int | None:
    return query.prompt_length if model.is_encoder_decoder else None


def _layers(model: core.LoadedModel, query: LayerInspectionQuery) -> Iterator[LayerResult]:
    from decodescope import core

    rows = core.lens(model, query.ids, query.step, source=_source(model, query), media=query.media)
    yield LayerResult((_layer_views(model, rows),), 1, 1)


def _lens_text(model: core.LoadedModel, query: LayerInspectionQuery) -> Iterator[LayerResult]:
    from decodescope import core

    total = len(query.ids) - query.step
    results = core.lens_text(
        model, query.ids, query.step, source=_source(model, query), media=query.media, cancel=query.cancel
    )  # fmt: skip
    for done, rows in enumerate(results, 1):
        yield LayerResult((_layer_views(model, rows),), done, total)


def _influence(model: core.LoadedModel, query: LayerInspectionQuery) -> Iterator[LayerResult]:
    from decodescope import core

    wanted = query.query
    results = core.occlusion(
        model,
        query.ids,
        query.step,
        wanted.other_token,
        wanted.unit,
        source=_source(model, query),
        media=query.media,
        cancel=query.cancel,
        instead=None if wanted.replacement is None else core.neutral_token(model, wanted.replacement),
    )
    for part in results:
        yield LayerResult(tuple(PositionWeight(*effect) for effect in part.effects), part.done, part.total)


def _attention(model: core.LoadedModel, query: LayerInspectionQuery) -> Iterator[LayerResult]:
    from decodescope import core

    rows = core.attention(model, query.ids, query.step, source=_source(model, query), media=query.media)
    mean = tuple(sum(column) / len(rows) for column in zip(*(row.shares for row in rows), strict=True))
    layers = [LayerAttention(row.layer, row.shares) for row in rows]
    yield LayerResult((LayerAttention(0, mean), *layers), 1, 1)


def _adapters(model: core.LoadedModel, query: LayerInspectionQuery) -> Iterator[LayerResult]:
    from decodescope import core

    source, special = _source(model, query), model.pieces.special
    found = core.adapter_effect(model, query.ids, query.step, adapters=query.adapters, source=source, media=query.media)
    changes = tuple(
        TokenChange(
            model.pieces[one.id], one.before, one.after, one.rank_before, one.rank_after, one.id == found.chosen.id,
            one.id in special,
        )
        for one in found.changes
    )  # fmt: skip
    yield LayerResult((AdapterFinding(changes, found.divergence),), 1, 1)


def _layer_views(model: core.LoadedModel, rows: tuple[core.LensRow, ...]) -> tuple[LayerView, ...]:
    return tuple(
        LayerView(
            row.layer,
            model.pieces[row.first],
            row.first_probability,
            row.probability,
            row.rank,
            row.first in model.pieces.special,
        )
        for row in rows
    )


_KINDS = {
    "layers": _layers,
    "page": _lens_text,
    "influence": _influence,
    "attention": _attention,
    "adapters": _adapters,
}
