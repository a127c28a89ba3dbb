"""Interface of a cache backend: build, measure, predict and edit a cache, or explain why a model cannot use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from decodescope.core.caches.measurement import CacheEstimate, Measurement, RunShape
from decodescope.core.common.claim import Claim
from decodescope.core.common.entry_description import EntryDescription
from decodescope.core.common.hf_generation import SAME_SETTINGS, GenerateEquivalent
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.parameter import Parameter, Settings
from decodescope.resources.language import join_names, mark, tr

if TYPE_CHECKING:
    import torch
    from transformers.cache_utils import Cache

    from decodescope.core.models.loaded_model import LoadedModel


CacheOperation = Literal["reorder", "truncate", "select", "copy", "drafts"]
"""reorder: rows are permuted and repeated (beams, candidates); truncate: the last tokens are removed (drafts);
select: only some positions are kept (token trees); copy: a second, independent cache (branches, prefixes);
drafts: tokens after the text are read through a mask as long as the text.
"""

_SENTENCES: dict[CacheOperation, str] = {
    "reorder": mark("this strategy follows several candidates at once, and {title} cannot reorder its rows."),
    "truncate": mark("this strategy removes rejected drafts, and {title} cannot drop its last tokens exactly."),
    "select": mark("this strategy keeps one path of a token tree, and {title} cannot keep only selected positions."),
    "drafts": mark(
        "this strategy reads drafts after the text through a mask as long as the text, which {title} "
        "does not allow; “Dynamic” does."
    ),
    "copy": mark("this strategy needs a second copy of the cache, and {title} cannot be copied."),
}


def missing_operation_sentence(title: str, missing: frozenset[CacheOperation]) -> str | None:
    """Return why a backend without the operations in `missing` cannot be used, or None if `missing` is empty."""
    first = next((sentence for need, sentence in _SENTENCES.items() if need in missing), None)
    return tr(first).format(title=tr("the cache “{title}”").format(title=tr(title))) if first else None


_STATES = {"linear_attention", "conv", "hybrid", "hybrid_sliding"}
_WINDOWS = {"sliding_attention", "chunked_attention"}


def layer_types(model: LoadedModel) -> frozenset[str]:
    """Return the decoder's layer types as transformers calls them: full_attention, sliding_attention, linear_attention
    …
    """
    from transformers.cache_utils import get_layer_types_and_kwargs  # heavy, and loaded with any model anyway

    return frozenset(get_layer_types_and_kwargs(model.config)[0]) - {"dummy"}


def own_cache_reason(model: LoadedModel) -> str | None:
    """Return the reason if transformers does not manage the model's cache, or the model has none."""
    if not model.model._supports_default_dynamic_cache():
        return tr("{model} uses its own cache class, which this backend cannot manage.").format(model=model.name)
    if has_no_cache(model):
        return tr("{model} keeps no cache between tokens: it reads the full text again for each token.").format(
            model=model.name
        )
    return None


def has_no_cache(model: LoadedModel) -> bool:
    """Return whether every token requires reading the full text."""
    return _memory(model) == "none"


def unsupported_operation_reason(model: LoadedModel, needs: frozenset[CacheOperation]) -> str | None:
    """Return which required operation no backend supports for this model, as a sentence, or None."""
    if not needs:
        return None
    if not model.model._supports_default_dynamic_cache():
        return tr(
            "{model} uses its own cache class: its rows cannot be reordered and tokens cannot be removed."
        ).format(model=model.name)
    memory = _memory(model)
    if memory == "inside":
        return tr(
            "{model} keeps its state inside the module, for one text at a time: rows cannot be "
            "reordered and tokens cannot be removed."
        ).format(model=model.name)
    if memory == "none" and "truncate" in needs:
        return tr(
            "{model} keeps no cache between tokens, so verifying drafts would cost as much as generating."
        ).format(model=model.name)
    if memory == "windows" and "truncate" in needs:
        return tr(
            "{model} relies on windows that drop tokens, so tokens that drafts have pushed out cannot be restored."
        ).format(model=model.name)
    return None


def own_windows_reason(model: LoadedModel) -> str | None:
    """Return why a model that applies windows itself (GPT-Neo) is not supported; None for others. Such models rely on
    positions in a cache that keeps everything.
    """
    from decodescope.core.caches.tensors.continuation_probe import window_widths  # a model is loaded, so torch is too

    if any(window_widths(model)):
        return tr(
            "{model} applies its windows to a cache that keeps everything; a shorter cache would shift them."
        ).format(model=model.name)
    return None


def windows_required_reason(model: LoadedModel) -> str | None:
    """Return why `model` needs its windows (its text would change if windowed layers kept everything); None if not."""
    if _memory(model) == "windows":
        return tr("{model} relies on windows that drop tokens, but this cache keeps everything.").format(
            model=model.name
        )
    return None


def _memory(model: LoadedModel) -> str:
    from decodescope.core.caches.tensors.continuation_probe import memory_kind  # a model is loaded, so torch is too

    return memory_kind(model)


def has_states(model: LoadedModel) -> bool:
    """Return whether its cache includes a recurrent state."""
    return bool(layer_types(model) & _STATES)


def has_windows(model: LoadedModel) -> bool:
    """Return whether some layers were trained with a window."""
    return bool(layer_types(model) & _WINDOWS)


def states_reason(model: LoadedModel) -> str | None:
    """Return why models with recurrent states are not supported; None for a model without them."""
    if reason := own_cache_reason(model):
        return reason
    if has_states(model):
        return tr(
            "{model} keeps recurrent states of constant size, so there are no keys and values to store this way."
        ).format(model=model.name)
    return None


def plain_attention_reason(model: LoadedModel, title: str) -> str | None:
    """Return why models with states or windowed layers are not supported; None for a model with full attention only."""
    if reason := states_reason(model):
        return reason
    if odd := layer_types(model) - {"full_attention"}:
        return tr("“{title}” needs full attention in every layer, but {model} also has others ({odd}).").format(
            title=title, model=model.name, odd=_join_types(odd)
        )
    return None


def rejected_drafts_reason(model: LoadedModel, needs: frozenset[CacheOperation], title: str) -> str | None:
    """Return why drafts are not supported, None if they are. They are not if layers keep only their window: a rejected
    draft has pushed out tokens that are needed again.
    """
    if "drafts" in needs and has_windows(model):
        return tr(
            "this strategy removes rejected drafts, but in the cache “{title}” windowed layers have "
            "already dropped what the drafts pushed out; “Dynamic” keeps everything."
        ).format(title=title)
    return None


def draft_layers_reason(model: LoadedModel, needs: frozenset[CacheOperation], title: str) -> str | None:
    """Return why a static cache does not support drafts: its layers keep more than keys and values. None if it does."""
    if "drafts" in needs and (odd := layer_types(model) - {"full_attention"} - _WINDOWS):
        return tr(
            "this strategy removes rejected drafts, but {model} has layers ({odd}) for which the cache "
            "“{title}” cannot do that; “Dynamic” can."
        ).format(model=model.name, odd=_join_types(odd), title=title)
    return None


def repeated_layers_reason(model: LoadedModel) -> str | None:
    """Return why layers cannot be offloaded one by one if the model adds copies of them to its cache (Dory)."""
    if not model.repeats_layers:
        return None
    return tr("{model} runs some of its layers several times and adds copies of them to the cache itself.").format(
        model=model.name
    )


def extra_tensors_reason(model: LoadedModel) -> str | None:
    """Return why models with recurrent states, or layers that keep more than keys and values, are not supported."""
    if reason := states_reason(model):
        return reason
    if odd := layer_types(model) - _WINDOWS - {"full_attention"}:
        return tr("{model} has layers ({odd}) that store more than keys and values.").format(
            model=model.name, odd=_join_types(odd)
        )
    return None


def _join_types(kinds: Iterable[str]) -> str:
    return join_names(sorted(kinds)).replace("_", " ")


EDITS: frozenset[CacheOperation] = frozenset({"reorder", "truncate", "select", "copy"})
"""Operations that most caches support after they were filled."""


def default_generate_equivalent(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """Default counterpart: transformers' `generate` produces the same text without a cache setting."""
    return SAME_SETTINGS


class Variant(NamedTuple):
    """A backend with some of its settings fixed, shown as its own entry in comparisons."""

    title: str
    brief: str = ""
    """Label next to a bar; empty if the title fits."""
    options: Settings = MappingProxyType({})


@plain(frozen=True)
class CacheBackend:
    """A way to keep keys and values. One file in `core/caches/` defines each backend."""

    name: str
    title: str
    summary: str
    build: Callable[[LoadedModel, int, Settings], Cache | None]
    """(model, maximum length in tokens, options) → an empty transformers cache; None lets the model create its own."""
    describe: Callable[[LoadedModel, RunShape], CacheEstimate]
    """(model, run) → the cache size as a formula and other facts known before the run. Raises UnpredictableError."""
    brief: str = ""
    """Short title for narrow places; empty to use `title`."""
    variants: tuple[Variant, ...] = ()
    """Variants to compare with other backends; if empty, the backend itself with its current settings."""
    parameters: tuple[Parameter, ...] = ()
    exact: bool = True
    paper: str = ""
    description: EntryDescription | None = None
    """Its term of the glossary, unless `resources/glossary` has one."""
    claims: tuple[Claim, ...] = ()
    """Published claims about it, each with the comparison that tests it."""
    aliases: tuple[str, ...] = ()
    order: int = 100
    rejection_reason: Callable[[LoadedModel, frozenset[CacheOperation], Settings], str | None] | None = None
    """(model, required operations, options) → reason why the backend cannot be used, or None."""
    offers: frozenset[CacheOperation] = EDITS
    """Operations that a filled cache supports."""
    generate_equivalent: Callable[[Settings, frozenset[CacheOperation], str], GenerateEquivalent] = (
        default_generate_equivalent
    )
    """(options, required operations, device name or “auto”) → the equivalent settings of transformers' `generate`, or
    why there are none.
    """
    rescue: int | None = None
    """Order in which this cache is tried when memory runs out, smallest first; None: never. It uses less device memory
    and gives the same text.
    """
    unbounded: bool = False
    """Whether the cache drops old tokens and renumbers positions, so that the text may exceed the model's context."""

    def unsupported_reason(
        self, model: LoadedModel, needs: frozenset[CacheOperation] = frozenset(), options: Settings | None = None
    ) -> str | None:
        """Return why this backend cannot serve `model` with the operations in `needs`, or None if it can. Cheap; never
        raises.
        """
        if self.rejection_reason and (reason := self.rejection_reason(model, needs, options or {})):
            return reason
        return unsupported_operation_reason(model, needs) or self.missing_operation_reason(needs)

    def missing_operation_reason(self, needs: frozenset[CacheOperation]) -> str | None:
        """Return which operation in `needs` this backend lacks for every model, as a sentence, or None."""
        return missing_operation_sentence(self.title, needs - self.offers)

    def measure(self, cache: Cache | None) -> Measurement:
        """Measure the exact bytes of the tensor storages that `cache` holds."""
        from decodescope.core.caches.tensors.cache_operations import measure_storages  # needs torch

        return measure_storages(cache)

    def predict(self, model: LoadedModel, length: int, rows: int, options: Settings) -> int:
        """Predict the bytes at `length` tokens, for which a fixed-size cache is allocated, or at `options["tokens"]` if
        fewer were read.

        Encoder–decoder models read the source length from `options["source_length"]`, which defaults to the text
        length. Raises UnpredictableError.
        """
        from decodescope.core.common.size_terms import evaluate  # its classes are slow to create: import on demand

        source = int(options.get("source_length") or length) if model.is_encoder_decoder else None
        size = self.describe(model, RunShape(rows, length, source, options)).size
        return evaluate(size, int(options.get("tokens") or length))

    def truncate(self, cache: Cache, length: int) -> None:
        """Drop all tokens after the first `length`. Raises CacheError if that is impossible."""
        from decodescope.core.caches.tensors.cache_operations import truncate  # needs torch

        truncate(cache, length)

    def select(self, cache: Cache, positions: Sequence[int] | torch.Tensor) -> None:
        """Keep only the tokens at `positions` (1-D tensor or list, ascending). Raises CacheError if that is
        impossible.
        """
        from decodescope.core.caches.tensors.cache_operations import select  # needs torch

        select(cache, positions)

    def copy(self, cache: Cache) -> Cache:
        """Return an independent cache with the same content. Raises CacheError if that is impossible."""
        from decodescope.core.caches.tensors.cache_operations import copy  # needs torch

        return copy(cache)
