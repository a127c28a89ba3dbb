"""What a hub answers, validated before anything is made of it: types, ranges, lengths and the number of entries.

Field names are those of the hub's API (`/api/models`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from resources.language import tr

MAX_MODELS = 1000
"""Entries of a search that are read."""
SEARCH_BYTES = 16 * 2**20
MODEL_BYTES = 64 * 2**20
ERROR_BYTES = 2**20
TOTAL_TIMEOUT_SECONDS = 120.0
"""For an answer that is read at once, however slowly it comes."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_MAX_NAME_LENGTH = 96
_MAX_TAGS = 10_000

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1024)]
_Decoded = TypeVar("_Decoded")


class LfsInfo(msgspec.Struct):
    """How the hub stores a large file."""

    size: _Size
    sha256: _Text


class Sibling(msgspec.Struct):
    """A file of a repository."""

    rfilename: _Text
    size: _Size | None = None
    blobId: _Text | None = None
    lfs: LfsInfo | None = None


class ModelInfo(msgspec.Struct):
    """A repository, as a search lists it or as it is described by itself."""

    id: _Text
    sha: _Text | None = None
    downloads: _Size | None = None
    tags: Annotated[list[_Text], msgspec.Meta(max_length=_MAX_TAGS)] | None = None
    config: dict[str, Any] | None = None
    gated: bool | _Text | None = None
    private: bool | None = None
    siblings: Annotated[list[Sibling], msgspec.Meta(max_length=200_000)] | None = None


class InvalidResponseError(ValueError):
    """The answer is not what a hub says."""


def is_valid_model_name(name: str) -> bool:
    """Whether a model can be called so, and a folder after it."""
    odd = ("--" in name, ".." in name, name.endswith((".git", ".", "-")), len(name) > _MAX_NAME_LENGTH)
    return _NAME.fullmatch(name) is not None and not any(odd)


def read_models(data: bytes) -> list[ModelInfo]:
    """The models that a search lists; one that is described wrongly is left out. Raises WrongAnswerError where all
    are, or where it is no list."""
    listed = _decode(data, list[msgspec.Raw])[:MAX_MODELS]
    found, trouble = list[ModelInfo](), None
    for item in listed:
        try:
            found.append(_validate(_decode(item, ModelInfo)))
        except InvalidResponseError as error:
            trouble = error
    if trouble is not None and not found:
        raise trouble
    return found


def read_model(data: bytes) -> ModelInfo:
    """One model. Raises WrongAnswerError."""
    return _validate(_decode(data, ModelInfo))


def read_limited(pieces: Iterable[bytes], limit: int, seconds: float = TOTAL_TIMEOUT_SECONDS) -> bytes:
    """The pieces of an answer in one. Raises WrongAnswerError for one without end."""
    found, end = bytearray(), time.monotonic() + seconds
    for piece in pieces:
        found += piece
        if len(found) > limit:
            raise InvalidResponseError(tr("more than {limit:,} bytes").format(limit=limit))
        if time.monotonic() > end:
            raise InvalidResponseError(tr("not complete after {seconds:g} s").format(seconds=seconds))
    return bytes(found)


def _decode(data: bytes | msgspec.Raw, kind: type[_Decoded]) -> _Decoded:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidResponseError(str(error)) from None


def _validate(model: ModelInfo) -> ModelInfo:
    if not is_valid_model_name(model.id):
        raise InvalidResponseError(
            tr("“{name}” cannot be the name of a model").format(name=model.id[:_MAX_NAME_LENGTH])
        )
    if model.config is not None and not _is_depth_allowed(model.config):
        raise InvalidResponseError(tr("its config is nested too deeply"))
    return model


def _is_depth_allowed(value: object, depth: int = 64) -> bool:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_depth_allowed(item, depth - 1) for item in inside)
    return True
