"""A draft model as a drafter: directly if its tokens are the target's, else by retokenization."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from decodescope.core.caches.tensors.continuation_probe import draft_cache
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.speculation.drafters.base import DrafterKind
from decodescope.core.decoding.speculation.drafters.compatibility import has_same_tokens
from decodescope.core.decoding.speculation.drafters.model_drafter import ModelDrafter, PassReader
from decodescope.core.decoding.speculation.drafters.retokenizing_drafter import (
    ModelVocabulary,
    OffsetTokenizer,
    RetokenizingDrafter,
)
from decodescope.core.decoding.speculation.drafters.small_model import build_numpy_draft_model
from decodescope.core.decoding.speculation.tree import NodePipeline
from decodescope.core.decoding.speculation.tree_passes import TreePasses
from decodescope.core.models.loaded_model import LoadedModel

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun


def build_model_drafter(run: DecodingRun, model: LoadedModel, number: int) -> ModelDrafter | RetokenizingDrafter:
    """Build the drafter of one draft model: by retokenization if its tokens are not those of the target."""
    reader: PassReader = build_numpy_draft_model(model) or _tensor_passes(run, model)
    if not has_same_tokens(run.model, model):
        return RetokenizingDrafter(
            model.name,
            reader,
            _model_vocabulary(model),
            _model_vocabulary(run.model),
            number,
            run.is_cancelled,
            model.context,
            model.device,
            model.parameters,
        )
    stages = [stage for stage in run.pipeline.stages if stage.processor.drafts]
    return ModelDrafter(
        model.name, reader, NodePipeline(stages), run.generator, number, run.is_cancelled, run.model.vocabulary,
        model.context, model.parameters, run.model.readable_ids, model.readable_ids,
    )  # fmt: skip


def _model_vocabulary(model: LoadedModel) -> ModelVocabulary:
    """Return a model's tokenizer and end tokens."""
    named = model.generation_config.eos_token_id
    ends = [named] if isinstance(named, int) else [] if named is None else list(named)
    ids = min(model.vocabulary, model.readable_ids)
    return ModelVocabulary(
        OffsetTokenizer(model.tokenizer, model.pieces), ids, frozenset(ends), ends[0] if ends else None
    )


def _tensor_passes(run: DecodingRun, model: LoadedModel) -> TreePasses:
    forward = Forward(model, draft_cache(model))
    if (perceived := run.inputs.media_for(model)) is not None:
        forward.set_media(perceived)
    elif model.is_encoder_decoder:
        forward.encode(torch.tensor([run.prompt_ids], device=model.device))
    return TreePasses(forward)


def build_requested_model_drafter(run: DecodingRun, number: int) -> ModelDrafter | RetokenizingDrafter:
    """Build the drafter of the request's draft model `number`, counted from 0."""
    return build_model_drafter(run, run.request.drafters[number], number)


DRAFTER = DrafterKind("draft_model", build_requested_model_drafter, order=10)
