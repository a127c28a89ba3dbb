"""Where models are found, what they are and whether they fit; importing this does not import torch."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import ConfigMissingError, ModelNotFoundError
from core.models.footprint import cache_bytes

BUNDLED = Path(__file__).resolve().parents[2] / "resources" / "models"
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
    "source.spm", "tokenizer_config.json",
)  # fmt: skip
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """The files weights come from; `pickled` when no safetensors were found."""

    files: tuple[Path, ...]
    pickled: bool


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model on this disk, described without loading it."""

    name: str
    """What `core.load` takes."""
    title: str
    source: str
    """bundled, hub or folder."""
    path: Path
    architecture: str
    """Family and shape in a few words: `Llama · 12 layers × 192`."""
    model_type: str
    parameters: int | None
    bytes: int
    """Of the weights as stored."""
    context: int | None
    encoder_decoder: bool
    problem: str | None = None
    """Why it cannot be loaded as it is, in a sentence."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a model's weights fit into memory; sizes in bytes."""

    ok: bool
    needed: int
    free: int
    sentence: str


def available() -> list[ModelEntry]:
    """Every model found without being told where: bundled ones, then the local hub cache."""
    return [*bundled(), *hub_cached()]


def bundled() -> list[ModelEntry]:
    """The models that ship with the program; the full-size ones before their drafts."""
    if not BUNDLED.is_dir():
        return []
    entries = [describe(path, path.name, "bundled") for path in BUNDLED.iterdir() if (path / "config.json").exists()]
    return sorted(entries, key=lambda entry: ("draft" in entry.name, entry.name != "storyteller", entry.name))


def hub_cached() -> list[ModelEntry]:
    """Models whose newest snapshot lies in the Hugging Face hub's local cache."""
    return [
        describe(snapshot, name, "hub")
        for name, snapshot in sorted(_snapshots())
        if _generates(snapshot)
    ]  # fmt: skip


def inspect(folder: str | Path) -> ModelEntry:
    """A model in a folder of the user's. Raises ModelNotFoundError, ConfigMissingError."""
    path = locate(str(folder))
    read_config(path)
    return describe(path, str(path), "folder")


def locate(name: str) -> Path:
    """The folder of a bundled name, a path, or a hub id in the local cache. Raises ModelNotFoundError."""
    if name and "/" not in name and "\\" not in name and (BUNDLED / name / "config.json").exists():
        return BUNDLED / name
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    for cached, snapshot in _snapshots():
        if cached == name:
            return snapshot
    looks_local = path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1
    what = "The folder {} does not exist." if looks_local else "There is no model “{}” on this disk."
    known = ", ".join(entry.name for entry in bundled()) or "none"
    raise ModelNotFoundError(
        what.format(name), f"Choose a folder with a model, a model in the hub cache, or a bundled one ({known})."
    )


def display_name(name: str, path: Path) -> str:
    """A bundled or hub model's own name; the folder's name otherwise."""
    return path.name if Path(name).expanduser().is_dir() else name


def read_config(path: Path) -> dict[str, Any]:
    """config.json of the folder. Raises ConfigMissingError when there is none or it is not JSON."""
    file = path / "config.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigMissingError(
            f"{path} holds no config.json, so it is not a Hugging Face model folder.",
            "Choose the folder that holds config.json beside the weights.",
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigMissingError(
            f"{file} is not readable JSON ({error}).", "Copy or download the file again."
        ) from None
    if not isinstance(data, dict):
        raise ConfigMissingError(f"{file} does not hold a JSON object.", "Copy or download the file again.")
    return data


def find_weights(path: Path) -> WeightFiles:
    """Safetensors if there are any, pickled files otherwise; shards by their index, missing ones included."""
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin")):
        index, single = path / f"{stem}.{suffix}.index.json", path / f"{stem}.{suffix}"
        if index.exists():
            shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            return WeightFiles(tuple(path / shard for shard in shards), suffix == "bin")
        if single.exists():
            return WeightFiles((single,), suffix == "bin")
    return WeightFiles((), False)


def fits(entry: ModelEntry, dtype: str = "float32", device: str = "auto", tokens: int = 0, rows: int = 1) -> Fit:
    """Whether the weights, in `dtype`, fit into the memory that is free now (the host's; a GPU is asked on loading).

    With `tokens`, the keys and values of `rows` texts of that length are reckoned in, or of the context where it is
    shorter. `core.estimate` reckons a whole request, with the model's own shape.
    """
    weights = entry.parameters * _BYTES.get(dtype, 4) if entry.parameters else entry.bytes
    tokens = min(tokens, entry.context or tokens)
    cache = rows * _cache_bytes(entry, tokens, _BYTES.get(dtype, 4)) if tokens else 0
    needed, free = weights + cache, free_memory()
    ok = has_room(needed, free)
    texts = f" × {rows}" if rows > 1 else ""
    parts = f" ({size_words(weights)} of weights, {size_words(cache)} for {tokens:,} tokens{texts})" if cache else ""
    words = f"needs {size_words(needed)}{parts} of {size_words(free)} free"
    return Fit(ok, needed, free, words if ok else f"{words}: it does not fit")


def has_room(needed: int, free: int) -> bool:
    """Whether so many bytes fit into those that are free, with a tenth to spare for what is computed on the way."""
    return needed * 1.1 < free


def _cache_bytes(entry: ModelEntry, tokens: int, element_bytes: int) -> int:
    try:
        return cache_bytes(read_config(entry.path), tokens, element_bytes)
    except ConfigMissingError:
        return 0


def free_memory() -> int:
    """Bytes of memory that can be had without swapping; a large guess where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30


def size_words(size: float) -> str:
    """Bytes as people read them, binary units: 11.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return ""


def describe(path: Path, name: str, source: str) -> ModelEntry:
    """What config.json and the weights' headers tell; never raises for a broken model, but says so in `problem`."""
    try:
        config, problem = read_config(path), None
    except ConfigMissingError as error:
        config, problem = {}, error.cause
    weights = find_weights(path)
    return ModelEntry(
        name=name,
        title=Path(name).name if source == "folder" else name,
        source=source,
        path=path,
        architecture=_shape(config),
        model_type=str(config.get("model_type", "")),
        parameters=_count(weights),
        bytes=sum(file.stat().st_size for file in weights.files if file.exists()),
        context=config.get("max_position_embeddings") or config.get("n_positions"),
        encoder_decoder=bool(config.get("is_encoder_decoder")),
        problem=problem or _weights_problem(weights),
    )


def _weights_problem(weights: WeightFiles) -> str | None:
    if not weights.files:
        return "holds no weights"
    if missing := [file.name for file in weights.files if not file.exists()]:
        return f"{missing[0]} is missing"
    return "only pickled weights; they must be allowed first" if weights.pickled else None


def _shape(config: dict[str, Any]) -> str:
    family = str(config.get("model_type", "unknown")).replace("_", " ").title()
    layers = config.get("num_hidden_layers") or config.get("n_layer") or config.get("num_layers")
    width = config.get("hidden_size") or config.get("n_embd") or config.get("d_model")
    return f"{family} · {layers} layers × {width}" if layers and width else family


def _count(weights: WeightFiles) -> int | None:
    """Number of stored weights by the safetensors headers; None where they cannot be read."""
    if weights.pickled or not weights.files:
        return None
    try:
        return sum(_numel(shape) for file in weights.files for shape in _shapes(file))
    except (OSError, ValueError, KeyError, struct.error):
        return None


def _shapes(file: Path) -> Iterator[list[int]]:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(min(length, 100_000_000)))
    return (entry["shape"] for name, entry in header.items() if name != "__metadata__")


def _numel(shape: list[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _hub_cache() -> Path:
    """The hub library's cache folder, by its own environment variables."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME")
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    return (Path(home).expanduser() if home else cache / "huggingface") / "hub"


def _snapshots() -> Iterator[tuple[str, Path]]:
    """(hub id, folder of the snapshot that `main`, or else the newest, points to)."""
    root = _hub_cache()
    for folder in root.glob("models--*") if root.is_dir() else ():
        snapshots = [path for path in (folder / "snapshots").glob("*") if path.is_dir()]
        if not snapshots:
            continue
        main = folder / "refs" / "main"
        wanted = main.read_text(encoding="utf-8").strip() if main.exists() else ""
        newest = max(snapshots, key=lambda path: (path.name == wanted, path.stat().st_mtime))
        yield folder.name.removeprefix("models--").replace("--", "/"), newest


def _generates(snapshot: Path) -> bool:
    """Whether its architectures name a language-model head (embedders and classifiers are left out of the list)."""
    try:
        config = read_config(snapshot)
    except ConfigMissingError:
        return False
    names = config.get("architectures") or []
    return any(name.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")) for name in names)
