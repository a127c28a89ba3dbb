"""Listing the hub cache takes a few file operations per model and no full scan."""

from __future__ import annotations

import builtins
import json
import os
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from decodescope.app.control.model_list import ModelList
from decodescope.core.models import catalog
from decodescope.core.models.model_files import WeightFiles, count_stored, read_header

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 2, "vocab_size": 99, "max_position_embeddings": 512,
}  # fmt: skip
_MOST_CALLS = 7
"""File operations for one model: two folders listed, the reference examined, and three files opened; one to spare."""


def header(entries: Any) -> bytes:
    data = json.dumps(entries).encode()
    return struct.pack("<Q", len(data)) + data


def fill(cache: Path, count: int) -> None:
    weights = header({f"w{n}": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} for n in range(20)})
    for number in range(count):
        commit = f"{number:040x}"
        repository = cache / f"models--owner--model{number}"
        snapshot = repository / "snapshots" / commit
        snapshot.mkdir(parents=True)
        for folder in ("blobs", "refs"):
            (repository / folder).mkdir()
        (repository / "refs" / "main").write_text(commit)
        for name, data in (("config.json", json.dumps(CONFIG).encode()), ("model.safetensors", weights),
                           ("tokenizer.json", b"{}"), ("generation_config.json", b"{}")):  # fmt: skip
            (repository / "blobs" / name).write_bytes(data)
            (snapshot / name).symlink_to(Path("../../blobs") / name)


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Number of file operations on the cache."""
    found: Counter[str] = Counter()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    def counted(name: str, call: Any) -> Any:
        def wrapper(path: Any = ".", *args: Any, **options: Any) -> Any:
            if not isinstance(path, int) and str(path).startswith(str(tmp_path)):
                found[name] += 1
            return call(path, *args, **options)

        return wrapper

    for name in ("stat", "scandir", "listdir", "access", "symlink", "mkdir", "readlink", "lstat", "open"):
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
    opened = builtins.open
    monkeypatch.setattr(builtins, "open", counted("open", opened))
    monkeypatch.setattr("io.open", counted("open", opened))
    return found


def test_listing_takes_a_few_file_operations_per_model(
    tmp_path: Path, counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.scan_cache_dir", None)
    fill(tmp_path, 30)
    counts.clear()
    entries = catalog.hub_cached()
    assert [entry.problem for entry in entries] == [None] * 30
    assert entries[0].parameters == 20 * 6
    assert counts["scandir"] >= 60, "the calls that list a folder are no longer counted"
    assert sum(counts.values()) <= 30 * _MOST_CALLS, counts
    assert 30 * 3 <= counts["open"] <= 30 * 3 + 5, counts


def test_finding_one_model_does_not_read_the_others(tmp_path: Path, counts: Counter[str]) -> None:
    fill(tmp_path, 30)
    counts.clear()
    assert catalog.cached_model("owner/model7") is not None
    assert sum(counts.values()) <= _MOST_CALLS, counts


def test_draft_list_skips_tokenizers_of_another_size(tmp_path: Path, counts: Counter[str]) -> None:
    fill(tmp_path, 20)
    for number in range(1, 20):
        (tmp_path / f"models--owner--model{number}" / "blobs" / "tokenizer.json").write_bytes(b" " * number + b"{}")
    models = ModelList()
    models.add(catalog.hub_cached())
    counts.clear()
    models.drafts_for("owner/model0")
    assert counts["open"] == 0


@pytest.mark.parametrize(
    ("entries", "numbers"),
    [
        ({"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"format": "pt"}}, 6),
        ({"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, 1),
        ({"a": {"shape": [2], "data_offsets": [0, 4], "more": None}, "__metadata__": {"shape": "x"}}, 2),
        ({}, 0),
        ({"a": {"shape": [True], "data_offsets": [0, 4]}}, None),
        ({"a": {"shape": [-1], "data_offsets": [0, 4]}}, None),
        ({"a": {"shape": [2**53], "data_offsets": [0, 4]}}, None),
        ({"a": {"shape": [1.5], "data_offsets": [0, 4]}}, None),
        ({"a": {"shape": [2], "data_offsets": [0]}}, None),
        ({"a": {"shape": [2], "data_offsets": [0, 4], "dtype": 5}}, None),
        ({"a": {"shape": [2]}}, None),
        ({"a": 5}, None),
        ([], None),
    ],
)
def test_counted_weights_equal_those_of_the_header(entries: Any, numbers: int | None, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(header(entries))
    read, counted = read_header(file), count_stored(WeightFiles((file,), False))
    assert (counted.numbers if counted else None) == numbers
    assert (counted is None) == (read is None)
    if read is not None and counted is not None:
        assert counted.tensors == len(read)
