"""Folders that look like models to lists and pickers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def model_folder(folder: Path, layers: int, tokenizer: str = "a", **more: Any) -> str:
    """Create a model folder in which only the sizes are realistic."""
    folder.mkdir()
    header = json.dumps({"w": {"dtype": "F16", "shape": [layers, 4], "data_offsets": [0, layers * 8]}}).encode()
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", **more}), encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(layers * 8))
    return str(folder)
