"""Split GGUF files for tests."""

from __future__ import annotations

from pathlib import Path

import core
from core.models import gguf_export


def split(path: Path, target: Path, change: dict[str, object] | None = None) -> Path:
    """Write the tensors of a file as two parts; return the first."""
    model = core.load(path, weights="float32")
    name, known = gguf_export._architecture(model)
    metadata = gguf_export._shape_metadata(model, name, known, "F32") | gguf_export._tokenizer_metadata(model)
    entries = list(gguf_export._entries(model, known, "F32"))
    for number, part in enumerate((entries[::2], entries[1::2])):
        own = (metadata if number == 0 else {}) | {
            "split.no": number, "split.count": 2, "split.tensors.count": len(entries), **(change or {}),
        }  # fmt: skip
        with (target / f"tiny-{number + 1:05}-of-00002.gguf").open("wb") as stream:
            gguf_export._write(stream, own, part)
    return target / "tiny-00001-of-00002.gguf"
