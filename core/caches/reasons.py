"""Why a back end cannot serve a model: facts of its configuration, and the sentences several back ends share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.caches.needs import Need
    from core.models.model import LoadedModel

_STATES = {"linear_attention", "conv", "hybrid", "hybrid_sliding"}
_WINDOWS = {"sliding_attention", "chunked_attention"}


def layer_kinds(model: LoadedModel) -> frozenset[str]:
    """Kinds of the decoder's layers in transformers' words: full_attention, sliding_attention, linear_attention …"""
    from transformers.cache_utils import get_layer_types_and_kwargs  # heavy, and loaded with any model anyway

    return frozenset(get_layer_types_and_kwargs(model.config)[0]) - {"dummy"}


def own_memory(model: LoadedModel) -> str | None:
    """Models whose memory transformers does not manage."""
    if model.model._supports_default_dynamic_cache():
        return None
    return f"{model.name} makes a memory of its own kind, which only the model itself can lay out."


def has_states(model: LoadedModel) -> bool:
    """(Part of) its memory is a recurrent state."""
    return bool(layer_kinds(model) & _STATES)


def has_windows(model: LoadedModel) -> bool:
    """Some layers were trained with a window."""
    return bool(layer_kinds(model) & _WINDOWS)


def no_states(model: LoadedModel) -> str | None:
    """Refuses models with recurrent states."""
    if reason := own_memory(model):
        return reason
    if has_states(model):
        return f"{model.name} keeps recurrent states of constant size; there are no keys and values to keep this way."
    return None


def plain_attention_only(model: LoadedModel, title: str) -> str | None:
    """Refuses models with states or windowed layers."""
    if reason := no_states(model):
        return reason
    if odd := layer_kinds(model) - {"full_attention"}:
        names = ", ".join(sorted(odd)).replace("_", " ")
        return f"“{title}” needs full attention in every layer, and {model.name} has others too ({names})."
    return None


def keeps_refused_drafts(model: LoadedModel, needs: frozenset[Need], title: str) -> str | None:
    """Refuses drafts where layers keep their window only: a refused draft has pushed out what is needed again."""
    if "drafts" in needs and has_windows(model):
        return (
            f"this strategy takes refused drafts back, and in the cache “{title}” layers with a window have forgotten "
            "by then what the drafts pushed out; “Dynamic” keeps everything."
        )
    return None


def keys_and_values_only(model: LoadedModel) -> str | None:
    """Refuses models with recurrent states or with layers that keep more than keys and values."""
    if reason := no_states(model):
        return reason
    if odd := layer_kinds(model) - _WINDOWS - {"full_attention"}:
        return f"{model.name} has layers ({', '.join(sorted(odd))}) that keep more than keys and values."
    return None
