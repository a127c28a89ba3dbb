"""Keys and values in a few bits: older tokens are quantized in blocks once, the latest tokens stay exact."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from decodescope.core.caches.measurement import RunShape
from decodescope.core.caches.tensors.adapted_layer import AdaptedLayer, RowMove, StoredTensor, stored_tensor
from decodescope.core.caches.tensors.cache_sizes import LayerShapes, cross_attention_size, key_value_widths, sum_terms
from decodescope.core.common.size_terms import (
    NOTHING,
    DifferenceOf,
    Length,
    NamedNumber,
    ProductOf,
    QuotientOf,
    RemainderOf,
    SumOf,
    Term,
)
from decodescope.core.errors import CacheError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.resources.language import join_names, tr

QuantizedGroups = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Codes [N, G] as uint8, scales [N, 1], offsets [N, 1]: number ≈ code · scale + offset."""
Quantizer = Callable[[torch.Tensor, int], QuantizedGroups]

_LIBRARIES = {"quanto": ("optimum", "optimum.quanto"), "hqq": ("hqq",)}
_PACKAGES = {"quanto": "optimum-quanto", "hqq": "hqq"}
_BITS = {"built-in": (1, 2, 4, 8), "quanto": (2, 4), "hqq": (1, 2, 4, 8), "fp8": (8,)}


def quantizer_for(engine: str, bits: int) -> Quantizer:
    """Return the quantizer of an engine. Raises CacheError if its library is missing or does not support the bit
    width.
    """
    if not is_installed(engine):
        raise CacheError(
            tr("Quantizing with {engine} needs a library that is not installed.").format(engine=engine),
            tr("Install it with: {command}. Or choose the built-in quantizer.").format(
                command=f"pip install {_PACKAGES[engine]}"
            ),
        )
    if bits not in _BITS[engine]:
        widths = join_names(map(str, _BITS[engine]))
        raise CacheError(
            tr("{engine} does not support {bits} bits.").format(engine=engine, bits=bits),
            tr("Choose one of: {names}.").format(names=widths),
        )
    return {"built-in": quantize_min_max, "quanto": quantize_quanto, "hqq": quantize_hqq, "fp8": quantize_fp8}[engine]


def is_installed(engine: str) -> bool:
    """Return whether the engine's library can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in _LIBRARIES.get(engine, ()))


def quantize_min_max(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """Quantize each group [N, G] in even steps from minimum to maximum (asymmetric round-to-nearest).

    With one bit, use the means below and above the group's middle, because the two extremes would miss all values
    between.
    """
    if bits == 1:
        middle = groups.mean(1, keepdim=True)
        reach = (groups - middle).abs().mean(1, keepdim=True)
        return (groups > middle).to(torch.uint8), 2 * reach, middle - reach
    low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
    scale = ((high - low) / (2**bits - 1)).clamp(min=torch.finfo(torch.float16).tiny)
    codes = ((groups - low) / scale).round().clamp(0, 2**bits - 1)
    return codes.to(torch.uint8), scale, low


def quantize_quanto(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """Quantize with optimum-quanto's `MaxOptimizer`, 2 or 4 bits."""
    import optimum.quanto as library  # optional, and slow to load

    kind = library.qint4 if bits == 4 else library.qint2
    scale, shift = library.MaxOptimizer()(groups, kind, 0, None)
    # Use the library's operator directly: its packed tensors would compile C++ on the user's machine.
    codes: torch.Tensor = torch.ops.quanto.quantize_affine(groups, bits, 0, None, scale, shift)
    return codes, scale, -shift


def quantize_hqq(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """Quantize with half-quadratic quantization (Badri & Shaji 2023), which moves the zero point to reduce the
    error.
    """
    from hqq.core.quantize import Quantizer as Library  # optional, and slow to load

    packed, meta = Library.quantize(
        groups, nbits=bits, group_size=groups.shape[1], axis=1, device=str(groups.device), compute_dtype=torch.float32
    )
    codes = Library.unpack[meta["packing"]](packed)
    return codes.to(torch.uint8), meta["scale"], -meta["zero"] * meta["scale"]


def quantize_fp8(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """Quantize to 8-bit floating point (e4m3), scaled so that the largest number of a group just fits."""
    limit = torch.finfo(torch.float8_e4m3fn).max
    scale = (groups.abs().amax(1, keepdim=True) / limit).clamp(min=torch.finfo(torch.float16).tiny)
    codes = (groups / scale).to(torch.float8_e4m3fn)
    return codes.view(torch.uint8), scale, torch.zeros_like(scale)


def pack_codes(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Pack codes [..., n] of `bits` bits into bytes [..., n · bits / 8]."""
    each = 8 // bits
    if each == 1:
        return codes
    parts = torch.unflatten(codes, -1, (-1, each))
    packed = parts[..., 0].clone()
    for place in range(1, each):
        packed |= parts[..., place] << (place * bits)
    return packed


def unpack_codes(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """Reverse `pack_codes`."""
    each = 8 // bits
    if each == 1:
        return packed
    return torch.stack([(packed >> (place * bits)) & (2**bits - 1) for place in range(each)], dim=-1).flatten(-2)


@dataclass(frozen=True, slots=True)
class QuantizationSettings:
    """The format of quantized tokens. `axis_key` and `axis_value` say what shares a scale: `channel` or `token`."""

    engine: str = "built-in"
    bits: int = 4
    axis_key: str = "channel"
    axis_value: str = "token"
    group: int = 32
    residual: int = 64

    def create_quantizer(self) -> Quantizer:
        """Return the quantizer. Raises CacheError if these settings are not possible here."""
        if self.residual % self.group:
            raise CacheError(
                tr("Blocks of {residual} tokens cannot be divided into groups of {group}.").format(
                    residual=self.residual, group=self.group
                ),
                tr("Make the number of exact tokens a multiple of the group size."),
            )
        return quantizer_for(self.engine, 8 if self.engine == "fp8" else self.bits)

    @property
    def bit_width(self) -> int:
        """Bits per number."""
        return 8 if self.engine == "fp8" else self.bits

    def group_size(self, axis: str, channels: int) -> int:
        """Return how many numbers share a scale: along the tokens of a block, or along the channels of a token."""
        if axis == "channel":
            return self.group
        return max(size for size in range(1, min(self.group, channels) + 1) if channels % size == 0)


class QuantizedStorage:
    """All quantized blocks of keys or of values: packed codes, scales and offsets, [B, H, blocks, …]."""

    def __init__(self, settings: QuantizationSettings, axis: str, quantizer: Quantizer) -> None:
        self.settings, self.axis, self.quantizer = settings, axis, quantizer
        self.codes: torch.Tensor | None = None
        self.scales: torch.Tensor | None = None
        self.offsets: torch.Tensor | None = None
        self.channels = 0

    @property
    def blocks(self) -> int:
        """Number of blocks written."""
        return 0 if self.codes is None else self.codes.shape[2]

    def append(self, states: torch.Tensor) -> torch.Tensor:
        """Quantize full blocks [B, H, n · residual, D] and return them dequantized, in the same shape."""
        new = copy.copy(self)
        batch, heads, _, self.channels = states.shape
        new.channels = self.channels
        blocks = torch.unflatten(states.float(), 2, (-1, self.settings.residual))
        rows = blocks.transpose(-1, -2) if self.axis == "channel" else blocks
        group = self.settings.group_size(self.axis, self.channels)
        codes, scales, offsets = self.quantizer(rows.reshape(-1, group), self.settings.bit_width)
        small = torch.float16 if states.dtype == torch.float32 else states.dtype
        lead = (batch, heads, blocks.shape[2], -1)
        new.codes = pack_codes(codes.reshape(lead), self.settings.bit_width)
        new.scales, new.offsets = (part.to(small).reshape(lead) for part in (scales, offsets))
        for name in ("codes", "scales", "offsets"):
            old = getattr(self, name)
            setattr(self, name, getattr(new, name) if old is None else torch.cat([old, getattr(new, name)], dim=2))
        return new.read(states.dtype)

    def read(self, dtype: torch.dtype) -> torch.Tensor:
        """Return everything dequantized, [B, H, blocks · residual, D]."""
        assert self.codes is not None
        assert self.scales is not None
        assert self.offsets is not None
        codes = unpack_codes(self.codes, self.settings.bit_width)
        numbers = (codes.view(torch.float8_e4m3fn) if self.settings.engine == "fp8" else codes).to(dtype)
        groups = torch.unflatten(numbers, -1, (self.scales.shape[-1], -1))
        flat = torch.addcmul(self.offsets[..., None].to(dtype), groups, self.scales[..., None].to(dtype)).flatten(-2)
        if self.axis == "token":
            return torch.unflatten(flat, -1, (self.settings.residual, self.channels)).flatten(2, 3)
        return torch.unflatten(flat, -1, (self.channels, self.settings.residual)).transpose(-1, -2).flatten(2, 3)

    def reorder(self, rows: torch.Tensor) -> None:
        """Make new row i the old row `rows[i]`."""
        for name in ("codes", "scales", "offsets"):
            if (tensor := getattr(self, name)) is not None:
                setattr(self, name, tensor.index_select(0, rows))


class QuantizedLayer(DynamicLayer, AdaptedLayer):
    """Layer whose `keys` and `values` are the latest tokens (less than a block); older tokens are in two quantized
    stores.
    """

    keys: torch.Tensor
    values: torch.Tensor
    allows_fused_pass = True
    keeps_original_keys = False

    def __init__(self, settings: QuantizationSettings) -> None:
        DynamicLayer.__init__(self)
        quantizer = settings.create_quantizer()
        self.settings = settings
        self.stores = (
            QuantizedStorage(settings, settings.axis_key, quantizer),
            QuantizedStorage(settings, settings.axis_value, quantizer),
        )
        self.squares = (0.0, 0.0)
        """Sums of squares: the quantization error of the keys, and the keys."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D] and return all tokens, the new ones exact."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys = torch.cat([self.keys, key_states], dim=-2)
        self.values = torch.cat([self.values, value_states], dim=-2)
        seen = self._concatenated(self.stores[0], self.keys), self._concatenated(self.stores[1], self.values)
        full = self.keys.shape[-2] // self.settings.residual * self.settings.residual
        if full:
            self._quantize_oldest(full)
        return seen

    def _concatenated(self, store: QuantizedStorage, latest: torch.Tensor) -> torch.Tensor:
        return torch.cat([store.read(latest.dtype), latest], dim=-2) if store.blocks else latest

    def _quantize_oldest(self, count: int) -> None:
        """Quantize the first `count` of the latest tokens into the stores."""
        old = self.keys[:, :, :count]
        lost = (self.stores[0].append(old).float() - old.float()).square().sum().item()
        self.squares = (self.squares[0] + lost, self.squares[1] + old.float().square().sum().item())
        self.stores[1].append(self.values[:, :, :count])
        self.keys, self.values = self.keys[:, :, count:].clone(), self.values[:, :, count:].clone()

    def get_seq_length(self) -> int:
        """Return the number of tokens held in either form."""
        latest = self.keys.shape[-2] if self.is_initialized and self.keys.dim() == 4 else 0
        return self.stores[0].blocks * self.settings.residual + int(latest)

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Make new row i the old row `beam_idx[i]`, without requantizing."""
        if not self.is_initialized:
            return
        rows = beam_idx.to(self.keys.device)
        self.keys, self.values = self.keys.index_select(0, rows), self.values.index_select(0, rows)
        for store in self.stores:
            store.reorder(rows)

    def tokens_read(self) -> int:
        """Return the number of tokens held."""
        return self.get_seq_length()

    def min_length(self) -> int:
        """Return the shortest length it can be cropped to exactly: quantized blocks cannot be split."""
        return self.stores[0].blocks * self.settings.residual

    def truncate(self, length: int, total: int) -> None:
        """Drop all but the first `length` tokens. Raises CacheError if that would split a block."""
        if length < self.min_length():
            raise CacheError(
                tr(
                    "The first {tokens:,} tokens are quantized in blocks and cannot be cropped to {length:,} exactly."
                ).format(tokens=self.min_length(), length=length),
                tr("Choose the dynamic cache."),
            )
        if self.is_initialized:
            remaining = length - self.min_length()
            self.keys, self.values = self.keys[:, :, :remaining].clone(), self.values[:, :, :remaining].clone()

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Raise CacheError: blocks cannot be split."""
        raise CacheError(tr("A quantized cache cannot keep only selected positions."), tr("Choose the dynamic cache."))

    def reorder(self, move: RowMove) -> None:
        """Reorder the rows of codes, scales and latest tokens."""
        self.reorder_cache(move.index(self.keys.device if self.is_initialized else torch.device("cpu")))

    def error_sums(self) -> tuple[float, float]:
        """Return the sums of squares of the keys."""
        return self.squares

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the unquantized keys and values."""
        return self.keys, self.values

    def clone(self) -> QuantizedLayer:
        """Return an independent layer with the same content."""
        twin = copy.copy(self)
        if self.is_initialized:
            twin.keys, twin.values = self.keys.clone(), self.values.clone()
        # The tensors of a store are replaced, never changed in place.
        twin.stores = (copy.copy(self.stores[0]), copy.copy(self.stores[1]))
        return twin

    def stored_tensors(self) -> Iterator[StoredTensor]:
        """Yield codes, scales and the latest tokens."""
        pieces: list[tuple[str, torch.Tensor | None]] = [("residual", self.keys), ("residual", self.values)]
        for part, store in zip(("keys", "values"), self.stores, strict=True):
            pieces += [(part, store.codes), ("scales", store.scales), ("scales", store.offsets)]
        for part, tensor in pieces:
            if tensor is not None:
                yield stored_tensor(part, tensor)


def build_quantized(model: LoadedModel, settings: QuantizationSettings) -> DynamicCache:
    """Build an empty quantized cache of a decoder. Raises CacheError if the settings are not possible here."""
    settings.create_quantizer()
    cache = DynamicCache(config=model.config)
    cache.layers = [QuantizedLayer(settings) for _ in cache.layers]
    return cache


def quantized_size(shapes: LayerShapes, run: RunShape, settings: QuantizationSettings) -> Term:
    """Return the cache size: full blocks in few bits with two 16-bit numbers per group, and the latest tokens exact."""
    attending = [shape for shape in shapes.own if shape.has_keys]
    if not attending:
        return NOTHING
    shape, exact = attending[0], RemainderOf(settings.residual, "exact")
    written, each = (
        DifferenceOf(Length(), exact),
        (NamedNumber(run.rows, "batch"), NamedNumber(shape.heads, "kv heads")),
    )
    codes = SumOf((
        _bytes_per_token(settings, "key", settings.axis_key, shape.key_width),
        _bytes_per_token(settings, "value", settings.axis_value, shape.value_width),
    ))  # fmt: skip
    latest = ProductOf((*key_value_widths(shape), NamedNumber(shape.element_size, "bytes"), exact))
    own = ProductOf((*each, NamedNumber(len(attending), "layers"), SumOf((ProductOf((codes, written)), latest))))
    return sum_terms(own, cross_attention_size(shapes, run))


def _bytes_per_token(recipe: QuantizationSettings, detail: str, axis: str, width: int) -> Term:
    """Return the bytes that the keys, or the values, of one quantized token take in one head."""
    codes = QuotientOf(NamedNumber(recipe.bit_width, "bits"), NamedNumber(8))
    scales = QuotientOf(NamedNumber(4), NamedNumber(recipe.group_size(axis, width), f"{detail} group"))
    return ProductOf((NamedNumber(width, f"{detail} width"), SumOf((codes, scales))))
