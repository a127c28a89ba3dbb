"""Folders of LM Studio, Ollama, llama.cpp and the hub's cache with small GGUF files, below a home folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from decodescope.core.models.model_saving import save_gguf
from tests.core import gguf_models

LM_STUDIO = ".lmstudio/models/someone/Tiny-Tales-GGUF/Tiny-Tales-Q8_0.gguf"
HUB = ".cache/huggingface/hub/models--someone--Small-Talk-GGUF/snapshots/{commit}/Small-Talk-F16.gguf"
LLAMA_CPP = ".cache/llama.cpp/someone_Nursery_nursery-f32.gguf"
OLLAMA_NAME = "bedtime:tiny"


def fill(home: Path) -> dict[str, Path]:
    """Write the folders; return the file of each program."""
    model = gguf_models.make("llama")
    made = {}
    for program, place, kind in (
        ("LM Studio", LM_STUDIO, "Q8_0"), ("Hugging Face", HUB.format(commit="c" * 40), "F16"),
        ("llama.cpp", LLAMA_CPP, "F32"),
    ):  # fmt: skip
        made[program] = home / place
        made[program].parent.mkdir(parents=True, exist_ok=True)
        save_gguf(model, made[program], kind)
    made["Ollama"] = _put_into_ollama(home / ".ollama" / "models", made["LM Studio"])
    return made


def _put_into_ollama(folder: Path, file: Path) -> Path:
    """Copy a file into Ollama's folder as its tag `bedtime:tiny`."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    blob, manifest = folder / "blobs" / f"sha256-{digest}", folder / "manifests/registry.ollama.ai/library/bedtime/tiny"
    for place in (blob, manifest):
        place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, blob)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": [layer]}), encoding="utf-8")
    return blob


def use_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all programs have their folders below `home`."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(Path, "home", lambda: home)
    for name in (
        "XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS",
        "LLAMA_CACHE",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
