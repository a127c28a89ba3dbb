"""Why a back end cannot serve a model: facts of its configuration, and the sentences several back ends share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from resources.language import tr

if TYPE_CHECKING:
    from core.caches.requirements import CacheOperation
    from core.models.loaded_model import LoadedModel

_STATES = {"linear_attention", "conv", "hybrid", "hybrid_sliding"}
_WINDOWS = {"sliding_attention", "chunked_attention"}


def layer_types(model: LoadedModel) -> frozenset[str]:
    """Kinds of the decoder's layers in transformers' words: full_attention, sliding_attention, linear_attention …"""
    from transformers.cache_utils import get_layer_types_and_kwargs  # heavy, and loaded with any model anyway

    return frozenset(get_layer_types_and_kwargs(model.config)[0]) - {"dummy"}


def own_cache_reason(model: LoadedModel) -> str | None:
    """Models whose memory transformers does not manage, or that have none."""
    if not model.model._supports_default_dynamic_cache():
        return tr("{model} makes a memory of its own kind, which only the model itself can lay out.").format(
            model=model.name
        )
    if has_no_cache(model):
        return tr("{model} keeps nothing between tokens: it reads the whole text anew for each of them.").format(
            model=model.name
        )
    return None


def has_no_cache(model: LoadedModel) -> bool:
    """Every token needs the whole text."""
    return _memory(model) == "none"


def unsupported_operation_reason(model: LoadedModel, needs: frozenset[CacheOperation]) -> str | None:
    """What no back end can do for this model."""
    if not needs:
        return None
    if not model.model._supports_default_dynamic_cache():
        return tr(
            "{model} makes a memory of its own kind: rows cannot change places, nothing can be taken back."
        ).format(model=model.name)
    memory = _memory(model)
    if memory == "inside":
        return tr(
            "{model} keeps its state inside itself, for one text at a time: rows cannot change places, "
            "and nothing can be taken back."
        ).format(model=model.name)
    if memory == "none" and "truncate" in needs:
        return tr("{model} keeps nothing between tokens, so reading drafts would cost as much as writing.").format(
            model=model.name
        )
    if memory == "windows" and "truncate" in needs:
        return tr("{model} relies on windows that forget, so drafts they have pushed out cannot be taken back.").format(
            model=model.name
        )
    return None


def own_windows_reason(model: LoadedModel) -> str | None:
    """Refuses to drop what a model hides by itself (GPT-Neo): it counts on places in a cache that keeps everything."""
    from core.caches.tensors.continuation_probe import window_widths  # a model is there, so torch is loaded

    if any(window_widths(model)):
        return tr(
            "{model} lays its windows over a cache that keeps everything; a shorter one would shift them."
        ).format(model=model.name)
    return None


def windows_required_reason(model: LoadedModel) -> str | None:
    """Refuses models whose text would change if their windowed layers kept everything."""
    if _memory(model) == "windows":
        return tr("{model} relies on windows that forget, and this cache keeps everything.").format(model=model.name)
    return None


def _memory(model: LoadedModel) -> str:
    from core.caches.tensors.continuation_probe import memory_kind  # a model is there, so torch is loaded

    return memory_kind(model)


def has_states(model: LoadedModel) -> bool:
    """(Part of) its memory is a recurrent state."""
    return bool(layer_types(model) & _STATES)


def has_windows(model: LoadedModel) -> bool:
    """Some layers were trained with a window."""
    return bool(layer_types(model) & _WINDOWS)


def states_reason(model: LoadedModel) -> str | None:
    """Refuses models with recurrent states."""
    if reason := own_cache_reason(model):
        return reason
    if has_states(model):
        return tr(
            "{model} keeps recurrent states of constant size; there are no keys and values to keep this way."
        ).format(model=model.name)
    return None


def plain_attention_reason(model: LoadedModel, title: str) -> str | None:
    """Refuses models with states or windowed layers."""
    if reason := states_reason(model):
        return reason
    if odd := layer_types(model) - {"full_attention"}:
        return tr("“{title}” needs full attention in every layer, and {model} has others too ({odd}).").format(
            title=title, model=model.name, odd=_join_types(odd)
        )
    return None


def rejected_drafts_reason(model: LoadedModel, needs: frozenset[CacheOperation], title: str) -> str | None:
    """Refuses drafts where layers keep their window only: a refused draft has pushed out what is needed again."""
    if "drafts" in needs and has_windows(model):
        return tr(
            "this strategy takes refused drafts back, and in the cache “{title}” layers with a window "
            "have forgotten by then what the drafts pushed out; “Dynamic” keeps everything."
        ).format(title=title)
    return None


def draft_layers_reason(model: LoadedModel, needs: frozenset[CacheOperation], title: str) -> str | None:
    """Refuses drafts in a fixed cache whose layers keep more than keys and values."""
    if "drafts" in needs and (odd := layer_types(model) - {"full_attention"} - _WINDOWS):
        return tr(
            "this strategy takes refused drafts back, and {model} has layers ({odd}) from which the "
            "cache “{title}” cannot; “Dynamic” can."
        ).format(model=model.name, odd=_join_types(odd), title=title)
    return None


def extra_tensors_reason(model: LoadedModel) -> str | None:
    """Refuses models with recurrent states or with layers that keep more than keys and values."""
    if reason := states_reason(model):
        return reason
    if odd := layer_types(model) - _WINDOWS - {"full_attention"}:
        return tr("{model} has layers ({odd}) that keep more than keys and values.").format(
            model=model.name, odd=_join_types(odd)
        )
    return None


def _join_types(kinds: Iterable[str]) -> str:
    return ", ".join(sorted(kinds)).replace("_", " ")
