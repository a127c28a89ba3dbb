"""Adapters of every cache layer class: truncate, select, reorder, copy and measure."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.cache_utils import (
    DynamicIndexedLayer,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionLayer,
    StaticLayer,
)

from decodescope.core.caches.tensors.adapted_layer import NEVER, RowMove
from decodescope.core.caches.tensors.disk_cache import DiskLayer
from decodescope.core.caches.tensors.dynamic_layers import WindowLayer
from decodescope.core.caches.tensors.layer_adapters import adapt_layer
from decodescope.core.caches.tensors.static_layers import FixedSizeLayer
from decodescope.core.errors import CacheError

LENGTH = 6
HOLDING_ALL: dict[str, Callable[[Path], Any]] = {
    "growing": lambda folder: DynamicLayer(),
    "fixed": lambda folder: StaticLayer(8),
    "fixed, ours": lambda folder: FixedSizeLayer(8),
    "windowed": lambda folder: DynamicSlidingWindowLayer(16),
    "windowed, ours": lambda folder: WindowLayer(16),
    "on disk": lambda folder: DiskLayer(folder, ThreadPoolExecutor(1), None),
}


def filled(layer: Any, rows: int = 2) -> Any:
    """A layer that has read LENGTH tokens; the number of each is its key, ten times its row more."""
    places = torch.arange(float(LENGTH)).view(1, 1, -1, 1) + 10 * torch.arange(float(rows)).view(-1, 1, 1, 1)
    states = places.expand(rows, 2, LENGTH, 4).contiguous()
    layer.update(states, -states)
    return layer


def kept(layer: Any, row: int = 0) -> list[int]:
    """Tokens that a layer shows in a row."""
    keys, values = adapt_layer(layer).states()
    assert torch.equal(keys, -values)
    return [int(key) for key in keys[row, 0, : adapt_layer(layer).tokens_read(), 0]]


@pytest.mark.parametrize("kind", HOLDING_ALL)
def test_full_layers_support_truncate_select_and_reorder(kind: str, tmp_path: Path) -> None:
    layer = filled(HOLDING_ALL[kind](tmp_path))
    assert adapt_layer(layer).min_length() == 0
    twin = adapt_layer(layer).clone()
    adapt_layer(layer).keep_rows(2, [1, 3])
    assert kept(layer) == [0, 1, 3, 5]
    adapt_layer(layer).truncate(3, 4)
    adapt_layer(layer).compact()
    assert kept(layer) == [0, 1, 3]
    adapt_layer(layer).reorder(RowMove((1, 1), 2))
    assert kept(layer, 0) == kept(layer, 1) == [10, 11, 13]
    assert kept(twin) == list(range(LENGTH))


@pytest.mark.parametrize("kind", HOLDING_ALL)
def test_stored_tensors_account_for_every_byte(kind: str, tmp_path: Path) -> None:
    found = [
        piece
        for piece in adapt_layer(filled(HOLDING_ALL[kind](tmp_path))).stored_tensors()
        if piece.part in ("keys", "values")
    ]
    room = 8 if kind.startswith("fixed") else LENGTH
    assert sum(piece.bytes for piece in found) == 2 * 2 * 2 * room * 4 * 4


def test_moved_window_refuses_to_drop_tokens() -> None:
    layer = filled(WindowLayer(4))
    assert adapt_layer(layer).held_spans() == ((3, 6),)
    assert adapt_layer(layer).min_length() == 6
    with pytest.raises(CacheError, match="moved past"):
        adapt_layer(layer).truncate(5, LENGTH)
    with pytest.raises(CacheError, match="moved past"):
        adapt_layer(layer).keep_rows(4, [1])
    adapt_layer(layer).keep_rows(LENGTH, [])
    assert adapt_layer(layer).held_spans() == ((3, 6),)


def test_index_is_truncated_with_its_keys() -> None:
    layer = filled(DynamicIndexedLayer())
    layer.update_indexer(torch.zeros(2, LENGTH, 3))
    adapt_layer(layer).truncate(4, LENGTH)
    assert (layer.keys.shape[2], layer.indexer_keys.shape[1]) == (4, 4)
    adapt_layer(layer).keep_rows(1, [2])
    assert (layer.keys.shape[2], layer.indexer_keys.shape[1]) == (2, 2)


def test_only_recorded_convolution_states_can_be_truncated() -> None:
    for recorded in (False, True):
        layer: Any = LinearAttentionLayer()
        adapt_layer(layer).record_past(recorded)
        layer.update_conv_state(torch.arange(5.0).expand(1, 2, 5), conv_kernel_size=3)
        assert adapt_layer(layer).min_length() == NEVER
        if not recorded:
            with pytest.raises(CacheError, match="cannot be rolled back"):
                adapt_layer(layer).truncate(4, 5)
            continue
        adapt_layer(layer).truncate(4, 5)
        assert layer.conv_states[0][0, 0].tolist() == [1.0, 2.0, 3.0]
