"""Whether a run fits into memory, reckoned before anything of it is there, and what would make it fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import GenerationConfig

from core import caches
from core.arguments import check_bytes, check_drafters
from core.caches.base import CacheBackend
from core.caches.cache_estimate import RunShape
from core.decoding.continuation import continuation
from core.decoding.media_inputs.media_lengths import expected_positions
from core.decoding.prompt import encode
from core.decoding.stopping import new_token_limit
from core.errors import DecodescopeError, TokenizerMissingError, UnpredictableError
from core.explain.words import size
from core.models.disk_offload.offloaded_layers import least_bytes
from core.models.loaded_model import LoadedModel, check_model
from core.models.memory_check import BYTES, counted_tokens, free_memory, has_room
from core.models.quantized.weight_formats import PACKED
from core.request import Request, check_request
from core.settings import resolve
from core.size_terms import worked_out
from resources.language import tr, trn

_GUESS = 3
"""Characters a token, where the tokenizer cannot say."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run takes, in bytes; `free` is what there is for it."""

    weights: int
    cache: int
    """0 where only the model knows its memory."""
    draft: int
    """Weights and cache of the draft models."""
    tokens: int
    """Of the longest text the decoder will hold."""
    rows: int
    """Texts, beams or candidates side by side."""
    free: int
    title: str
    """Of the cache."""
    remedies: tuple[str, ...] = ()
    """Each of them would make it fit; empty when it fits, or when nothing does."""

    @property
    def needed(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.draft

    @property
    def ok(self) -> bool:
        """Whether it fits, with something to spare."""
        return has_room(self.needed, self.free)

    @property
    def figures(self) -> str:
        """`Needs 45.2 MiB of 3.1 GiB free: 21.9 MiB of weights, 18.0 MiB of cache (Dynamic, 560 tokens × 4).`"""
        sentence = (
            tr(
                "Needs {needed} of {free} free: {weights} of weights, {cache} of cache ({title}, {tokens}), "
                "{draft} for the draft."
            )
            if self.draft
            else tr("Needs {needed} of {free} free: {weights} of weights, {cache} of cache ({title}, {tokens}).")
        )
        tokens = counted_tokens(self.tokens, self.rows)
        return sentence.format(
            needed=size(self.needed), free=size(self.free), weights=size(self.weights), draft=size(self.draft),
            cache=size(self.cache) if self.cache else tr("an unknown size"), title=tr(self.title),
            tokens=tokens,
        )  # fmt: skip

    @property
    def advice(self) -> str:
        """What would make it fit; empty when it fits."""
        if self.ok:
            return ""
        if not self.remedies:
            return tr(
                "It does not fit, and neither a shorter text nor another cache changes that: choose a smaller model."
            )
        sentence = (
            tr("It does not fit. It would fit {remedies}.")
            if self.needed > self.free
            else tr("That leaves too little to spare. It would fit {remedies}.")
        )
        return sentence.format(remedies=_either(self.remedies))


def _either(several: Sequence[str]) -> str:
    """The last after an "or"."""
    if len(several) == 1:
        return several[0]
    return tr("{several} or {last}").format(several=tr(", ").join(several[:-1]), last=several[-1])


def _together(several: Sequence[str]) -> str:
    """The last after an "and"."""
    if len(several) == 1:
        return several[0]
    return tr("{several} and {last}").format(several=tr(", ").join(several[:-1]), last=several[-1])


@dataclass(frozen=True, slots=True)
class _Case:
    """What is varied to find out what would help."""

    prompt: int
    new: int
    rows: int
    cache: str
    halved: bool = False
    packed: bool = False
    """Weights in eight bits."""
    drafted: bool = True
    shelved: bool = False
    """As few layers in memory as it goes."""


def estimate(
    model: LoadedModel, request: Request, held: int = 0, drafters: Sequence[LoadedModel] | None = None
) -> Estimate:
    """Reckon `request` on `model`, which may be a `Blueprint`; so may its `drafters`, where it holds none itself.

    `held`: bytes of their weights that are in memory already, and not free for anybody else.
    Raises StrategyError, ParameterError, CacheError when the request cannot be run at all.
    """
    check_model(model)
    check_request(request)
    check_bytes("held", held)
    if drafters is not None:
        check_drafters(drafters)
        request = replace(request, drafters=tuple(drafters))
    return _MemoryArithmetic(model, request, _free(model) + held).result()


class _MemoryArithmetic:
    def __init__(self, model: LoadedModel, request: Request, free: int) -> None:
        self.model, self.request, self.free = model, request, free
        self.strategy, self.config = resolve(model, request)
        seen = expected_positions(model) * len(request.media)
        self.source = seen or prompt_tokens(model, request)
        start = 1 if model.is_encoder_decoder else seen + prompt_tokens(model, request)
        start += beginning_tokens(model, request)
        new = new_token_limit(self.config, start)
        self.case = _Case(start, new, self._rows(self.config), caches.named(request.cache).name)

    def _rows(self, config: GenerationConfig) -> int:
        return self.strategy.rows(config, self.model.vocabulary)

    def result(self) -> Estimate:
        """The figures, and remedies where they are wanted."""
        case = self.case
        found = Estimate(
            self._weights(case), self._cache(self.model, case), self._draft(case), self._length(self.model, case),
            case.rows, self.free, caches.registry[case.cache].title,
        )  # fmt: skip
        return found if found.ok else replace(found, remedies=tuple(self._remedies()) or tuple(self._together()))

    def _needed(self, case: _Case) -> int:
        return self._weights(case) + self._cache(self.model, case) + self._draft(case)

    def _fits(self, case: _Case) -> bool:
        return has_room(self._needed(case), self.free)

    def _weights(self, case: _Case) -> int:
        if case.shelved:
            return least_bytes(self.model.model)
        return weights_kept(self.model, "int8") if case.packed else self.model.weight_bytes // (2 if case.halved else 1)

    def _length(self, model: LoadedModel, case: _Case) -> int:
        length = case.prompt + case.new
        bounded = model.context is not None and not caches.registry[case.cache].unbounded
        return min(length, model.context) if bounded and model.context is not None else length

    def _cache(self, model: LoadedModel, case: _Case) -> int:
        """Bytes on the device at a time; none where only the model knows its memory."""
        options = self.request.cache_options if case.cache == self.case.cache else {}
        length = self._length(model, case)
        situation = RunShape(case.rows, length, self.source if model.is_encoder_decoder else None, options)
        try:
            described = caches.registry[case.cache].describe(model, situation)
        except UnpredictableError:
            return 0
        held = described.size if described.resident is None else described.resident
        return worked_out(held, length) // (2 if case.halved else 1)

    def _draft(self, case: _Case) -> int:
        if not case.drafted:
            return 0
        plain = replace(case, cache="dynamic", rows=1, halved=False)
        whole = sum(draft.weight_bytes + self._cache(draft, plain) for draft in self.request.drafters)
        return whole // (2 if case.halved else 1)

    def _remedies(self) -> Iterator[str]:
        """Changes of one thing that are enough."""
        case = self.case
        if new := _most(case.new, lambda count: self._fits(replace(case, new=count))):
            yield trn("with at most {new:,} new token", "with at most {new:,} new tokens", new).format(new=new)
        if rows := _most(case.rows, lambda count: self._fits(replace(case, rows=count))):
            yield tr("with {what}").format(what=self._rows_words(rows))
        if others := [title for title in self._other_caches() if title]:
            sentence = tr("with the cache “{one}” or “{other}”") if len(others) > 1 else tr("with the cache “{one}”")
            yield sentence.format(one=tr(others[0]), other=tr(others[1 % len(others)]))
        if self.model.weights == "float32" and self._fits(replace(case, halved=True)):
            yield tr("in float16")
        if self._can_pack() and self._fits(replace(case, packed=True)):
            yield tr("with int8 weights")
        if self._can_shelve() and self._fits(replace(case, shelved=True)):
            yield tr("with layers read from the disk (“Weights…” in the list of models)")
        if self.request.drafters and self._fits(replace(case, drafted=False)):
            yield tr("without a draft model")

    def _can_pack(self) -> bool:
        return self.model.device.type == "cpu" and self.model.weights not in PACKED

    def _can_shelve(self) -> bool:
        return self._can_pack() and self.model.shelf is None

    def _together(self) -> Iterator[str]:
        """The least that has to change at once, where no single change is enough."""
        single = replace(self.case, rows=1)
        caches_too = [replace(single, cache=backend.name) for backend in self._serving()]
        for case in (single, *caches_too, *(replace(other, halved=True) for other in (single, *caches_too))):
            if case.halved and self.model.weights != "float32":
                return
            if new := self._most_new(case):
                words = (
                    [trn("at most {new:,} new token", "at most {new:,} new tokens", new).format(new=new)]
                    if new < case.new
                    else []
                )
                words += [self._rows_words(1)] if self.case.rows > 1 else []
                cache = tr("the cache “{title}”").format(title=tr(caches.registry[case.cache].title))
                words += [cache] if case.cache != self.case.cache else []
                words += ["float16"] if case.halved else []
                yield tr("with {what}").format(what=_together(words))
                return

    def _most_new(self, case: _Case) -> int:
        """New tokens that fit, up to those of the case; 0 when not even one does."""
        return _most(case.new + 1, lambda count: self._fits(replace(case, new=count)))

    def _rows_words(self, rows: int) -> str:
        if int(self.config.num_beams or 1) > 1:
            said = trn("{count} beam", "{count} beams", rows)
        elif self.config.do_sample:
            said = trn("{count} text", "{count} texts", rows)
        else:
            said = trn("{count} candidate", "{count} candidates", rows)
        return said.format(count=f"{rows:,}")

    def _serving(self) -> list[CacheBackend]:
        """Other back ends that can hold this run; exact ones first."""
        others = [backend for backend in caches.registry.values() if backend.name != self.case.cache]
        serving = [backend for backend in others if not backend.why_not(self.model, self.strategy.needs)]
        return sorted(serving, key=lambda backend: not backend.exact)

    def _other_caches(self) -> Iterator[str]:
        """Titles of those that are small enough."""
        for backend in self._serving():
            if self._fits(replace(self.case, cache=backend.name)):
                yield backend.title


def weights_kept(model: LoadedModel, kind: str) -> int:
    """Bytes of its weights kept as `kind`, near enough."""
    return int(model.parameters * BYTES[kind])


def prompt_tokens(model: LoadedModel, request: Request) -> int:
    """How many tokens the prompt has; a guess for a prompt that cannot be read yet."""
    try:
        return len(encode(model, request.prompt, unbounded=True))
    except DecodescopeError:
        return 1 + len(str(request.prompt)) // _GUESS


def beginning_tokens(model: LoadedModel, request: Request) -> int:
    """How many the answer begins with; a guess for what cannot be read yet."""
    try:
        return len(continuation(model, (), request.beginning))
    except TokenizerMissingError:
        return len(request.beginning)


def _most(asked: int, fits: Callable[[int], bool]) -> int:
    """The greatest count below `asked` that fits; 0 when not even one does."""
    low, high = 0, asked
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _free(model: LoadedModel) -> int:
    if model.device.type == "cuda":
        return int(torch.cuda.mem_get_info(model.device)[0])
    return free_memory()
