"""Models and files of the hub as plain values, and the selection of the files to download."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_digest(digits: str) -> bool:
    """A commit, or a file's SHA-1 or SHA-256, in hexadecimal digits: fit to be the name of a file."""
    return _DIGEST.fullmatch(digits) is not None


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository."""

    path: str
    """Inside the repository, with slashes."""
    size: int
    """Bytes."""
    digest: str
    """Its SHA-256 where it is a large file, else git's SHA-1 of it: 64 or 40 hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """What the hub tells of a model, and what this machine makes of it."""

    name: str
    """owner/name."""
    commit: str
    """Of its main branch."""
    licence: str
    """As the hub names it; empty where it is not told."""
    size: int
    """Bytes of the files that a download takes."""
    architecture: str
    """Family and shape in a few words once it is judged, before that the family alone."""
    downloads: int
    """In the last month."""
    gated: bool
    """Its owner grants access on request."""
    private: bool
    files: tuple[HubFile, ...]
    """Those that a download takes, the small ones first."""
    left_out: tuple[str, ...]
    """Those that it leaves on the hub."""
    pickled: bool
    """Its weights are pickles, which have to be allowed."""
    family: str = ""
    """Its type as a name."""
    judged: bool = False
    """Whether the following are known."""
    parameters: int = 0
    fits: bool = False
    """It can be loaded here, and there is memory for it, in float32."""
    fits_as: str = ""
    """Where it does not: the weights (bfloat16, int8, int4) in which there is memory for it, the finest that do."""
    needed: int = 0
    """Bytes of memory, loaded in float32 or as `fits_as` says, with the keys and values of a text of 2,048 tokens."""
    free: int = 0
    """Bytes that were free then."""
    figures: str = ""
    """What it takes and what is free, in a sentence."""
    why_not: str = ""
    """Why it does not fit, or cannot be used at all; empty when it can."""


_TEXT = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template"
    r"|source_vocab|target_vocab|vocab-src|vocab-tgt)\.json"
    r"|(vocab|merges|emoji)\.txt|merges\.json|[\w.-]+\.(model|spm|tiktoken|bpe)|(chat_template|[\w.-]+)\.jinja"
    r"|additional_chat_templates/[\w.-]+\.jinja|(LICEN[CS]E|NOTICE|USE_POLICY)(\.(md|txt))?",
    re.IGNORECASE,
)
"""Configuration, tokenizer, chat templates, and the licence, which goes with what it licenses."""
_WEIGHTS = tuple(
    re.compile(rf"{stem}(-\d{{5}}-of-\d{{5}})?\.{suffix}(\.index\.json)?")
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin"))
)
_CODE = re.compile(r"[\w.-]+\.py")
_PART = re.compile(r"[\w][\w.+ -]*", re.ASCII)
_MAX_TEXT_BYTES = 2**30


class FileSelection(NamedTuple):
    """What is taken, what is left."""

    taken: tuple[HubFile, ...]
    left: tuple[str, ...]
    pickled: bool
    """There are weights, and all of them are pickles."""

    @property
    def has_weights(self) -> bool:
        """Whether weights are among what is taken."""
        return any(is_weights(file.path) for file in self.taken)


def select_files(files: Iterable[HubFile], allow_pickle: bool = False, allow_code: bool = False) -> FileSelection:
    """Whole weights in one file are preferred to shards of the same, safetensors to pickles."""
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


def is_safe(path: str) -> bool:
    """Whether it is the name of a file below the repository's own folder, on every system."""
    return all(_PART.fullmatch(part) and not part.endswith((".", " ")) for part in path.split("/"))


def is_weights(path: str) -> bool:
    """Whether it holds tensors, and not only the list of them."""
    return any(pattern.fullmatch(path) for pattern in _WEIGHTS) and not path.endswith(".json")


def is_index(path: str) -> bool:
    """Whether it is the list of tensors and of the shards that hold them."""
    return any(pattern.fullmatch(path) for pattern in _WEIGHTS) and path.endswith(".json")


def _weights(files: Sequence[HubFile], pattern: re.Pattern[str]) -> list[HubFile]:
    """The whole file, or else all shards with their index."""
    matching = [(file, found) for file in files if (found := pattern.fullmatch(file.path))]
    whole = [file for file, found in matching if not found[1] and not found[2]]
    return whole or [file for file, found in matching if found[1] or found[2]]
