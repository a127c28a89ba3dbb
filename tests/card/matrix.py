"""The matrix: every strategy with every cache on models of several families, on the CPU and on the pretend card.

A run on the card must yield the events of the same run on the CPU, or be refused for the same reason.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import math
import random
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core import caches
from decodescope.core.decoding.forward import fused_decoder
from decodescope.core.errors import DecodescopeError
from decodescope.core.events import CacheMeasured, CachePlan, Event, Finished, RunStarted
from tests.card.pretend_card import PretendCard
from tests.core import tiny, tiny_media

TOKENS = 6
MODELS = ("llama", "gpt2", "t5", "mistral", "mamba", "whisper", "captioner")
"""Grouped-query attention, learned positions, a decoder with another depth than its encoder, a sliding window, a
recurrent state, sound, pictures."""
DTYPES = ("float32", "bfloat16")
_NO_END = [tiny.VOCABULARY + 5]
_MEASURED = ("seconds", "time_to_first_token", "tokens_per_second", "speedup", "peak_memory_bytes")
"""Endings of the names of fields that depend on time or on the machine."""
_TOLERANCE = 1e-3
"""Of numbers, relative and absolute: native steps of the CPU sum in another order than torch."""


class Setting(NamedTuple):
    """Settings of one row of the matrix."""

    strategy: str
    config: Mapping[str, Any]
    options: Mapping[str, Any] = {}
    drafters: tuple[int, ...] = ()
    """Seeds of the draft models."""


SETTINGS: dict[str, Setting] = {
    "greedy": Setting("greedy", {"repetition_penalty": 1.2}),
    "sampling": Setting("sampling", {"do_sample": True, "top_k": 20, "top_p": 0.9}),
    "sampling ×3": Setting("sampling", {"do_sample": True, "num_return_sequences": 3, "temperature": 0.8}),
    "contrastive": Setting("contrastive", {"penalty_alpha": 0.6, "top_k": 3}),
    "dola": Setting("dola", {"dola_layers": "low"}),
    "beam_search": Setting("beam_search", {"num_beams": 3, "num_return_sequences": 2}),
    "beam_sampling": Setting("beam_sampling", {"num_beams": 3, "do_sample": True}),
    "diverse_beam_search": Setting(
        "diverse_beam_search", {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5}
    ),
    "constrained_beam_search": Setting("constrained_beam_search", {"num_beams": 3, "force_words_ids": [[11, 12]]}),
    "prompt_lookup": Setting("prompt_lookup", {"prompt_lookup_num_tokens": 3}),
    "lookahead": Setting("lookahead", {}),
    "early_exit": Setting("early_exit", {"assistant_early_exit": 2}),
    "assisted": Setting("assisted", {}, drafters=(3,)),
    "assisted, sampled": Setting("assisted", {"do_sample": True}, drafters=(3,)),
    "token_tree": Setting("token_tree", {}, drafters=(3,)),
    "token_tree, two drafts": Setting("token_tree", {"do_sample": True}, drafters=(3, 4)),
    "prediction_heads": Setting("prediction_heads", {}),
}
DRAWN_IN_FLOAT64 = ("assisted, sampled", "token_tree, two drafts")
"""Rows whose drafts are drawn with float64 numbers, except on MPS: another seed's text there."""


class CellOutcome(NamedTuple):
    """Comparable events of a run, or its refusal."""

    events: list[Any]
    error: tuple[str, str] | None


@cache
def host_model(kind: str, dtype: str = "float32", seed: int = 0, noise: float = 0.15) -> core.LoadedModel:
    """Return a tiny model on the CPU. `seed` other than 0: a draft model, the same with noise in its weights."""
    if kind in tiny_media.KINDS:
        model = tiny_media.make(kind)
    else:
        model = tiny.make(kind, **({"num_decoder_layers": 2} if kind == "t5" else {}))
    if seed:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.model.parameters():
                if parameter.dim() > 1:
                    parameter.add_(torch.randn(parameter.shape, generator=generator) * parameter.std() * noise)
    model.model.to(getattr(torch, dtype))
    return model


def on_card(model: core.LoadedModel, device: str = "cuda") -> core.LoadedModel:
    """Return a copy of a model on the pretend card."""
    twin = copy.deepcopy(model.model).to(device)
    return core.wrap(twin, model.tokenizer, model.name, processor=model.processor)


def request(setting: Setting, cache_name: str, traced: bool, media: str | None) -> core.Request:
    """Return the request of one cell of the matrix."""
    config = GenerationConfig(max_new_tokens=TOKENS, eos_token_id=_NO_END, **setting.config)
    return core.Request(
        "" if media else tiny.prompt(), config, setting.strategy, setting.options, cache_name,
        top_n=5 if traced else 0, seed=1, steady=True, media=(media,) if media else (),
    )  # fmt: skip


def outcome(
    model: core.LoadedModel, request: core.Request, drafters: tuple[core.LoadedModel, ...] = (), **more: Any
) -> CellOutcome:
    """Run a request. An error that is not a DecodescopeError is a fault and raises."""
    events: list[Any] = []
    try:
        for event in core.stream(model, request, drafters=drafters, **more):
            events.append(plain(event))
    except DecodescopeError as error:
        return CellOutcome([one for one in events if one is not None], (type(error).__name__, error.cause))
    return CellOutcome([one for one in events if one is not None], None)


def plain(event: Event) -> Any:
    """Return an event as plain data, without what depends on time or device; None for plans and measured sizes."""
    if isinstance(event, CachePlan | CacheMeasured):
        return None
    found = _plain(event)
    if isinstance(event, RunStarted):
        del found["device"]
    if isinstance(event, Finished):
        found["metrics"] = {key: value for key, value in found["metrics"].items() if not key.startswith("cache_")}
    return found


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        names = [one.name for one in dataclasses.fields(value) if one.name != "source"]
        names += [name for name in ("alternatives", "stages") if hasattr(value, name) and name not in names]
        kept = {name: _plain(getattr(value, name)) for name in names if not name.endswith(_MEASURED)}
        return {"": type(value).__name__, **kept}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def differences(host: Any, card: Any, where: str = "") -> Iterator[str]:
    """Yield the differences of two outcomes; numbers may differ by `_TOLERANCE`."""
    if isinstance(host, float) and isinstance(card, float):
        if not _is_close(host, card) and not (math.isnan(host) and math.isnan(card)):
            yield f"{where}: {host} on the CPU, {card} on the card"
    elif isinstance(host, dict) and isinstance(card, dict) and host.keys() == card.keys():
        for key, value in host.items():
            yield from differences(value, card[key], f"{where}.{key}" if key else where)
    elif isinstance(host, list | tuple) and isinstance(card, list | tuple) and where.endswith(_RANKINGS):
        yield from _ranking_differences(_ranking(host), _ranking(card), where)
    elif isinstance(host, list | tuple) and isinstance(card, list | tuple) and len(host) == len(card):
        for place, (one, other) in enumerate(zip(host, card, strict=True)):
            yield from differences(one, other, f"{where}[{place}]")
    elif host != card:
        yield f"{where}: {str(host)[:200]} on the CPU, {str(card)[:200]} on the card"


_RANKINGS = (".alternatives", ".top")


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _ranking(entries: Sequence[Any]) -> dict[int, tuple[Any, tuple[float, ...]]]:
    """Return the entry and the values by which it is ranked of every token."""
    found: dict[int, tuple[Any, tuple[float, ...]]] = {}
    for entry in entries:
        if isinstance(entry, dict):
            found[entry["id"]] = entry, (entry["raw_probability"], entry["probability"])
        else:
            found[entry[0]] = entry, (entry[1],)
    return found


def _ranking_differences(host: Mapping[int, Any], card: Mapping[int, Any], where: str) -> Iterator[str]:
    """Yield the differences of two rankings of tokens; equal values may be in any order.

    `torch.topk` orders them as it likes, which also decides which of them are left out. bfloat16 has many.
    """
    for name, some, others in (("card", host, card), ("CPU", card, host)):
        for token in some.keys() - others.keys():
            values = some[token][1]
            if not any(any(map(_is_close, values, other)) for _, other in others.values()):
                yield f"{where}: token {token} of {values} is not on the {name}"
    for token in host.keys() & card.keys():
        (entry, values), (other, _) = host[token], card[token]
        if sum(_is_close(values[0], one[0]) for _, one in host.values()) > 1 and isinstance(entry, dict):
            entry, other = {**entry, "rank": 0}, {**other, "rank": 0}
        yield from differences(entry, other, f"{where}<{token}>")


REFERENCES = {"offloaded_static": "static"}
"""Caches that are another one on the CPU (a file on disk): the cache to compare with. Its layers are the same."""
TITLES = {"Offloaded, static": "Static"}


CARDS: dict[str, dict[str, Any]] = {"cuda": {}, "cuda:1": {"count": 2}, "mps": {"kind": "mps"}}
"""The card of a device, as keyword arguments. The second of two cards and MPS have some of the cells."""


class MatrixCell(NamedTuple):
    """One cell of the matrix."""

    kind: str
    dtype: str
    is_traced: bool
    row: str
    cache_name: str
    device: str = "cuda"

    @property
    def words(self) -> tuple[str, ...]:
        """The name of its place on every axis."""
        traced = "traced" if self.is_traced else "untraced"
        return self.kind, self.dtype, traced, self.row, self.cache_name, self.device

    def __str__(self) -> str:
        return ", ".join(self.words)


def rounds() -> list[list[MatrixCell]]:
    """Return all cells in rounds of a fixed order: a round has every row with every cache, on models drawn at random.

    A part of the matrix thus covers all of its rows, caches and models, and all rounds together every cell once.
    """
    cells = [
        MatrixCell(*values) for values in itertools.product(MODELS, DTYPES, (True, False), SETTINGS, caches.registry)
    ]
    cells += [
        MatrixCell("llama", "float32", True, row, "dynamic", device) for row in SETTINGS for device in ("cuda:1", "mps")
    ]
    cells += [MatrixCell("llama", "float32", True, row, "offloaded", "cuda:1") for row in SETTINGS]
    random.Random(0).shuffle(cells)
    found: list[list[MatrixCell]] = []
    seen: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        number = seen[cell.row, cell.cache_name]
        seen[cell.row, cell.cache_name] += 1
        if number == len(found):
            found.append([])
        found[number].append(cell)
    return found


class CellComparison:
    """Runs cells on the CPU, without the card, and on the card; models and outcomes of the CPU are shared by cells.

    `folder`: for sounds and pictures.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cards: dict[str, PretendCard] = {}
        self._models: dict[str, dict[tuple[str, str, int], core.LoadedModel]] = {}
        """Models by the card's device."""
        self._on_host: dict[MatrixCell, CellOutcome] = {}
        self._media: dict[str, str] = {}

    def compare(self, cell: MatrixCell) -> tuple[str, list[str]]:
        """Run one cell on both. Return `same`, `refused` or `different`, and the differences.

        An error that is not a DecodescopeError is a difference as well.
        """
        if cell.device not in self._cards:
            self._cards[cell.device] = PretendCard(is_strict=True, **CARDS[cell.device])
            self._models[cell.device] = {}
        card = self._cards[cell.device]
        reference = cell._replace(cache_name=REFERENCES.get(cell.cache_name, cell.cache_name), device="cpu")
        with contextlib.ExitStack() as stack:
            if cell.dtype != "float32":
                # Native steps, fused passes and modules round in other places, and scores that are equal to eight bits
                # change their ranks. The modules alone compute the same on both.
                stack.enter_context(mock.patch.object(fused_decoder, "_can_be_fused", return_value=False))
            try:
                on_host = self._host_outcome(reference)
                with card:
                    on_card = self._outcome(cell)
            except Exception:
                return "different", [f"{cell}: {traceback.format_exc()}"]
            finally:
                if card.broken:  # as a process whose card is: it starts again
                    del self._cards[cell.device]
        if reference.cache_name != cell.cache_name:
            on_card = _as_reference(on_card, reference.cache_name)
        if cell.device == "mps" and cell.row in DRAWN_IN_FLOAT64 and on_card.error is None:
            return "same", []
        found = [f"{cell}: {one}" for one in differences(on_host, on_card)]
        if card.count > 1 and card.used[1] <= card.used[0]:
            found.append(f"{cell}: {card.used} bytes are used")
        return "different" if found else "refused" if on_host.error else "same", found

    def _host_outcome(self, cell: MatrixCell) -> CellOutcome:
        if cell.cache_name not in REFERENCES.values():
            return self._outcome(cell)
        if cell not in self._on_host:
            self._on_host[cell] = self._outcome(cell)
        return self._on_host[cell]

    def _outcome(self, cell: MatrixCell) -> CellOutcome:
        setting, kind = SETTINGS[cell.row], cell.kind
        if kind in tiny_media.KINDS and kind not in self._media:
            self._media[kind] = tiny_media.given(kind, self._folder)
        model, *drafters = (self._model(cell, seed) for seed in (0, *setting.drafters))
        return outcome(model, request(setting, cell.cache_name, cell.is_traced, self._media.get(kind)), tuple(drafters))

    def _model(self, cell: MatrixCell, seed: int) -> core.LoadedModel:
        key = cell.kind, cell.dtype, seed
        if cell.device == "cpu":
            return host_model(*key)
        models = self._models[cell.device]
        if key not in models:
            models[key] = on_card(host_model(*key), cell.device)
        return models[key]


def _as_reference(found: CellOutcome, reference: str) -> CellOutcome:
    """Return an outcome in the words of the cache that it is compared with."""
    for event in found.events:
        if event[""] == "RunStarted":
            event["cache"] = reference
    if found.error is None:
        return found
    kind, cause = found.error
    for title, other in TITLES.items():
        cause = cause.replace(title, other)
    return CellOutcome(found.events, (kind, cause))
