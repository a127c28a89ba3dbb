"""The shape of a cache back end: build it, measure it, predict it, edit it, or say why it cannot serve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from core.common.hf_generation import SAME_SETTINGS, GenerateEquivalent
from core.common.lightweight_dataclass import plain
from core.parameter import Parameter, Settings
from resources.language import mark, tr

if TYPE_CHECKING:
    import torch
    from transformers.cache_utils import Cache

    from core.common.size_terms import Term
    from core.models.loaded_model import LoadedModel


class RunShape(NamedTuple):
    """A run as far as its cache is concerned."""

    rows: int
    """Texts, beams or candidates side by side."""
    capacity: int
    """Tokens that a cache of fixed size is made for."""
    source_length: int | None = None
    """Tokens an encoder reads; None for a decoder."""
    options: Settings = MappingProxyType({})


class CacheEstimate(NamedTuple):
    """Bytes by the length of the text, and what of it is worth knowing besides."""

    size: Term
    window: int | None = None
    """Tokens seen at a time by the layer that forgets most; None when none forgets."""
    sinks: int = 0
    """First tokens that are never forgotten."""
    block: int | None = None
    """Tokens that are written at a time; fewer than that wait unharmed."""
    bits: int | None = None
    capacity: int | None = None
    """Tokens it is allocated for; None when it grows."""
    resident: Term | None = None
    """Of the size, what is in the device's memory at a time where the rest waits elsewhere; None: all of it."""


class Measurement(NamedTuple):
    """Bytes a cache holds; `parts` sums up to `bytes`, `layers` too."""

    bytes: int
    tokens: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(place, part, bytes): place device/host/disk; part keys, values, scales, residual, self, cross, state."""
    layers: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """Places in the text, [start, stop), that the most forgetful layer still holds; () when none forgets."""
    error: float | None = None
    """Quantized: ‖keys − kept keys‖ / ‖keys‖ over all that was quantized."""


CacheOperation = Literal["reorder", "truncate", "select", "copy", "drafts"]
"""reorder: rows change places and repeat (beams, candidates); truncate: the last tokens are taken back (drafts);
select: only some positions stay (token trees); copy: a second, independent cache (branches, prefixes);
drafts: tokens behind the text are read through a mask of the text's own length."""

_SENTENCES: dict[CacheOperation, str] = {
    "reorder": mark(
        "this strategy follows several candidates at once, and {title} cannot change the places of its rows."
    ),
    "truncate": mark("this strategy takes refused drafts back, and {title} cannot forget its last tokens exactly."),
    "select": mark(
        "this strategy keeps one path of a token tree, and {title} cannot keep tokens at chosen places only."
    ),
    "drafts": mark(
        "this strategy reads drafts behind the text through a mask as long as the text, which {title} does not "
        "allow; “Dynamic” does."
    ),
    "copy": mark("this strategy needs a second copy of the cache, and {title} cannot be copied."),
}


def missing_operation_sentence(title: str, missing: frozenset[CacheOperation]) -> str | None:
    """Why a back end that does not offer what is `missing` cannot serve; None when nothing is."""
    first = next((sentence for need, sentence in _SENTENCES.items() if need in missing), None)
    return tr(first).format(title=tr("the cache “{title}”").format(title=tr(title))) if first else None


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


EDITS: frozenset[CacheOperation] = frozenset({"reorder", "truncate", "select", "copy"})
"""What can be done to most caches after they were filled."""


def default_counterpart(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """transformers' `generate` keeps it so, or so that the text is the same, when nothing is said."""
    return SAME_SETTINGS


class Variant(NamedTuple):
    """A back end with some of its settings chosen, to be compared as if it were one of its own."""

    title: str
    brief: str = ""
    """Beside a bar; empty: the title fits."""
    options: Settings = MappingProxyType({})


@plain(frozen=True)
class CacheBackend:
    """A way to keep keys and values; one file of `core/caches/` each."""

    name: str
    title: str
    summary: str
    build: Callable[[LoadedModel, int, Settings], Cache | None]
    """(model, greatest length in tokens, options) → transformers cache, empty; None lets the model make its own."""
    describe: Callable[[LoadedModel, RunShape], CacheEstimate]
    """(model, run) → its size as arithmetic, and what else is known beforehand. Raises UnpredictableError."""
    brief: str = ""
    """The title where there is little room; empty: as it is."""
    variants: tuple[Variant, ...] = ()
    """What of it is compared with other back ends; none: it alone, as it is set."""
    parameters: tuple[Parameter, ...] = ()
    exact: bool = True
    paper: str = ""
    aliases: tuple[str, ...] = ()
    order: int = 100
    refuse: Callable[[LoadedModel, frozenset[CacheOperation], Settings], str | None] | None = None
    """(model, what is needed of it, options) → why it cannot serve."""
    offers: frozenset[CacheOperation] = EDITS
    """What can be done to it after it was filled, and with it."""
    counterpart: Callable[[Settings, frozenset[CacheOperation], str], GenerateEquivalent] = default_counterpart
    """(options, what is needed of it, name of the device or “auto”) → how transformers' `generate` is asked for it, or
    why that cannot be."""
    rescue: int | None = None
    """When memory ends, caches with such a number are tried, the smallest first: less of the device, the same text."""
    unbounded: bool = False
    """It forgets, and counts positions inside itself: the text may outgrow the model's context."""

    def unsupported_reason(
        self, model: LoadedModel, needs: frozenset[CacheOperation] = frozenset(), options: Settings | None = None
    ) -> str | None:
        """Sentence on why it cannot serve `model` and do what a strategy `needs`; None when it can. Cheap; raises
        nothing."""
        if self.refuse and (reason := self.refuse(model, needs, options or {})):
            return reason
        return unsupported_operation_reason(model, needs) or self.missing_operation_reason(needs)

    def missing_operation_reason(self, needs: frozenset[CacheOperation]) -> str | None:
        """Sentence on what it cannot do of what a strategy `needs`, with whatever model; None when it can."""
        return missing_operation_sentence(self.title, needs - self.offers)

    def measure(self, cache: Cache | None) -> Measurement:
        """Bytes of the storages held, to the byte."""
        from core.caches.tensors.cache_operations import measure_storages  # needs torch

        return measure_storages(cache)

    def predict(self, model: LoadedModel, length: int, rows: int, options: Settings) -> int:
        """Bytes at `length` tokens, which a cache of fixed size is made for; `options["tokens"]` when fewer were read.

        Encoder–decoders read the length of their source from `options["source_length"]` (as long as the text itself
        where it is missing). Raises UnpredictableError.
        """
        from core.common.size_terms import evaluate  # its classes take a while to make: not before somebody asks

        source = int(options.get("source_length") or length) if model.is_encoder_decoder else None
        size = self.describe(model, RunShape(rows, length, source, options)).size
        return evaluate(size, int(options.get("tokens") or length))

    def truncate(self, cache: Cache, length: int) -> None:
        """Forget all but the first `length` tokens. Raises CacheError where that is impossible."""
        from core.caches.tensors.cache_operations import truncate  # needs torch

        truncate(cache, length)

    def select(self, cache: Cache, positions: Sequence[int] | torch.Tensor) -> None:
        """Keep only the tokens at `positions` (1-D tensor or list, ascending), in their order. Raises CacheError."""
        from core.caches.tensors.cache_operations import select  # needs torch

        select(cache, positions)

    def copy(self, cache: Cache) -> Cache:
        """An independent cache with the same content. Raises CacheError where that is impossible."""
        from core.caches.tensors.cache_operations import copy  # needs torch

        return copy(cache)
