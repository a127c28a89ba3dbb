"""Growing cache layers with spare capacity: visible content, truncation, and ownership of the buffer."""

from __future__ import annotations

import copy as copying

import pytest
import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from decodescope.core.caches.tensors.cache_operations import compact, copy, copy_prefix, measure_storages
from decodescope.core.caches.tensors.dynamic_layers import KeyValueStorage, PreallocatedLayer, is_plain_dynamic_layer
from decodescope.core.caches.tensors.layer_adapters import PreallocatedLayerAdapter, adapt_layer

HEADS, WIDTH, HELD, PLACES = 2, 4, 5, 8
TOKEN_BYTES = HEADS * WIDTH * 4


def stores() -> KeyValueStorage:
    """Room for eight tokens of one text; number n of every token's states is the token's place."""
    made = KeyValueStorage.allocate_like(torch.zeros(1, HEADS, HELD, WIDTH), PLACES)
    for states in made[:2]:
        states.copy_(torch.arange(PLACES).view(1, 1, PLACES, 1).expand_as(states))
    return made


def layer_with_capacity() -> PreallocatedLayer:
    layer = PreallocatedLayer()
    layer.update(torch.zeros(1, HEADS, HELD, WIDTH), torch.zeros(1, HEADS, HELD, WIDTH))
    layer.set_storage(stores(), HELD)
    return layer


def cache_of(layer: PreallocatedLayer) -> DynamicCache:
    cache = DynamicCache()
    cache.layers = [layer]
    return cache


def shown(layer: DynamicLayer) -> list[int]:
    assert layer.keys is not None
    assert layer.values is not None
    assert torch.equal(layer.keys, layer.values)
    return [int(number) for number in layer.keys[0, 0, :, 0]]


def test_layer_without_capacity_equals_dynamic_layer() -> None:
    ours, theirs = PreallocatedLayer(), DynamicLayer()
    assert (ours.keys, ours.get_seq_length(), ours.row_count) == (None, 0, 0)
    for count in (3, 1):
        keys, values = torch.rand(2, HEADS, count, WIDTH), torch.rand(2, HEADS, count, WIDTH)
        for result, reference in zip(ours.update(keys, values), theirs.update(keys, values), strict=True):
            assert torch.equal(result, reference)
        assert (ours.get_seq_length(), ours.row_count) == (theirs.get_seq_length(), 2)
    assert ours.storage is None
    assert not ours.reserve(1)


def test_keys_and_values_exclude_spare_capacity() -> None:
    layer = layer_with_capacity()
    assert shown(layer) == [0, 1, 2, 3, 4]
    assert layer.reserve(2)
    assert shown(layer) == [0, 1, 2, 3, 4, 5, 6]
    assert not layer.reserve(2), "one place is left"
    assert layer.reserve(1)
    assert (layer.get_seq_length(), layer.row_count) == (PLACES, 1)


@pytest.mark.parametrize("cut", [lambda layer: layer.shorten(3), lambda layer: layer.crop(-2),
                                 lambda layer: adapt_layer(layer).truncate(3, HELD)])  # fmt: skip
def test_truncated_tokens_become_spare_capacity(cut: object) -> None:
    layer = layer_with_capacity()
    assert callable(cut)
    cut(layer)
    assert shown(layer) == [0, 1, 2]
    assert layer.storage is not None
    assert layer.reserve(PLACES - 3)


def test_layer_without_capacity_can_be_truncated() -> None:
    layer = PreallocatedLayer()
    layer.update(*stores()[:2])
    layer.shorten(9)
    layer.shorten(3)
    assert shown(layer) == [0, 1, 2]
    layer.crop(-1)
    assert (shown(layer), layer.get_seq_length()) == ([0, 1], 2)


def test_setting_keys_and_values_replaces_the_content() -> None:
    layer = layer_with_capacity()
    other = torch.full((1, HEADS, 2, WIDTH), 7.0)
    layer.keys, layer.values = other, other
    assert (shown(layer), layer.get_seq_length(), layer.storage) == ([7, 7], 2, None)
    assert not layer.reserve(1)


def test_update_with_spare_capacity_appends_to_the_content() -> None:
    layer = layer_with_capacity()
    more = torch.full((1, HEADS, 1, WIDTH), 9.0)
    layer.update(more, more)
    assert shown(layer) == [0, 1, 2, 3, 4, 9]
    assert layer.storage is None


def test_copies_and_prefixes_do_not_share_spare_capacity() -> None:
    """Two that wrote into the same places would spoil each other's text."""
    layer = layer_with_capacity()
    for cache, length in ((copy(cache_of(layer)), HELD), (copy_prefix(cache_of(layer), 3, lambda: None), 3)):
        twin = cache.layers[0]
        assert isinstance(twin, PreallocatedLayer)
        assert not twin.reserve(1)
        assert twin.get_seq_length() == length
    assert layer.reserve(1)
    assert shown(layer) == [0, 1, 2, 3, 4, 5]


def test_spare_capacity_is_measured_until_compacted() -> None:
    layer = layer_with_capacity()
    cache = cache_of(layer)
    assert isinstance(adapt_layer(layer), PreallocatedLayerAdapter)

    def held() -> list[int]:
        return [piece.bytes for piece in adapt_layer(layer).stored_tensors()]

    compact(cache, keep_spare=True)
    assert held() == [HELD * TOKEN_BYTES] * 2
    assert measure_storages(cache)[::6] == (2 * HELD * TOKEN_BYTES, 2 * (PLACES - HELD) * TOKEN_BYTES)
    compact(cache)
    assert held() == [HELD * TOKEN_BYTES] * 2
    assert measure_storages(cache).spare_bytes == 0
    assert shown(layer) == [0, 1, 2, 3, 4]
    assert not layer.reserve(1)


def test_plain_dynamic_layers_exclude_sliding_windows() -> None:
    assert is_plain_dynamic_layer(PreallocatedLayer())
    assert is_plain_dynamic_layer(DynamicLayer())
    assert not is_plain_dynamic_layer(DynamicSlidingWindowLayer(sliding_window=4))


def test_shallow_copy_keeps_its_own_content() -> None:
    layer = layer_with_capacity()
    twin = copying.copy(layer)
    twin.keys, twin.values = (states[:, :, :2] for states in (twin.keys, twin.values) if states is not None)
    assert (shown(twin), shown(layer)) == ([0, 1], [0, 1, 2, 3, 4])
