"""Models and files of the hub as plain values, and the selection of the files to download."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from decodescope.core.models.gguf.file_names import SEPARATOR, find_model, group_models

_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_digest(digits: str) -> bool:
    """Return whether the text is a commit, SHA-1 or SHA-256 in hexadecimal digits, which is safe as a file name."""
    return _DIGEST.fullmatch(digits) is not None


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository."""

    path: str
    """Path within the repository, with slashes."""
    size: int
    """Bytes per float32."""
    digest: str
    """SHA-256 of a large file, else git's SHA-1: 64 or 40 hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class GgufVariant:
    """One of the GGUF models of a repository, which usually differ in the format of their weights."""

    key: str
    """Its name within the repository."""
    format_name: str
    """Q4_K_M; empty if the name of the file does not say."""
    bits: int | None
    """Nominal bits per weight; None if unknown."""
    files: tuple[HubFile, ...]
    """Its parts in order."""
    fits: bool | None = None
    """Whether it fits into memory; None before the model is judged."""
    needed: int = 0
    """Bytes needed, including keys and values for 2,048 tokens."""
    free: int = 0
    figures: str = ""
    """Sentence with the required and the free memory."""

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model on the hub: its listing, and whether it fits this machine."""

    name: str
    """owner/name."""
    commit: str
    """Commit of its main branch."""
    licence: str
    """Licence as named by the hub; empty if unknown."""
    size: int
    """Bytes of the files to download."""
    architecture: str
    """Family and shape in a few words once judged, before that only the family."""
    downloads: int
    """Downloads in the last month."""
    gated: bool
    """Access has to be granted by the owner."""
    private: bool
    files: tuple[HubFile, ...]
    """Files to download, the small ones first."""
    left_out: tuple[str, ...]
    """Files that are not downloaded."""
    pickled: bool
    """Its weights are pickles, which must be allowed explicitly."""
    family: str = ""
    """Name of its model type."""
    judged: bool = False
    """Whether the following fields are known."""
    parameters: int = 0
    fits: bool = False
    """It can be loaded here, and its float32 weights fit into memory."""
    fits_as: str = ""
    """If it does not fit in float32: the finest of bfloat16, int8 and int4 that fits."""
    needed: int = 0
    """Bytes needed in float32 or as `fits_as` says, including keys and values for 2,048 tokens."""
    free: int = 0
    """Bytes of memory that were free at that time."""
    figures: str = ""
    """Sentence with the required and the free memory."""
    why_not: str = ""
    """Reason why it does not fit or cannot be used; empty if it can."""
    variants: tuple[GgufVariant, ...] = ()
    """The GGUF models to choose from, the smallest first; empty for a model in transformers' format."""
    variant: str = ""
    """Key of the chosen one, to which files, size and fit belong."""

    @property
    def download_name(self) -> str:
        """The name for `download`: that of the repository, with the chosen GGUF model."""
        return f"{self.name}{SEPARATOR}{self.variant}" if self.variant else self.name

    def with_variant(self, key: str) -> HubModel:
        """Return the model with another GGUF model chosen; itself if there is none with that key or format."""
        chosen = find_model(self.variants, key)
        if chosen is None or chosen.key == self.variant:
            return self
        own = {file.path for variant in self.variants for file in variant.files}
        files = (*(file for file in self.files if file.path not in own), *chosen.files)
        left_out = own.union(self.left_out) - {file.path for file in files}
        is_judged = chosen.fits is not None
        return replace(
            self,
            variant=chosen.key,
            files=files,
            left_out=tuple(sorted(left_out)),
            size=sum(file.size for file in files),
            fits=bool(chosen.fits),
            needed=chosen.needed,
            free=chosen.free,
            figures=chosen.figures,
            why_not=("" if chosen.fits else chosen.figures) if is_judged else self.why_not,
        )


_TEXT = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template"
    r"|source_vocab|target_vocab|vocab-src|vocab-tgt)\.json"
    r"|(vocab|merges|emoji)\.txt|merges\.json|[\w.-]+\.(model|spm|tiktoken|bpe)|(chat_template|[\w.-]+)\.jinja"
    r"|additional_chat_templates/[\w.-]+\.jinja|(LICEN[CS]E|NOTICE|USE_POLICY)(\.(md|txt))?",
    re.IGNORECASE,
)
"""Configuration, tokenizer, chat templates, and the licence of the model."""
_LICENCE = re.compile(r"(LICEN[CS]E|NOTICE|USE_POLICY)(\.(md|txt))?", re.IGNORECASE)
_WEIGHTS = tuple(
    re.compile(rf"{stem}(-\d{{5}}-of-\d{{5}})?\.{suffix}(\.index\.json)?")
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin"))
)
_CODE = re.compile(r"[\w.-]+\.py")
_PART = re.compile(r"[\w][\w.+ -]*", re.ASCII)
_MAX_TEXT_BYTES = 2**30


class FileSelection(NamedTuple):
    """The files to download and those left out."""

    selected: tuple[HubFile, ...]
    left_out: tuple[str, ...]
    pickled: bool
    """There are weights, and all of them are pickles."""

    @property
    def has_weights(self) -> bool:
        """Whether the selection includes weights."""
        return any(is_weights(file.path) for file in self.selected)


def select_files(files: Iterable[HubFile], allow_pickle: bool = False, allow_code: bool = False) -> FileSelection:
    """Select the files to download; prefer a single weights file to shards, and safetensors to pickles."""
    known = [file for file in files if is_safe(file.path)]
    safe, pickles = (_weights(known, pattern) for pattern in _WEIGHTS)
    weights = safe or (pickles if allow_pickle else [])
    texts = [file for file in known if _TEXT.fullmatch(file.path) and file.size <= _MAX_TEXT_BYTES]
    code = [file for file in known if allow_code and _CODE.fullmatch(file.path)]
    taken = tuple(sorted({*weights, *texts, *code}, key=lambda file: (is_weights(file.path), file.size)))
    names = {file.path for file in taken}
    return FileSelection(
        taken, tuple(file.path for file in known if file.path not in names), bool(pickles) and not safe
    )


def select_gguf_companions(files: Iterable[HubFile]) -> FileSelection:
    """Select the files to download with any GGUF model: only the licence, as it contains its own configuration."""
    known = [file for file in files if is_safe(file.path)]
    taken = tuple(file for file in known if _LICENCE.fullmatch(file.path) and file.size <= _MAX_TEXT_BYTES)
    names = {file.path for file in taken}
    return FileSelection(taken, tuple(file.path for file in known if file.path not in names), False)


def is_safe(path: str) -> bool:
    """Return whether the path stays below the repository's folder on every system."""
    return all(_PART.fullmatch(part) and not part.endswith((".", " ")) for part in path.split("/"))


def is_weights(path: str) -> bool:
    """Return whether the file holds tensors (not only their index)."""
    return any(pattern.fullmatch(path) for pattern in _WEIGHTS) and not path.endswith(".json")


def is_index(path: str) -> bool:
    """Return whether the file is the index of sharded weights."""
    return any(pattern.fullmatch(path) for pattern in _WEIGHTS) and path.endswith(".json")


def _weights(files: Sequence[HubFile], pattern: re.Pattern[str]) -> list[HubFile]:
    """Return the single weights file, or else all shards with their index."""
    matching = [(file, found) for file in files if (found := pattern.fullmatch(file.path))]
    whole = [file for file, found in matching if not found[1] and not found[2]]
    return whole or [file for file, found in matching if found[1] or found[2]]


_USUAL_FORMAT = "Q4_K_M"
"""The format that llama.cpp downloads unless another one is named."""


def gguf_variants(files: Iterable[HubFile]) -> tuple[GgufVariant, ...]:
    """Return the complete GGUF models among the files of a repository, the smallest first."""
    known = {file.path: file for file in files if is_safe(file.path)}
    found = (
        GgufVariant(names.key, names.format_name, names.bits, tuple(known[path] for path in names.paths))
        for names in group_models(known)
    )
    return tuple(sorted(found, key=lambda variant: (variant.size, variant.key)))


def default_variant(variants: Sequence[GgufVariant]) -> GgufVariant:
    """Return the variant to offer first: the usual format if it fits or is not judged yet, or else the largest that
    fits, or the smallest.
    """
    usable = [variant for variant in variants if variant.fits is not False]
    usual = next((variant for variant in usable if variant.format_name == _USUAL_FORMAT), None)
    return usual or (usable[-1] if usable else variants[0])
