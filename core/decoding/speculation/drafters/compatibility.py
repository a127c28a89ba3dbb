"""Compatibility of drafter and target. Does not import torch at module level, so that a picker can check early."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from decodescope.core.models.loaded_model import LoadedModel

    ComparisonTable = WeakKeyDictionary[PreTrainedTokenizerBase, tuple[tuple[int, int], bool]]

_VOCABULARY_COMPARISONS: WeakKeyDictionary[PreTrainedTokenizerBase, ComparisonTable] = WeakKeyDictionary()
"""Cached comparisons of two tokenizers: their sizes at that time, and whether the vocabularies were equal.

Every run compares, and reading a vocabulary takes a while.
"""


def target_unsupported_reason(model: LoadedModel) -> str | None:
    """Return why rejected tokens cannot be removed from this model's cache; None if they can."""
    if model.is_recurrent:
        return tr("{model} has a recurrent state, from which rejected draft tokens cannot be removed.").format(
            model=model.name
        )
    if not model.model._supports_default_dynamic_cache():
        return tr("{model} uses its own kind of cache, from which rejected tokens cannot be removed.").format(
            model=model.name
        )
    return _multi_token_unsupported_reason(model)


def _multi_token_unsupported_reason(model: LoadedModel) -> str | None:
    from decodescope.core.caches.tensors.continuation_probe import memory_kind  # a model is given, so torch is loaded
    from decodescope.core.decoding.speculation.tree_support import supports_drafts

    if memory_kind(model) == "kept" and not supports_drafts(model):
        return tr("{model} gives different results for several tokens at once than one by one.").format(
            model=model.name
        )
    return None


def why_not_draft(target: LoadedModel, draft: LoadedModel) -> str | None:
    """Return why `draft` cannot draft for `target`; None if it can, directly or by retokenization."""
    from decodescope.core.models.loaded_model import check_model  # imports torch, which any model has loaded

    check_model(target)
    check_model(draft)
    if reason := target_unsupported_reason(draft):
        return reason
    if draft.device != target.device:
        return tr("{draft} is on {device}, but {target} is on {other_device}.").format(
            draft=draft.name, device=draft.device, target=target.name, other_device=target.device
        )
    if draft.is_encoder_decoder != target.is_encoder_decoder:
        kinds = (tr("a decoder-only model"), tr("an encoder–decoder"))
        return tr("{draft} is {kind}, but {target} is {other_kind}.").format(
            draft=draft.name,
            kind=kinds[draft.is_encoder_decoder],
            target=target.name,
            other_kind=kinds[target.is_encoder_decoder],
        )
    if target.is_encoder_decoder and (target.modalities.sound, target.modalities.picture) != (
        draft.modalities.sound,
        draft.modalities.picture,
    ):
        return tr("{draft} and {target} accept different inputs (text, audio, images).").format(
            draft=draft.name, target=target.name
        )
    return None if has_same_tokens(target, draft) else _retokenization_unsupported_reason(target, draft)


def _retokenization_unsupported_reason(target: LoadedModel, draft: LoadedModel) -> str | None:
    """Return why drafts of a model with another tokenizer cannot be retokenized for the target."""
    if target.is_encoder_decoder:
        return tr(
            "{draft} uses a different tokenizer than {target}, which is not supported for "
            "encoder–decoder models. Choose a draft model of the same family."
        ).format(draft=draft.name, target=target.name)
    for model in (target, draft):
        if not has_exact_tokenizer(model):
            return tr(
                "{draft} uses a different tokenizer than {target}. Drafts would have to be converted "
                "through text, but the tokenizer of {model} does not preserve text exactly. Choose a "
                "draft model of the same family."
            ).format(draft=draft.name, target=target.name, model=model.name)
    return None


def has_exact_tokenizer(model: LoadedModel) -> bool:
    """Return whether the model's tokenizer decodes text exactly; tested once and cached."""
    from transformers import PreTrainedTokenizerBase  # a model is given, so transformers is loaded

    from decodescope.core.decoding.speculation.drafters.retokenizing_drafter import OffsetTokenizer

    if not isinstance(model.tokenizer, PreTrainedTokenizerBase):
        return False
    if "spells" not in model.strategy_data:
        model.strategy_data["spells"] = OffsetTokenizer(model.tokenizer, model.pieces).is_exact
    return bool(model.strategy_data["spells"])


def has_same_tokens(one: LoadedModel, other: LoadedModel) -> bool:
    """Return whether equal ids mean equal text. Without tokenizers: whether the vocabularies have the same size."""
    first, second = one.tokenizer, other.tokenizer
    if first is None or second is None:
        return one.vocabulary == other.vocabulary
    if first is second:
        return True
    known, sizes = _VOCABULARY_COMPARISONS.setdefault(first, WeakKeyDictionary()), (len(first), len(second))
    if second not in known or known[second][0] != sizes:
        known[second] = sizes, first.get_vocab() == second.get_vocab()
    return known[second][1]
