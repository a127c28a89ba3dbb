"""Names of GGUF files: which files are one model, and what their names say about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from decodescope.core.errors import CorruptWeightsError, ModelFileError
from decodescope.resources.language import join_names, tr

SUFFIX = ".gguf"
MAGIC = b"GGUF"
"""The first bytes of a file."""
SEPARATOR = ":"
"""Separates a repository from one of its models: `owner/name:model-Q4_K_M`."""
_MAX_SPLITS = 4096
_SPLIT = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_FORMAT = re.compile(
    r"(?<![A-Za-z0-9])((?:IQ|Q|TQ)\d(?:_[A-Z0-9]+)*|BF16|FP?16|FP?32|MXFP4(?:_MOE)?)(?![A-Za-z0-9_])", re.IGNORECASE
)
_BITS = re.compile(r"\d+")


def is_gguf(path: Path) -> bool:
    """Return whether a path names a GGUF file: by its suffix, or a blob of Ollama by its first bytes. Never raises."""
    if path.suffix.lower() == SUFFIX:
        return os.path.isfile(path)
    if not path.name.startswith("sha256-") or not os.path.isfile(path):
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def gguf_in(folder: Path) -> Path | None:
    """Return the one GGUF model of a folder, the first file if it is split; None without one. Raises ModelFileError if
    there are several models.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.lower().endswith(SUFFIX))
    except OSError:
        return None
    firsts = [name for name in names if not is_later_split(name) and not is_companion(name)]
    if len(firsts) > 1:
        raise ModelFileError(
            tr("{folder} contains {count} GGUF models: {names}.").format(
                folder=folder.name, count=len(firsts), names=join_names(firsts[:5])
            ),
            tr("Choose one of the files."),
        )
    return folder / firsts[0] if firsts else None


def is_companion(name: str) -> bool:
    """Return whether a file's name says that it belongs to a model but is none: an image projector, a matrix of
    importances.
    """
    lower = name.lower()
    return lower.startswith(("mmproj", "imatrix")) or ".mmproj" in lower or "-mmproj" in lower or ".imatrix" in lower


def is_later_split(name: str) -> bool:
    """Return whether a file's name says that it is a part of a model, but not the first."""
    found = _SPLIT.fullmatch(name)
    return found is not None and int(found["number"]) != 1


def split_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a model of which `path` is one: itself, or all parts in order by their names.

    Raises CorruptWeightsError if the number of parts is impossible.
    """
    found = _SPLIT.fullmatch(path.name)
    if found is None:
        return (path,)
    count = int(found["count"])
    if not 0 < count <= _MAX_SPLITS or not 0 < int(found["number"]) <= count:
        raise UnreadableGgufError(path, tr("its name claims part {number} of {count}").format(**found.groupdict()))
    names = (f"{found['stem']}-{number:05}-of-{count:05}{path.suffix}" for number in range(1, count + 1))
    return tuple(map(path.with_name, names))


class UnreadableGgufError(CorruptWeightsError):
    """A file is not read as GGUF; `reason` says why, as a clause."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            tr("{file} cannot be read as GGUF: {reason}.").format(file=file.name, reason=reason),
            tr("Copy or download the file again."),
        )
        self.reason = reason


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
        found = _SPLIT.fullmatch(path)
        stem, number, count = found.groups() if found else (path[: -len(SUFFIX)], 1, 1)
        whole.setdefault(stem, {})[int(number)] = path
        counts[stem] = max(counts.get(stem, 0), int(count))
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
