"""Describe a GGUF file by the beginning of its metadata. Importing this module does not import torch."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from decodescope.core.common.text import cut_short
from decodescope.core.errors import ModelError
from decodescope.core.models.gguf.architectures import ARCHITECTURES, unsupported_reason
from decodescope.core.models.gguf.file_names import (
    UnreadableGgufError,
    is_companion,
    is_gguf,
    is_later_split,
    split_files,
)
from decodescope.core.models.gguf.gguf_file import FILE_TYPES, Value, hash_vocabulary, read_summary
from decodescope.core.models.model_files import JsonObject, size_of
from decodescope.resources.language import mark, tr

_SIZE_LABEL = re.compile(r"^(?:(\d+)x)?(\d+(?:\.\d+)?)([KMBT])$")
_MAGNITUDES = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


class GgufSummary(NamedTuple):
    """Description of a GGUF model in a list."""

    config: JsonObject
    """The shape in transformers' names."""
    format_name: str
    parameters: int | None
    """As the file's label says, rounded."""
    bytes: int
    problem: str | None
    """Why it cannot be loaded, as a clause."""


def summarize_gguf(path: Path) -> GgufSummary:
    """Summarize a file by the beginning of its metadata. Never raises."""
    try:
        files = split_files(path)
        metadata = read_summary(files[0])
    except ModelError as error:
        problem = error.reason if isinstance(error, UnreadableGgufError) else error.cause
        return GgufSummary({}, "", None, size_of(path), problem)
    if metadata.get("general.type") == "adapter":
        problem = tr("it is an adapter: add it to the model that it was trained for")
        return GgufSummary({}, "", None, sum(map(size_of, files)), problem)
    name = metadata.get("general.architecture")
    known = ARCHITECTURES.get(name) if isinstance(name, str) else None
    if known is None:
        problem = unsupported_reason(str(name)[:40])
        return GgufSummary({}, _format_name(metadata), None, sum(map(size_of, files)), problem)
    config: JsonObject = {"model_type": known.model_type}
    for key, own in known.keys.items():
        value = metadata.get(f"{name}.{key}")
        if isinstance(value, (int, float)) and math.isfinite(value):
            config[own] = value
    missing = [file.name for file in files if not size_of(file)]
    absent = tr("{file} is missing").format(file=missing[0]) if missing else None
    return GgufSummary(config, _format_name(metadata), _parameters(metadata), sum(map(size_of, files)), absent)


def _format_name(metadata: Mapping[str, Value]) -> str:
    kind = metadata.get("general.file_type")
    return FILE_TYPES.get(kind, "") if isinstance(kind, int) else ""


def _parameters(metadata: Mapping[str, Value]) -> int | None:
    counted = metadata.get("general.parameter_count")
    if isinstance(counted, int) and not isinstance(counted, bool) and counted > 0:
        return counted
    label = metadata.get("general.size_label")
    found = _SIZE_LABEL.match(label) if isinstance(label, str) else None
    if found is None:
        return None
    experts, number, letter = found.groups()
    return int(int(experts or 1) * float(number) * _MAGNITUDES[letter])


def gguf_remedy(path: Path) -> str:
    """Return what helps where `gguf_problem` has a reason, as a sentence."""
    if not is_gguf(path):
        return tr("Choose a GGUF file.")
    if is_companion(path.name):
        return tr("Choose the model that it belongs to.")
    try:
        files = split_files(path)
        metadata = read_summary(files[0])
    except ModelError:
        return tr("Copy or download it again, or choose another file.")
    if metadata.get("general.type") == "adapter":
        return tr("Choose its model, then add the adapter.")
    if not all(map(size_of, files)):
        return tr("Put all parts of the model into one folder.")
    return tr("Serve it with llama.cpp and connect to it (Tools › Connect to an engine…), or choose another file.")


def unsupported_adapter_reason(metadata: Mapping[str, object]) -> str | None:
    """Return why a GGUF file with this metadata is no adapter that is applied here, as a clause; None if it is."""
    if metadata.get("general.type") != "adapter":
        return tr("it is not an adapter")
    if metadata.get("adapter.type") != "lora":
        return tr("it is an adapter of the kind {kind}").format(kind=cut_short(str(metadata.get("adapter.type")), 40))
    if "adapter.alora.invocation_tokens" in metadata:
        return tr("it is switched on by certain tokens of the text (aLoRA)")
    return None


_READ_ALIKE = {
    "bloom", "lfm2", "llama", "mamba", "nemotron", "phi3", "qwen2", "stablelm", "starcoder2",
}  # fmt: skip
"""Architectures of which transformers' own loader of GGUF files makes the same model, by tests/core/test_gguf.py. It
leaves out scaled positions, experts, widths of heads, norms and windows of others, or does not know them."""


def transformers_problem(path: Path) -> str:
    """Return why transformers' `gguf_file=` does not make the same model of a file, as a sentence; "" if it does."""
    try:
        files = split_files(path)
        metadata = read_summary(files[0])
    except ModelError as error:
        return error.cause
    if len(files) > 1:
        return tr("it does not read GGUF files in several parts.")
    name = str(metadata.get("general.architecture", ""))
    if name not in _READ_ALIKE:
        return tr("it does not read GGUF files of the architecture “{name}”, or reads them differently.").format(
            name=name[:40]
        )
    if metadata.get(f"{name}.expert_count"):
        return tr("it reads the experts in GGUF files differently.")
    if metadata.get(f"{name}.rope.scaling.type") not in (None, "none"):
        return tr("it does not read the scaling of positions in GGUF files.")
    return ""


def vocabulary_stamp(path: Path) -> bytes:
    """Return bytes that are the same for files with the same vocabulary, by its size and its first tokens."""
    try:
        return hash_vocabulary(split_files(path)[0])
    except ModelError:
        return b""


def content_stamp(paths: Iterable[Path], limit: int = 2**24) -> str:
    """Return a hash of the beginning of each file: its header and its first weights."""
    total = hashlib.sha256()
    for path in paths:
        with suppress(OSError), path.open("rb") as stream:
            total.update(str(size_of(path)).encode())
            total.update(stream.read(limit))
    return total.hexdigest()


COMPANION_REASON = mark("it belongs to a model, but is none")


def is_gguf_model(path: Path) -> bool:
    """Return whether a file is a model, or the first part of one, by its name. Never raises."""
    return is_gguf(path) and not is_companion(path.name) and not is_later_split(path.name)


def gguf_problem(path: Path) -> str | None:
    """Return why a file with the suffix .gguf is not opened, as a clause; None if it may be."""
    if not is_gguf(path):
        return tr("it is not a GGUF file")
    return tr(COMPANION_REASON) if is_companion(path.name) else summarize_gguf(path).problem
