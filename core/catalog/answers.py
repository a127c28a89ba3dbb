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

MOST_MODELS = 1000
"""Entries of a search that are read."""
SEARCH_BYTES = 16 * 2**20
MODEL_BYTES = 64 * 2**20
ERROR_BYTES = 2**20
SECONDS_IN_ALL = 120.0
"""For an answer that is read at once, however slowly it comes."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_LONGEST_NAME = 96
_MOST_TAGS = 10_000

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1024)]
_Answer = TypeVar("_Answer")


class LargeFile(msgspec.Struct):
    """How the hub stores a large file."""

    size: _Size
    sha256: _Text


class Sibling(msgspec.Struct):
    """A file of a repository."""

    rfilename: _Text
    size: _Size | None = None
    blobId: _Text | None = None
    lfs: LargeFile | None = None


class ModelAnswer(msgspec.Struct):
    """A repository, as a search lists it or as it is described by itself."""

    id: _Text
    sha: _Text | None = None
    downloads: _Size | None = None
    tags: Annotated[list[_Text], msgspec.Meta(max_length=_MOST_TAGS)] | None = None
    config: dict[str, Any] | None = None
    gated: bool | _Text | None = None
    private: bool | None = None
    siblings: Annotated[list[Sibling], msgspec.Meta(max_length=200_000)] | None = None


class WrongAnswerError(ValueError):
    """The answer is not what a hub says."""


def is_name(name: str) -> bool:
    """Whether a model can be called so, and a folder after it."""
    odd = ("--" in name, ".." in name, name.endswith((".git", ".", "-")), len(name) > _LONGEST_NAME)
    return _NAME.fullmatch(name) is not None and not any(odd)


def read_models(data: bytes) -> list[ModelAnswer]:
    """The models that a search lists; one that is described wrongly is left out. Raises WrongAnswerError where all
    are, or where it is no list."""
    listed = _decode(data, list[msgspec.Raw])[:MOST_MODELS]
    found, trouble = list[ModelAnswer](), None
    for item in listed:
        try:
            found.append(_checked(_decode(item, ModelAnswer)))
        except WrongAnswerError as error:
            trouble = error
    if trouble is not None and not found:
        raise trouble
    return found


def read_model(data: bytes) -> ModelAnswer:
    """One model. Raises WrongAnswerError."""
    return _checked(_decode(data, ModelAnswer))


def collect(pieces: Iterable[bytes], limit: int, seconds: float = SECONDS_IN_ALL) -> bytes:
    """The pieces of an answer in one. Raises WrongAnswerError for one without end."""
    found, end = bytearray(), time.monotonic() + seconds
    for piece in pieces:
        found += piece
        if len(found) > limit:
            raise WrongAnswerError(tr("more than {limit:,} bytes").format(limit=limit))
        if time.monotonic() > end:
            raise WrongAnswerError(tr("not complete after {seconds:g} s").format(seconds=seconds))
    return bytes(found)


def _decode(data: bytes | msgspec.Raw, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WrongAnswerError(str(error)) from None


def _checked(answer: ModelAnswer) -> ModelAnswer:
    if not is_name(answer.id):
        raise WrongAnswerError(tr("“{name}” cannot be the name of a model").format(name=answer.id[:_LONGEST_NAME]))
    if answer.config is not None and not _is_flat(answer.config):
        raise WrongAnswerError(tr("its config is nested too deeply"))
    return answer


def _is_flat(value: object, depth: int = 64) -> bool:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_flat(item, depth - 1) for item in inside)
    return True
