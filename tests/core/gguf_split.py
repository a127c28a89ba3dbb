"""Split GGUF files for tests."""

from __future__ import annotations

from pathlib import Path

from decodescope import core
from decodescope.core.models.gguf.export import file_content
from decodescope.core.models.gguf.file_writer import write_file
from decodescope.core.models.model_saving import exported_model


def split(path: Path, target: Path, change: dict[str, object] | None = None) -> Path:
    """Write the tensors of a file as two parts; return the first."""
    model = core.load(path, weights="float32")
    metadata, entries = file_content(exported_model(model), "F32")
    for number, part in enumerate((entries[::2], entries[1::2])):
        own = (metadata if number == 0 else {}) | {
            "split.no": number, "split.count": 2, "split.tensors.count": len(entries), **(change or {}),
        }  # fmt: skip
        with (target / f"tiny-{number + 1:05}-of-00002.gguf").open("wb") as stream:
            write_file(stream, own, part)
    return target / "tiny-00001-of-00002.gguf"
