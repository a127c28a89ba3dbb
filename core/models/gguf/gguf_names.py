"""Which GGUF files of a repository are one model, and what their names say about it. Reads no file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from core.models.gguf.gguf_file import SUFFIX, is_companion

SEPARATOR = ":"
"""Separates a repository from one of its models: `owner/name:model-Q4_K_M`."""
_SPLIT = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})")
_FORMAT = re.compile(
    r"(?<![A-Za-z0-9])((?:IQ|Q|TQ)\d(?:_[A-Z0-9]+)*|BF16|FP?16|FP?32|MXFP4(?:_MOE)?)(?![A-Za-z0-9_])", re.IGNORECASE
)
_BITS = re.compile(r"\d+")


class GgufNames(NamedTuple):
    """The files of one model."""

    key: str
    """Its name among the models of its repository."""
    format_name: str
    """Format of the weights, by the name of the file or its folder: Q4_K_M; empty if they do not say."""
    paths: tuple[str, ...]
    """All parts in order."""

    @property
    def bits(self) -> int | None:
        """Nominal bits per weight; None if the names do not say."""
        found = _BITS.search(self.format_name)
        return int(found[0]) if found is not None else None


def group_models(paths: Iterable[str]) -> list[GgufNames]:
    """Return the complete models among the paths of a repository, in the order of their paths. Image projectors,
    matrices of importances and split models with missing parts are left out.
    """
    whole: dict[str, dict[int, str]] = {}
    counts: dict[str, int] = {}
    for path in sorted(paths):
        if not path.lower().endswith(SUFFIX) or is_companion(path.rpartition("/")[2]):
            continue
        base = path[: -len(SUFFIX)]
        found = _SPLIT.fullmatch(base)
        stem, number, count = (found["stem"], int(found["number"]), int(found["count"])) if found else (base, 1, 1)
        whole.setdefault(stem, {})[number] = path
        counts[stem] = max(counts.get(stem, 0), count)
    return [
        GgufNames(stem.replace("/", "--"), format_of(stem), tuple(parts[number] for number in sorted(parts)))
        for stem, parts in whole.items()
        if sorted(parts) == list(range(1, counts[stem] + 1))
    ]


def format_of(stem: str) -> str:
    """Return the format of the weights that a path says, from the file's name before its folder's."""
    folder, _slash, name = stem.rpartition("/")
    for text in (name, folder):
        if found := _FORMAT.findall(text):
            return str(found[-1]).upper()
    return ""


class _Model(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def format_name(self) -> str: ...


_ModelT = TypeVar("_ModelT", bound=_Model)


def find_model(models: Iterable[_ModelT], wanted: str) -> _ModelT | None:
    """Return the model with that key, or else the first one in that format."""
    listed = list(models)
    exact = (model for model in listed if model.key == wanted)
    return next(exact, next((model for model in listed if model.format_name == wanted.upper()), None))


def split_name(name: str) -> tuple[str, str]:
    """Return the repository of `owner/name:model`, and the model; empty if the name is that of a repository."""
    repository, _separator, model = name.partition(SEPARATOR)
    return repository, model
