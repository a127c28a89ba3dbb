"""Find the GGUF models of other programs on this computer. Importing this module does not import torch."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from decodescope.core.models.gguf.file_names import SUFFIX, is_companion, is_later_split
from decodescope.core.system.user_folders import expand_path, folder_variable, hub_cache, user_cache

_MAX_FILES = 5000
"""Maximum number of files listed per program."""
_MAX_DEPTH = 5
_MANIFEST_BYTES = 2**20


class LocalGguf(NamedTuple):
    """A GGUF model of another program."""

    program: str
    """The program's name."""
    title: str
    """The model's name there."""
    path: Path


def local_models() -> list[LocalGguf]:
    """Return the models of LM Studio, Ollama, llama.cpp, Jan, KoboldCpp, GPT4All and the hub's cache, by program.

    Nothing is written, and nothing beyond names and manifests is read. Never raises.
    """
    found: dict[Path, LocalGguf] = {}
    for program, folders in _folders().items():
        for folder in folders:
            for path in _files_in(folder):
                found.setdefault(path, LocalGguf(program, path.stem, path))
    for model in _ollama_models():
        found.setdefault(model.path, model)
    return list(found.values())


HUB_PROGRAM = "Hugging Face"
"""The program of the files in the hub's cache."""
PROGRAMS = ("LM Studio", "Ollama", "llama.cpp", "Jan", "KoboldCpp", "GPT4All", HUB_PROGRAM)
"""The programs whose models are found."""


def _folders() -> dict[str, list[Path]]:
    """Return where each program keeps its models, by the programs' documentation."""
    home = Path.home()
    local = folder_variable("LOCALAPPDATA") or home / "AppData" / "Local"
    roaming = folder_variable("APPDATA") or home / "AppData" / "Roaming"
    data = folder_variable("XDG_DATA_HOME") or home / ".local" / "share"
    support = home / "Library" / "Application Support"
    return {
        "LM Studio": [
            *_lm_studio_folder(home), home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models",
        ],
        "llama.cpp": [
            folder_variable("LLAMA_CACHE") or user_cache() / "llama.cpp",
            home / "Library" / "Caches" / "llama.cpp", local / "llama.cpp",
        ],
        "Jan": [
            base / "Jan" / "data" / "llamacpp" / "models" for base in (data, support, roaming)
        ] + [home / "jan" / "models", home / "jan" / "llamacpp" / "models"],
        "KoboldCpp": [home / "koboldcpp", home / "KoboldCpp", home / "koboldcpp" / "models"],
        "GPT4All": [data / "nomic.ai" / "GPT4All", support / "nomic.ai" / "GPT4All", local / "nomic.ai" / "GPT4All"],
        HUB_PROGRAM: [hub_cache()],
    }  # fmt: skip


def _lm_studio_folder(home: Path) -> Iterator[Path]:
    """Yield the folder for downloads that LM Studio's settings name."""
    with suppress(OSError, ValueError, RecursionError):
        settings = json.loads(_read_small(home / ".lmstudio" / "settings.json"))
        folder = settings.get("downloadsFolder") if isinstance(settings, dict) else None
        if isinstance(folder, str) and folder:
            yield Path(expand_path(folder))


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the models in a folder and below it, first parts only, in the order of their names."""
    count, waiting = 0, [(str(folder), 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except (OSError, ValueError):
            continue
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if depth < _MAX_DEPTH and not entry.name.startswith(("blobs", ".")):
                        waiting.append((entry.path, depth + 1))
                elif entry.name.lower().endswith(SUFFIX) and entry.is_file():
                    if is_later_split(entry.name) or is_companion(entry.name):
                        continue
                    yield Path(entry.path)
                    count += 1
                    if count >= _MAX_FILES:
                        return


def _ollama_models() -> Iterator[LocalGguf]:
    """Yield Ollama's models by name and tag: `manifests/registry/owner/name/tag` names the file in `blobs`."""
    given = os.environ.get("OLLAMA_MODELS", "").strip().strip("\"'")  # as Ollama reads its variables
    roots = [Path(expand_path(given))] if given else [Path.home() / ".ollama" / "models"]
    if not given and sys.platform.startswith("linux"):
        roots.append(Path("/usr/share/ollama/.ollama/models"))
    for root in roots:
        for manifest in _manifests(root / "manifests"):
            with suppress(OSError, ValueError, RecursionError):
                blob = _model_blob(json.loads(_read_small(manifest)))
                path = root / "blobs" / blob.replace(":", "-") if blob else None
                if path is not None and path.is_file():
                    yield LocalGguf("Ollama", _ollama_name(manifest.relative_to(root / "manifests")), path)


def _manifests(folder: Path) -> Iterator[Path]:
    for count, (place, folders, names) in enumerate(os.walk(folder)):
        folders.sort()
        if count >= _MAX_FILES:
            return
        for name in sorted(names):
            yield Path(place) / name


def _model_blob(manifest: object) -> str | None:
    layers = manifest.get("layers") if isinstance(manifest, dict) else None
    for layer in layers if isinstance(layers, list) else ():
        if isinstance(layer, dict) and layer.get("mediaType") == "application/vnd.ollama.image.model":
            digest = layer.get("digest")
            if isinstance(digest, str) and re.fullmatch(r"sha256[:-][0-9a-f]{64}", digest):
                return digest
    return None


def _ollama_name(manifest: Path) -> str:
    """Return `llama3.2:1b` for registry.ollama.ai/library/llama3.2/1b, else with its owner or registry."""
    *place, name, tag = manifest.parts
    known = ["registry.ollama.ai", "library"]
    rest = place[2:] if place[:2] == known else place[1:] if place[:1] == known[:1] else place
    return f"{'/'.join((*rest, name))}:{tag}"


def _read_small(file: Path) -> str:
    """Read a small regular file. Raises OSError."""
    if not file.is_file() or file.stat().st_size > _MANIFEST_BYTES:
        raise OSError
    return file.read_text(encoding="utf-8")
