"""Which drafter fits which target, and why not. Imports no torch, so that a picker can ask it early."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from resources.language import tr

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from core.models.loaded_model import LoadedModel

    ComparisonTable = WeakKeyDictionary[PreTrainedTokenizerBase, tuple[tuple[int, int], bool]]

_VOCABULARY_COMPARISONS: WeakKeyDictionary[PreTrainedTokenizerBase, ComparisonTable] = WeakKeyDictionary()
"""Of two tokenizers: how many tokens they had when their words were compared, and whether those were the same. Every
run asks, and a vocabulary takes a while to be told."""


def target_unsupported_reason(model: LoadedModel) -> str | None:
    """Why rejected tokens could not be taken back out of this model's memory; None when they can."""
    if model.is_recurrent:
        return tr(
            "{model} keeps a recurrent state; drafted tokens that are refused cannot be taken back out of it."
        ).format(model=model.name)
    if not model.model._supports_default_dynamic_cache():
        return tr("{model} keeps a memory of its own kind, from which refused tokens cannot be taken back.").format(
            model=model.name
        )
    return _multi_token_unsupported_reason(model)


def _multi_token_unsupported_reason(model: LoadedModel) -> str | None:
    from core.caches.tensors.continuation_probe import memory_kind  # a model is there, so torch is loaded
    from core.decoding.speculation.tree_support import supports_drafts

    if memory_kind(model) == "kept" and not supports_drafts(model):
        return tr("{model} does not read several tokens at once as it reads them one by one.").format(model=model.name)
    return None


def why_not_draft(target: LoadedModel, draft: LoadedModel) -> str | None:
    """Why `draft` cannot draft for `target`; None when it fits, or when its guesses can go through the text."""
    from core.models.loaded_model import check_model  # brings torch, which any model has loaded

    check_model(target)
    check_model(draft)
    if reason := target_unsupported_reason(draft):
        return reason
    if draft.is_encoder_decoder != target.is_encoder_decoder:
        kinds = (tr("a decoder-only model"), tr("an encoder–decoder"))
        return tr("{draft} is {kind}, {target} is {other_kind}.").format(
            draft=draft.name,
            kind=kinds[draft.is_encoder_decoder],
            target=target.name,
            other_kind=kinds[target.is_encoder_decoder],
        )
    if target.is_encoder_decoder and (target.takes.sound, target.takes.picture) != (
        draft.takes.sound,
        draft.takes.picture,
    ):
        return tr("{draft} and {target} do not take the same: text, sound or pictures.").format(
            draft=draft.name, target=target.name
        )
    return None if has_same_tokens(target, draft) else _retokenization_unsupported_reason(target, draft)


def _retokenization_unsupported_reason(target: LoadedModel, draft: LoadedModel) -> str | None:
    """Why what a draft model with other tokens writes cannot be read by the target's tokenizer."""
    if target.is_encoder_decoder:
        return tr(
            "{draft} has another tokenizer than {target}, and the source of an encoder–decoder is not read anew "
            "for it. Choose a draft model of the same family."
        ).format(draft=draft.name, target=target.name)
    for model in (target, draft):
        if not has_exact_tokenizer(model):
            return tr(
                "{draft} has another tokenizer than {target}. Its guesses would have to go through the text, and "
                "{model} has no tokenizer that gives a text back as it was. Choose a draft model of the same family."
            ).format(draft=draft.name, target=target.name, model=model.name)
    return None


def has_exact_tokenizer(model: LoadedModel) -> bool:
    """Whether its tokenizer gives a text back as it was; tried once and remembered."""
    from transformers import PreTrainedTokenizerBase  # a model is there, so it is loaded

    from core.decoding.speculation.drafters.retokenizing_drafter import OffsetTokenizer

    if not isinstance(model.tokenizer, PreTrainedTokenizerBase):
        return False
    if "spells" not in model.remembered:
        model.remembered["spells"] = OffsetTokenizer(model.tokenizer, model.pieces).is_exact
    return bool(model.remembered["spells"])


def has_same_tokens(one: LoadedModel, other: LoadedModel) -> bool:
    """Whether equal ids mean equal text. Without tokenizers: whether the vocabularies have one size."""
    first, second = one.tokenizer, other.tokenizer
    if first is None or second is None:
        return one.vocabulary == other.vocabulary
    if first is second:
        return True
    known, sizes = _VOCABULARY_COMPARISONS.setdefault(first, WeakKeyDictionary()), (len(first), len(second))
    if second not in known or known[second][0] != sizes:
        known[second] = sizes, first.get_vocab() == second.get_vocab()
    return known[second][1]
