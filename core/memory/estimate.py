"""Estimate before a run whether it fits into memory, and what would make it fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from decodescope.core import caches
from decodescope.core.caches.base import CacheBackend
from decodescope.core.caches.measurement import RunShape
from decodescope.core.checks.arguments import check_bytes, check_drafters
from decodescope.core.common.size_terms import evaluate
from decodescope.core.decoding.forward.graphed_pass import graph_bytes
from decodescope.core.decoding.media_inputs.media_inputs import estimate_media_positions
from decodescope.core.decoding.prompt import encode, encode_continuation
from decodescope.core.decoding.stopping import new_token_limit
from decodescope.core.errors import DecodescopeError, TokenizerMissingError, UnpredictableError
from decodescope.core.explain.words import size
from decodescope.core.models.config_validation import PACKED
from decodescope.core.models.layer_offload import min_resident_bytes
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.model_entry import BYTES, counted_tokens, free_memory, has_room
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.core.system.gpu import free_device_bytes, reusable_bytes
from decodescope.core.system.torch_state import isolated
from decodescope.resources.language import join_sentences, tr, trn

_CHARACTERS_PER_TOKEN = 3
"""Characters per token if the tokenizer cannot count them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory needs of a run in bytes; `free` is the available memory."""

    weights: int
    cache: int
    """0 if the cache size is unpredictable."""
    draft: int
    """Weights and caches of the draft models."""
    tokens: int
    """Length of the longest text in the decoder, in tokens."""
    rows: int
    """Number of sequences, beams or candidates in the batch."""
    free: int
    title: str
    """Title of the cache."""
    remedies: tuple[str, ...] = ()
    """Changes each of which would make it fit; empty if it fits, or if nothing helps."""
    reserved: int = 0
    """Part of `free` that torch has reserved on a GPU: it is given to new tensors, but not free for other programs."""

    @property
    def needed(self) -> int:
        """Total bytes needed."""
        return self.weights + self.cache + self.draft

    @property
    def ok(self) -> bool:
        """Whether it fits with some memory to spare."""
        return has_room(self.needed, self.free)

    @property
    def figures(self) -> str:
        """Summary such as `Needs 45.2 MiB of 3.1 GiB free: 21.9 MiB of weights, 18.0 MiB of cache (Dynamic, 560 tokens
        × 4).`
        """
        sentence = (
            tr(
                "Needs {needed} of {free} free: {weights} for weights, {cache} for the cache ({title}, "
                "{tokens}), {draft} for the draft model."
            )
            if self.draft
            else tr("Needs {needed} of {free} free: {weights} for weights, {cache} for the cache ({title}, {tokens}).")
        )
        tokens = counted_tokens(self.tokens, self.rows)
        figures = sentence.format(
            needed=size(self.needed), free=size(self.free), weights=size(self.weights), draft=size(self.draft),
            cache=size(self.cache) if self.cache else tr("an unknown amount"), title=tr(self.title),
            tokens=tokens,
        )  # fmt: skip
        if not self.reserved:
            return figures
        reserved = tr("{size} of the free memory is reserved by torch and will be reused.")
        return join_sentences(figures, reserved.format(size=size(self.reserved)))

    @property
    def advice(self) -> str:
        """Sentence that says how to make it fit; empty if it fits."""
        if self.ok:
            return ""
        if not self.remedies:
            return tr("It does not fit, even with a shorter text or another cache. Choose a smaller model.")
        sentence = (
            tr("It does not fit. It would fit {remedies}.")
            if self.needed > self.free
            else tr("That leaves too little free memory. It would fit {remedies}.")
        )
        return sentence.format(remedies=_join_with_or(self.remedies))


def _join_with_or(several: Sequence[str]) -> str:
    """Join the items with commas and a final "or"."""
    if len(several) == 1:
        return several[0]
    return tr("{several} or {last}").format(several=tr(", ").join(several[:-1]), last=several[-1])


def _join_with_and(several: Sequence[str]) -> str:
    """Join the items with commas and a final "and"."""
    if len(several) == 1:
        return several[0]
    return tr("{several} and {last}").format(several=tr(", ").join(several[:-1]), last=several[-1])


@dataclass(frozen=True, slots=True)
class _EstimateCase:
    """A variation of the request, to find out what would make it fit."""

    prompt: int
    new: int
    rows: int
    cache: str
    halved: bool = False
    packed: bool = False
    """Weights in 8 bits."""
    drafted: bool = True
    offloaded: bool = False
    """Whether as many layers as possible are offloaded to disk."""


@isolated
def estimate(
    model: LoadedModel, request: Request, held: int = 0, drafters: Sequence[LoadedModel] | None = None
) -> Estimate:
    """Estimate the memory of `request` on `model`, which may be a `Blueprint`, as may its `drafters`.

    `drafters` replace those of the request. `held`: bytes of the models' weights that are already in memory and so are
    not free for others. Raises StrategyError, ParameterError or CacheError if the request cannot run at all.
    """
    check_model(model)
    check_request(request)
    check_bytes("held", held)
    if drafters is not None:
        check_drafters(drafters)
        request = replace(request, drafters=tuple(drafters))
    return _MemoryEstimator(model, request, _free_bytes(model) + held).result()


class _MemoryEstimator:
    def __init__(self, model: LoadedModel, request: Request, free: int) -> None:
        self.model, self.request, self.free = model, request, free
        self.strategy, self.settings = resolve_settings(model, request)
        seen = estimate_media_positions(model) * len(request.media)
        self.source = seen or prompt_tokens(model, request)
        start = 1 if model.is_encoder_decoder else seen + prompt_tokens(model, request)
        start += answer_prefix_tokens(model, request)
        new = new_token_limit(self.settings, start)
        rows = self.strategy.rows(self.settings.config, model.vocabulary)
        self.case = _EstimateCase(start, new, rows, caches.named(request.cache).name)

    def result(self) -> Estimate:
        """Return the estimate, with remedies if it does not fit."""
        case = self.case
        found = Estimate(
            self._weights(case), self._cache(self.model, case), self._draft(case), self._length(self.model, case),
            case.rows, self.free, caches.registry[case.cache].title,
            reserved=reusable_bytes(self.model.device) + graph_bytes(self.model),
        )  # fmt: skip
        return (
            found if found.ok else replace(found, remedies=tuple(self._remedies()) or tuple(self._combined_remedies()))
        )

    def _needed(self, case: _EstimateCase) -> int:
        return self._weights(case) + self._cache(self.model, case) + self._draft(case)

    def _fits(self, case: _EstimateCase) -> bool:
        return has_room(self._needed(case), self.free)

    def _weights(self, case: _EstimateCase) -> int:
        if case.offloaded:
            return min_resident_bytes(self.model.model)
        return (
            weight_bytes_as(self.model, "int8") if case.packed else self.model.weight_bytes // (2 if case.halved else 1)
        )

    def _length(self, model: LoadedModel, case: _EstimateCase) -> int:
        length = case.prompt + case.new
        bounded = model.context is not None and not caches.registry[case.cache].unbounded
        return min(length, model.context) if bounded and model.context is not None else length

    def _cache(self, model: LoadedModel, case: _EstimateCase) -> int:
        """Return the device bytes of the cache; 0 if its size is unpredictable."""
        options = self.request.cache_options if case.cache == self.case.cache else {}
        length = self._length(model, case)
        situation = RunShape(case.rows, length, self.source if model.is_encoder_decoder else None, options)
        try:
            described = caches.registry[case.cache].describe(model, situation)
        except UnpredictableError:
            return 0
        held = described.size if described.resident is None else described.resident
        return evaluate(held, length) // (2 if case.halved else 1)

    def _draft(self, case: _EstimateCase) -> int:
        if not case.drafted:
            return 0
        plain = replace(case, cache="dynamic", rows=1, halved=False)
        whole = sum(draft.weight_bytes + self._cache(draft, plain) for draft in self.request.drafters)
        return whole // (2 if case.halved else 1)

    def _remedies(self) -> Iterator[str]:
        """Yield the single changes that would be enough."""
        case = self.case
        if new := _max_fitting(case.new, lambda count: self._fits(replace(case, new=count))):
            yield trn("with at most {new:,} new token", "with at most {new:,} new tokens", new).format(new=new)
        if rows := _max_fitting(case.rows, lambda count: self._fits(replace(case, rows=count))):
            yield tr("with {what}").format(what=self._rows_text(rows))
        if others := [title for title in self._other_caches() if title]:
            sentence = tr("with the cache “{one}” or “{other}”") if len(others) > 1 else tr("with the cache “{one}”")
            yield sentence.format(one=tr(others[0]), other=tr(others[1 % len(others)]))
        if self.model.weights == "float32" and self._fits(replace(case, halved=True)):
            yield tr("in float16")
        if self._can_pack() and self._fits(replace(case, packed=True)):
            yield tr("with int8 weights")
        if self._can_offload() and self._fits(replace(case, offloaded=True)):
            yield tr("with layers offloaded to disk (“Weights…” in the model list)")
        if self.request.drafters and self._fits(replace(case, drafted=False)):
            yield tr("without a draft model")

    def _can_pack(self) -> bool:
        return self.model.device.type == "cpu" and self.model.weights not in PACKED

    def _can_offload(self) -> bool:
        return self._can_pack() and self.model.disk_offload is None

    def _combined_remedies(self) -> Iterator[str]:
        """Yield the smallest combination of changes, for cases where no single change is enough."""
        single = replace(self.case, rows=1)
        caches_too = [replace(single, cache=backend.name) for backend in self._supported_caches()]
        for case in (single, *caches_too, *(replace(other, halved=True) for other in (single, *caches_too))):
            if case.halved and self.model.weights != "float32":
                return
            if new := self._most_new(case):
                words = (
                    [trn("at most {new:,} new token", "at most {new:,} new tokens", new).format(new=new)]
                    if new < case.new
                    else []
                )
                words += [self._rows_text(1)] if self.case.rows > 1 else []
                cache = tr("the cache “{title}”").format(title=tr(caches.registry[case.cache].title))
                words += [cache] if case.cache != self.case.cache else []
                words += ["float16"] if case.halved else []
                yield tr("with {what}").format(what=_join_with_and(words))
                return

    def _most_new(self, case: _EstimateCase) -> int:
        """Return how many new tokens fit, at most those of the case; 0 if not even one does."""
        return _max_fitting(case.new + 1, lambda count: self._fits(replace(case, new=count)))

    def _rows_text(self, rows: int) -> str:
        if int(self.settings.get("num_beams") or 1) > 1:
            template = trn("{count} beam", "{count} beams", rows)
        elif self.settings.get("do_sample"):
            template = trn("{count} sequence", "{count} sequences", rows)
        else:
            template = trn("{count} candidate", "{count} candidates", rows)
        return template.format(count=f"{rows:,}")

    def _supported_caches(self) -> list[CacheBackend]:
        """Return other backends that support this run, exact ones first."""
        others = [backend for backend in caches.registry.values() if backend.name != self.case.cache]
        serving = [backend for backend in others if not backend.unsupported_reason(self.model, self.strategy.needs)]
        return sorted(serving, key=lambda backend: not backend.exact)

    def _other_caches(self) -> Iterator[str]:
        """Yield the titles of caches that are small enough."""
        for backend in self._supported_caches():
            if self._fits(replace(self.case, cache=backend.name)):
                yield backend.title


def weight_bytes_as(model: LoadedModel, kind: str) -> int:
    """Return the approximate bytes of the weights in the format `kind`."""
    return int(model.parameters * BYTES[kind])


def prompt_tokens(model: LoadedModel, request: Request) -> int:
    """Return the number of prompt tokens; an estimate if the prompt cannot be encoded yet."""
    try:
        return len(encode(model, request.prompt, unbounded=True))
    except DecodescopeError:
        return 1 + len(str(request.prompt)) // _CHARACTERS_PER_TOKEN


def answer_prefix_tokens(model: LoadedModel, request: Request) -> int:
    """Return the number of tokens the answer must begin with; an estimate if they cannot be encoded yet."""
    try:
        return len(encode_continuation(model, (), request.beginning))
    except TokenizerMissingError:
        return len(request.beginning)


def _max_fitting(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest count below `limit` that fits; 0 if not even one does."""
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _free_bytes(model: LoadedModel) -> int:
    free = free_device_bytes(model.device)
    return free_memory() if free is None else free + graph_bytes(model)
